"""Registries of the scorers and decays."""

from typing import Final

from tidings.model import named_parts
from tidings.score.decay import Exponential, Logarithmic, NoDecay, Polynomial
from tidings.score.exact import Exact
from tidings.score.graph import Graph
from tidings.score.preference import Preference
from tidings.score.protocol import Decay, Scorer
from tidings.score.relaxed import Relaxed

SCORERS: Final[dict[str, type[Scorer]]] = named_parts.registry(
    {
        "preference": Preference,
        "exact": Exact,
        "relaxed": Relaxed,
        "graph": Graph,
    }
)
DECAYS: Final[dict[str, type[Decay]]] = named_parts.registry(
    {
        "none": NoDecay,
        "exponential": Exponential,
        "polynomial": Polynomial,
        "logarithmic": Logarithmic,
    }
)
