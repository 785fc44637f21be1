"""The plain forms by the names of their diversifiers."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from tidings.diversify.plain.cover import disc, maxdivrel
from tidings.diversify.plain.greedy import divrank, maxavg, maxmin, maxsum
from tidings.diversify.plain.lsh import maxdivrel_lsh
from tidings.diversify.plain.optimal import optimal
from tidings.diversify.protocol import Candidate, ranked

Plain = Callable[[Any, Sequence[Candidate], int], list[int]]

PLAIN: Final[dict[str, Plain]] = {
    "none": lambda _, candidates, k: ranked(candidates)[:k],
    "divrank": divrank,
    "optimal": optimal,
    "maxmin": maxmin,
    "maxsum": maxsum,
    "maxavg": maxavg,
    "disc": disc,
    "maxdivrel": maxdivrel,
    "maxdivrel-lsh": maxdivrel_lsh,
}
