"""The lab: recorded streams replayed under any policy, and the papers' experiments."""

from tidings.lab.compare import compare
from tidings.lab.comparison import Comparison

__all__ = ["Comparison", "compare"]
