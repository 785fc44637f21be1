"""A subscriber with all that it has: what bases are made of, and what a change replaces."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from tidings.feed.policy_key import counts_published, kept
from tidings.model.records import Subscription
from tidings.policy import Subscriber

_MARK_BYTES: Final = 8


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
    return any(counts_published(each.subscriber.policy) for each in given if each.subscriber)


def mark_of(subscribers: Iterable[Subscriber]) -> int:
    """Give a number that is another one if what some feed depends on is; names are in order."""
    forms: dict[int, str] = {}
    mark = blake2b(digest_size=_MARK_BYTES)
    for each in subscribers:
        policy = each.policy
        form = forms.get(id(policy)) or json.dumps(kept(policy), sort_keys=True)
        forms[id(policy)] = form
        mark.update(f"{json.dumps(each.id)}{form}".encode())
    return int.from_bytes(mark.digest())
