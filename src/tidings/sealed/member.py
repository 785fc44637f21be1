"""A subscriber with all that it has: what bases are made of, and what a change replaces."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidings.model import Subscription
from tidings.policy import Subscriber


@dataclass(frozen=True)
class Member:
    """A name, its subscriber and its subscriptions; each may be missing, and both if it went."""

    name: str
    subscriber: Subscriber | None = None
    subscriptions: Sequence[Subscription] = ()


def members(
    subscribers: Iterable[Subscriber], subscriptions: Iterable[Subscription]
) -> list[Member]:
    """Give subscribers with what they own, in order of their names."""
    people = {each.id: each for each in subscribers}
    owned = defaultdict[str, list[Subscription]](list)
    for each in subscriptions:
        owned[each.subscriber].append(each)
    names = sorted(people.keys() | owned.keys())
    return [Member(name, people.get(name), owned.get(name, ())) for name in names]


def counting(given: Iterable[Member]) -> bool:
    """Tell whether some window counts all events that are published, and so needs their numbers."""
    windows = (each.subscriber.policy.window for each in given if each.subscriber)
    return any(getattr(each, "count", None) == "published" for each in windows)
