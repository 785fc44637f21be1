"""The lab: recorded streams replayed under any policy, and the papers' experiments."""

from tidings.lab.comparison import Comparison
from tidings.lab.run_comparison import compare

__all__ = ["Comparison", "compare"]
