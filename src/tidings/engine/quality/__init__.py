"""How good deliveries are, beside all that plain publish/subscribe would have sent."""

from tidings.engine.quality.running import Quality, Report
from tidings.engine.quality.set_diversity import SPAN, PlainSets, Sets, set_diversity

__all__ = ["SPAN", "PlainSets", "Quality", "Report", "Sets", "set_diversity"]
