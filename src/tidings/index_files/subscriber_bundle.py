"""A subscriber together with its subscriptions: the unit of bases and of deltas."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from tidings.feed.policy_key import counts_published, feed_form
from tidings.model.records import Subscription
from tidings.policy import Subscriber

_FINGERPRINT_BYTES: Final = 8


@dataclass(frozen=True)
class SubscriberBundle:
    """A name with its subscriber and subscriptions.

    A name may have subscriptions without a subscriber, or the reverse; with neither, it is removed.
    """

    name: str
    subscriber: Subscriber | None = None
    subscriptions: Sequence[Subscription] = ()


def bundle_subscribers(
    subscribers: Iterable[Subscriber], subscriptions: Iterable[Subscription]
) -> list[SubscriberBundle]:
    """Return subscribers with their subscriptions, in order of name."""
    by_name = {subscriber.id: subscriber for subscriber in subscribers}
    owned = defaultdict[str, list[Subscription]](list)
    for subscription in subscriptions:
        owned[subscription.subscriber].append(subscription)
    names = sorted(by_name.keys() | owned.keys())
    return [SubscriberBundle(name, by_name.get(name), owned.get(name, ())) for name in names]


def any_counts_published(bundles: Iterable[SubscriberBundle]) -> bool:
    """Return whether a window counts all published events, and so needs their sequence numbers."""
    return any(
        counts_published(bundle.subscriber.policy) for bundle in bundles if bundle.subscriber
    )


def fingerprint(subscribers: Iterable[Subscriber]) -> int:
    """Return a number that changes with any policy that a feed depends on.

    The subscribers come in order of name.
    """
    forms: dict[int, str] = {}
    digest = blake2b(digest_size=_FINGERPRINT_BYTES)
    for subscriber in subscribers:
        policy = subscriber.policy
        form = forms.get(id(policy)) or json.dumps(feed_form(policy), sort_keys=True)
        forms[id(policy)] = form
        digest.update(f"{json.dumps(subscriber.id)}{form}".encode())
    return int.from_bytes(digest.digest())
