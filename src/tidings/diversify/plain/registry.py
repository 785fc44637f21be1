"""Registry of the plain diversifiers, by the names of the compiled ones."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from tidings.diversify.plain.cover import disc, maxdivrel
from tidings.diversify.plain.greedy import divrank, maxavg, maxmin, maxsum
from tidings.diversify.plain.lsh import maxdivrel_lsh
from tidings.diversify.plain.optimal import optimal
from tidings.diversify.protocol import Candidate, ranked

PlainChoice = Callable[[Any, Sequence[Candidate], int], list[int]]
"""Takes the part of the policy, the candidates and k; returns the indexes in order of choice."""

PLAIN: Final[dict[str, PlainChoice]] = {
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
