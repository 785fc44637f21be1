"""A small recording of films with everything that a report shows, and policies that differ."""

from typing import Any

from tidings.lab.comparison import Comparison
from tidings.lab.run_comparison import compare
from tidings.testing import workload

POLICIES: dict[str, Any] = {
    "all": {"k": 100},
    "best": {"k": 1, "window": {"name": "periodic", "length": "1m"}},
    "different": {"k": 2, "window": {"name": "sliding", "length": 6}, "diversify": "divrank"},
    "quota": {"k": 9, "rules": [{"name": "quota", "n": 3, "per": "hour"}]},
}


def small_comparison(**options: Any) -> Comparison:
    """Return a comparison of these policies for six subscribers."""
    made = workload(seed=4, events=80, subscribers=6)
    return compare(made.events, made.subscriptions, POLICIES, **options)
