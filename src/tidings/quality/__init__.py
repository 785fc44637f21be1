"""How good deliveries are, beside all that plain publish/subscribe would have sent."""

from tidings.quality.measure import Quality, Report
from tidings.quality.sets import SPAN, PlainSets, Sets, set_diversity

__all__ = ["SPAN", "PlainSets", "Quality", "Report", "Sets", "set_diversity"]
