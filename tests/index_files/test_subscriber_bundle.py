"""Bundles: subscribers with their subscriptions, and fingerprints of their policies."""

from tidings import Policy, Sliding, Subscriber, Subscription
from tidings.index_files.subscriber_bundle import (
    SubscriberBundle,
    any_counts_published,
    bundle_subscribers,
    fingerprint,
)


def test_bundles_are_in_order_of_name_and_may_lack_a_subscriber() -> None:
    bob, ann = Subscriber("bob"), Subscriber("ann")
    first, second = (Subscription(f"s{n}", "cy", "x = 1") for n in range(2))
    assert bundle_subscribers([bob, ann], [first, second]) == [
        SubscriberBundle("ann", ann),
        SubscriberBundle("bob", bob),
        SubscriberBundle("cy", None, [first, second]),
    ]


def test_only_some_windows_count_published_events() -> None:
    counting = Subscriber("ann", Policy(window=Sliding(4, count="published")))
    other = Subscriber("bob", Policy(window=Sliding(4)))
    assert any_counts_published(bundle_subscribers([counting, other], []))
    assert not any_counts_published(bundle_subscribers([other], []))


def test_a_fingerprint_depends_on_names_and_policies() -> None:
    ann, bob = Subscriber("ann", Policy(k=1)), Subscriber("bob", Policy(k=1))
    other = Subscriber("ann", Policy(k=2))
    ruled = Subscriber("ann", Policy(k=1, rules=["quiet"]))
    groups: tuple[list[Subscriber], ...] = ([], [ann], [bob], [other], [ruled], [ann, bob])
    assert len({fingerprint(group) for group in groups}) == 6
    assert fingerprint([ann]) == fingerprint([Subscriber("ann", Policy(k=1))])
