"""Quality of deliveries, compared with everything that plain publish/subscribe would have sent."""

from tidings.engine.quality.running import Quality, Report
from tidings.engine.quality.set_diversity import (
    SPAN,
    CompiledSetDiversity,
    PlainSetDiversity,
    make_set_diversity,
)

__all__ = [
    "SPAN",
    "CompiledSetDiversity",
    "PlainSetDiversity",
    "Quality",
    "Report",
    "make_set_diversity",
]
