"""Registry of the diversifiers."""

from typing import Final

from tidings.diversify.covers import Disc, MaxDivRel
from tidings.diversify.greedy import DivRank, MaxAvg, MaxMin, MaxSum
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.none import NoDiversity
from tidings.diversify.optimal import Optimal
from tidings.diversify.protocol import Diversifier
from tidings.model import named_parts

DIVERSIFIERS: Final[dict[str, type[Diversifier]]] = named_parts.registry(
    {
        "none": NoDiversity,
        "divrank": DivRank,
        "optimal": Optimal,
        "maxmin": MaxMin,
        "maxsum": MaxSum,
        "maxavg": MaxAvg,
        "disc": Disc,
        "maxdivrel": MaxDivRel,
        "maxdivrel-lsh": MaxDivRelLsh,
    }
)
