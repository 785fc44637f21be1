"""A change of feeds that fails leaves everything as it was."""

from typing import Any

import numpy as np
import pytest

from tidings.errors import InvalidPolicy
from tidings.feed import FEEDS, Feeds
from tidings.feed.columnar import python_cohort, slab_pools
from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.single import Feed
from tidings.model.records import Event, Match
from tidings.policy import Policy, Subscriber
from tidings.window import Moment

POLICIES = {
    "plain": Policy(k=3, window={"name": "jumping", "length": "5s", "step": "1s"}),
    "diverse": Policy(k=3, window={"name": "sliding", "length": 5}, diversify="divrank"),
    "voted": Policy(k=3, window={"name": "sliding", "length": 5}, diversify="maxdivrel-lsh"),
    "object": Policy(k=2, window={"name": "sliding", "length": "5s"}, diversify="optimal"),
}
every_policy = pytest.mark.parametrize("name", POLICIES)


def full(policies: dict[str, Policy]) -> TableFeeds:
    """Return feeds whose windows all hold something, and whose next row must be allocated."""
    feeds = TableFeeds()
    for name, policy in policies.items():
        for n in range(16):
            feeds.enrol(Subscriber(f"{name}{n}", policy))
    offered(feeds)
    return feeds


def offered(feeds: Any, first: int = 1) -> Any:
    subscribers = feeds.tables.subscribers
    names = [subscribers.names[number] for number in subscribers.in_order().tolist()]
    for n in range(first, first + 4):
        event = Event(f"e{n}", {"a": n}, published_at=n, sequence=n)
        now = Moment(event.published_us, n)
        feeds.offer_many([(Match(name, event, 0.5, ("s",)), now) for name in names])
    return feeds


class Scarce:
    """A stand-in for a function that allocates memory; its n-th call fails."""

    def __init__(self, function: Any, fails_at: int) -> None:
        self._function, self._left = function, fails_at

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            raise MemoryError
        return self._function(*arguments, **options)


def starve(monkeypatch: pytest.MonkeyPatch, fails_at: int) -> None:
    """Make the n-th growth of an array of a cohort fail."""
    monkeypatch.setattr(slab_pools, "lengthened", Scarce(slab_pools.lengthened, fails_at))
    monkeypatch.setattr(python_cohort, "Feed", Scarce(Feed, fails_at))


@every_policy
@pytest.mark.parametrize("fails_at", [1, 2, 3, 4])
@pytest.mark.parametrize("others", [(), ("plain", "diverse")], ids=str)
@pytest.mark.parametrize("again", [False, True])
def test_enrolling_a_subscriber_succeeds_or_changes_nothing(
    name: str, fails_at: int, others: tuple[str, ...], again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either a new subscriber, or one that has another policy."""
    policies = {other: POLICIES[other] for other in {*others, "plain"}}
    feeds, twin = full(policies), full(policies)
    subscriber, before, count = "plain3" if again else "new", feeds.snapshot(), len(feeds)
    with monkeypatch.context() as patch:
        starve(patch, fails_at)
        try:
            feeds.enrol(Subscriber(subscriber, POLICIES[name]))
        except MemoryError:
            assert feeds.snapshot() == before
            assert len(feeds) == count
            assert len(feeds.cohorts) == len(policies)
    feeds.enrol(Subscriber(subscriber, POLICIES[name]))
    twin.enrol(Subscriber(subscriber, POLICIES[name]))
    assert feeds.snapshot() == twin.snapshot()
    assert offered(feeds, 9).snapshot() == offered(twin, 9).snapshot()


@pytest.mark.parametrize("fails_at", range(1, 12))
def test_enrolling_many_succeeds_or_changes_nothing(
    fails_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeds, twin = (full({"plain": POLICIES["plain"]}) for _ in range(2))
    before = feeds.snapshot()
    policies = [*POLICIES.values()]
    names, indexes = [f"n{n}" for n in range(40)], np.arange(40, dtype=np.int32) % len(policies)
    with monkeypatch.context() as patch:
        starve(patch, fails_at)
        try:
            feeds.enrol_many(names, policies, indexes)
        except MemoryError:
            assert feeds.snapshot() == before
            assert len(feeds) == 16
            assert len(feeds.cohorts) == 1
    if len(feeds) == 16:
        feeds.enrol_many(names, policies, indexes)
    twin.enrol_many(names, policies, indexes)
    assert feeds.snapshot() == twin.snapshot()
    assert offered(feeds, 9).snapshot() == offered(twin, 9).snapshot()


@pytest.mark.parametrize("kind", FEEDS)
def test_a_policy_that_cannot_be_opened_changes_nothing(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeds: Feeds = FEEDS[kind]()
    feeds.enrol(Subscriber("a", POLICIES["diverse"]))
    before = feeds.snapshot()

    def refuse(*_: Any) -> None:
        raise InvalidPolicy("no")

    monkeypatch.setattr("tidings.feed.columnar.policy_codes.diversity_codes", refuse)
    monkeypatch.setattr("tidings.feed.single.PolicyChooser", refuse)
    for name in ("a", "b"):
        with pytest.raises(InvalidPolicy):
            feeds.enrol(Subscriber(name, Policy(k=4, diversify="maxmin")))
    assert feeds.snapshot() == before
    assert len(feeds) == 1
