"""A change of feeds that fails leaves everything as it was."""

from typing import Any

import numpy as np
import pytest

from tidings.errors import InvalidPolicy
from tidings.feed import FEEDS, Feeds
from tidings.feed.columnar import diverse_cohort as choices
from tidings.feed.columnar import python_cohort
from tidings.feed.columnar import ranked_cohort as cohorts
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
    """Feeds in which every window holds something, and the next row has to be made."""
    feeds = TableFeeds()
    for name, policy in policies.items():
        for n in range(16):
            feeds.enrol(Subscriber(f"{name}{n}", policy))
    offered(feeds)
    return feeds


def offered(feeds: Any, first: int = 1) -> Any:
    people = feeds.names.subscribers
    names = [people.names[number] for number in people.in_order().tolist()]
    for n in range(first, first + 4):
        event = Event(f"e{n}", {"a": n}, published_at=n, sequence=n)
        now = Moment(event.published_us, n)
        feeds.offer_many([(Match(name, event, 0.5, ("s",)), now) for name in names])
    return feeds


class Scarce:
    """Stands in for a function that takes memory, and fails at its n-th call."""

    def __init__(self, function: Any, fails_at: int) -> None:
        self._function, self._left = function, fails_at

    def __call__(self, *given: Any, **named: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            raise MemoryError
        return self._function(*given, **named)


def starve(monkeypatch: pytest.MonkeyPatch, fails_at: int) -> None:
    """Let the n-th growth of an array of a cohort fail."""
    scarce = Scarce(cohorts.longer, fails_at)
    monkeypatch.setattr(cohorts, "longer", scarce)
    monkeypatch.setattr(choices, "longer", scarce)
    monkeypatch.setattr(python_cohort, "Feed", Scarce(Feed, fails_at))


@every_policy
@pytest.mark.parametrize("fails_at", [1, 2, 3, 4])
@pytest.mark.parametrize("others", [(), ("plain", "diverse")], ids=str)
@pytest.mark.parametrize("again", [False, True])
def test_to_enrol_somebody_or_to_fail_are_all_there_is(
    name: str, fails_at: int, others: tuple[str, ...], again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody new, or somebody who has another policy."""
    there = {each: POLICIES[each] for each in {*others, "plain"}}
    feeds, twin = full(there), full(there)
    who, before, count = "plain3" if again else "new", feeds.snapshot(), len(feeds)
    with monkeypatch.context() as patch:
        starve(patch, fails_at)
        try:
            feeds.enrol(Subscriber(who, POLICIES[name]))
        except MemoryError:
            assert feeds.snapshot() == before
            assert len(feeds) == count
            assert len(feeds.cohorts) == len(there)
    feeds.enrol(Subscriber(who, POLICIES[name]))
    twin.enrol(Subscriber(who, POLICIES[name]))
    assert feeds.snapshot() == twin.snapshot()
    assert offered(feeds, 9).snapshot() == offered(twin, 9).snapshot()


@pytest.mark.parametrize("fails_at", range(1, 12))
def test_to_enrol_many_or_to_fail_are_all_there_is(
    fails_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeds, twin = (full({"plain": POLICIES["plain"]}) for _ in range(2))
    before = feeds.snapshot()
    policies = [*POLICIES.values()]
    names, seats = [f"n{n}" for n in range(40)], np.arange(40, dtype=np.int32) % len(policies)
    with monkeypatch.context() as patch:
        starve(patch, fails_at)
        try:
            feeds.enrol_many(names, policies, seats)
        except MemoryError:
            assert feeds.snapshot() == before
            assert len(feeds) == 16
            assert len(feeds.cohorts) == 1
    if len(feeds) == 16:
        feeds.enrol_many(names, policies, seats)
    twin.enrol_many(names, policies, seats)
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

    monkeypatch.setattr(choices, "_chooser", refuse)
    monkeypatch.setattr("tidings.feed.single.keep", refuse)
    for name in ("a", "b"):
        with pytest.raises(InvalidPolicy):
            feeds.enrol(Subscriber(name, Policy(k=4, diversify="maxmin")))
    assert feeds.snapshot() == before
    assert len(feeds) == 1
