"""What of a policy a feed depends on: all but the scorer."""

from typing import Any

from tidings import parts
from tidings.policy import Policy


def kept(policy: Policy) -> dict[str, Any]:
    """Give the JSON form of what decides over deliveries once a match has its score."""
    return {
        "k": policy.k,
        "decay": parts.form(policy.decay),
        "window": parts.form(policy.window),
        "diversify": parts.form(policy.diversify),
    }


def same_feed(one: Policy, other: Policy) -> bool:
    """Tell whether two policies decide alike over matches that have their scores."""
    parts = ("k", "decay", "window", "diversify")
    return all(getattr(one, part) == getattr(other, part) for part in parts)
