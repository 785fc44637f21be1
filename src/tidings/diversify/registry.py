"""The diversifiers by name."""

from typing import Final

from tidings import parts
from tidings.diversify.dispersion import MaxAvg, MaxMin, MaxSum
from tidings.diversify.divrank import DivRank
from tidings.diversify.lsh import MaxDivRelLsh
from tidings.diversify.maxdivrel import MaxDivRel
from tidings.diversify.neighbourhood import Disc
from tidings.diversify.none import NoDiversity
from tidings.diversify.optimal import Optimal
from tidings.diversify.protocol import Diversifier

DIVERSIFIERS: Final[dict[str, type[Diversifier]]] = parts.registry(
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
