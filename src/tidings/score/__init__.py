"""How much? Scorers rank events for subscribers; decays lower scores as time passes."""

from tidings.score.protocol import Decay, Ranker, Scorer
from tidings.score.registry import DECAYS, SCORERS

__all__ = ["DECAYS", "SCORERS", "Decay", "Ranker", "Scorer"]
