"""A subscriber whose own policy fails is set aside and named, and the others get theirs."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from tidings.diversify import DIVERSIFIERS
from tidings.diversify.distance import Jaccard
from tidings.diversify.divrank import DivRank
from tidings.diversify.none import NoDiversity
from tidings.feed import FEEDS, Feeds
from tidings.model.limits import Limits
from tidings.model.records import Delivery, Event, Match
from tidings.policy import Policy, Subscriber
from tidings.score import DECAYS
from tidings.score.decay import NoDecay
from tidings.window import Moment

LAST = Moment(10**9, 100)
every_kind = pytest.mark.parametrize("kind", FEEDS)


@dataclass(frozen=True)
class Broken(Jaccard):
    """A distance that fails from some event on."""

    gives: Any = None
    name: ClassVar[str] = "broken"

    def between(self, one: Event, other: Event) -> float:
        if max(one.published_us, other.published_us) < 4_000_000:
            return super().between(one, other)
        if isinstance(self.gives, str):
            raise TypeError(self.gives)
        return self.gives  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Odd(NoDiversity):
    """A diversifier that chooses what is not there."""

    chosen: tuple[Any, ...] = (7,)
    name: ClassVar[str] = "odd"

    def choose(self, candidates: Any, k: int) -> list[int]:
        return list(self.chosen)


@dataclass(frozen=True)
class Rotten(NoDecay):
    """A decay that gives what is no rank."""

    gives: Any = math.nan
    name: ClassVar[str] = "rotten"

    def fresh(self, score: float, published_us: int, now_us: int) -> float:
        return self.gives  # type: ignore[no-any-return]


def publish(feeds: Feeds, who: Sequence[str], first: int = 1, last: int = 8) -> list[Delivery]:
    """Offer events to all, each to everybody in one call."""
    found = []
    for n in range(first, last + 1):
        event = Event(f"e{n}", {"a": n % 3, "b": n % 2}, published_at=n, sequence=n)
        now = Moment(event.published_us, n)
        found += feeds.offer_many([(Match(each, event, 0.1 * n, ("s",)), now) for each in who])
    return found + feeds.advance(LAST)


def enrolled(kind: str, policies: dict[str, Policy]) -> Feeds:
    feeds = FEEDS[kind]()
    for name, policy in policies.items():
        feeds.enrol(Subscriber(name, policy))
    return feeds


GOOD = Policy(k=2, window={"name": "jumping", "length": "4s", "step": "2s"}, diversify="divrank")
OWN = Policy(k=2, window={"name": "sliding", "length": 5}, diversify=DivRank(distance=Jaccard()))
FAILURES = [
    (DivRank(distance=Broken("no such thing")), "TypeError: no such thing"),
    (DivRank(distance=Broken(math.nan)), "the distance broken of"),
    (DivRank(distance=Broken(math.inf)), "the distance broken of"),
    (DivRank(distance=Broken(-1.0)), "the distance broken of"),
    (DivRank(distance=Broken([1])), "the distance broken of"),
]


@every_kind
@pytest.mark.parametrize(
    "window",
    [
        {"name": "sliding", "length": 5},
        {"name": "history", "length": 9},
        {"name": "periodic", "length": "7s"},
        "continuous",
    ],
    ids=str,
)
@pytest.mark.parametrize(("part", "why"), FAILURES, ids=str)
def test_a_distance_that_fails_takes_its_own_subscriber_only(
    kind: str, window: Any, part: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    bad = Policy(k=2, window=window, diversify=part)
    feeds = enrolled(kind, {"a": GOOD, "bad": bad, "c": OWN})
    alone = enrolled(kind, {"a": GOOD, "c": OWN})
    with caplog.at_level(logging.WARNING):
        found = publish(feeds, ["a", "bad", "c"])
    expected = publish(alone, ["a", "c"])
    assert [each for each in found if each.subscriber != "bad"] == expected
    assert list(feeds.set_aside) == ["bad"]
    assert feeds.set_aside["bad"].startswith(why)
    assert sum("bad is set aside" in each.message for each in caplog.records) == 1


@every_kind
def test_who_is_set_aside_gets_nothing_until_enrolled_again(kind: str) -> None:
    bad = Policy(k=2, window={"name": "sliding", "length": 5}, diversify=FAILURES[0][0])
    feeds = enrolled(kind, {"a": GOOD, "bad": bad})
    publish(feeds, ["a", "bad"])
    assert publish(feeds, ["bad"], 9, 12) == []
    assert "bad" in feeds
    assert len(feeds) == 2
    assert feeds.current("bad", LAST) == []
    twin = FEEDS[kind]()
    if kind == "plain":
        state = feeds.snapshot()
        assert isinstance(state, bytes)
        assert twin.set_aside == {}
    feeds.enrol(Subscriber("bad", OWN))
    assert feeds.set_aside == {}
    assert publish(feeds, ["bad"], 13, 14) != []
    feeds.enrol(Subscriber("bad", bad))
    publish(feeds, ["bad"], 15, 20)
    feeds.drop("bad")
    assert feeds.set_aside == {}
    assert "bad" not in feeds


@every_kind
def test_a_list_on_demand_that_fails_is_empty(kind: str) -> None:
    bad = Policy(k=2, window={"name": "periodic", "length": "1h"}, diversify=FAILURES[0][0])
    feeds = enrolled(kind, {"a": GOOD, "bad": bad})
    for n in range(1, 6):
        event = Event(f"e{n}", {"a": n}, published_at=n, sequence=n)
        feeds.offer_many([(Match("bad", event, 0.5, ()), Moment(event.published_us, n))])
    assert feeds.current("bad", Moment(5_000_000, 5)) == []
    assert feeds.set_aside == {"bad": "TypeError: no such thing"}
    assert feeds.current("a", Moment(5_000_000, 5)) == []


@every_kind
@pytest.mark.parametrize("chosen", [(7,), (0, 0), ("a",), (-1,), (0.5,), (None,)], ids=str)
def test_a_diversifier_that_chooses_what_is_not_there_is_set_aside(
    kind: str, chosen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DIVERSIFIERS, "odd", Odd)
    feeds = enrolled(kind, {"bad": Policy(k=2, diversify=Odd(chosen=chosen)), "a": GOOD})
    assert publish(feeds, ["a", "bad"]) == publish(enrolled(kind, {"a": GOOD}), ["a"])
    assert "must choose at most 2 different indexes" in feeds.set_aside["bad"]


@every_kind
@pytest.mark.parametrize("gives", [math.nan, math.inf, -1.0, "x", None], ids=str)
def test_a_decay_that_gives_no_rank_is_set_aside(
    kind: str, gives: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DECAYS, "rotten", Rotten)
    feeds = enrolled(kind, {"bad": Policy(k=2, decay=Rotten(gives=gives)), "a": GOOD})
    assert publish(feeds, ["a", "bad"]) == publish(enrolled(kind, {"a": GOOD}), ["a"])
    assert "the fresh rank of e1 by rotten" in feeds.set_aside["bad"]


@every_kind
def test_optimal_beyond_its_sets_is_set_aside(kind: str) -> None:
    limits = Limits(optimal_sets=10)
    bad = Policy(
        k=2, window={"name": "sliding", "length": "1h"}, diversify="optimal", limits=limits
    )
    feeds = enrolled(kind, {"bad": bad, "a": GOOD})
    found = publish(feeds, ["a", "bad"])
    assert {each.event for each in found if each.subscriber == "bad"} == {
        "e1",
        "e2",
        "e3",
        "e4",
        "e5",
    }
    assert (
        "the sets of 2 of 6 events are more than the limit optimal_sets = 10"
        in feeds.set_aside["bad"]
    )


@pytest.mark.parametrize("diversify", ["none", "divrank"])
def test_a_window_that_memory_cannot_hold_takes_its_own_subscriber_only(
    diversify: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Policy(k=2, window={"name": "sliding", "length": 500}, diversify=diversify)
    feeds, alone = (enrolled("table", {"a": policy, "b": policy}) for _ in range(2))
    kinds = list(feeds.cohorts)  # type: ignore[attr-defined]

    def refuse(row: int, used: int) -> None:
        if row == 0 and kinds[0].head[0, -8 if diversify == "none" else 3] > 3:
            raise MemoryError("no more")
        made(row, used)

    made = kinds[0].make_room
    monkeypatch.setattr(kinds[0], "make_room", refuse)
    events = [Event(f"e{n}", {"a": n}, published_at=n, sequence=n) for n in range(1, 60)]
    offers = [
        (Match(who, each, 0.5, ()), Moment(each.published_us, each.sequence or 0))
        for each in events
        for who in "ab"
    ]
    found, expected = feeds.offer_many(offers), alone.offer_many(offers)
    mine = [each for each in found if each.subscriber == "a"]
    assert [each for each in found if each.subscriber == "b"] == [
        each for each in expected if each.subscriber == "b"
    ]
    assert mine == [each for each in expected if each.subscriber == "a"][: len(mine)]
    assert feeds.set_aside == {"a": "MemoryError: no more"}


def test_pairs_that_are_too_many_set_their_subscriber_aside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("tidings.diversify.memory_limits", "tidings.feed.columnar.diverse_cohort"):
        monkeypatch.setattr(f"{module}.DENSE", 20)
    dense = Policy(k=2, window={"name": "sliding", "length": "1h"}, diversify="disc")
    for kind in FEEDS:
        feeds = enrolled(kind, {"a": GOOD, "bad": dense})
        publish(feeds, ["a", "bad"], last=20)
        assert feeds.set_aside == {}
        publish(feeds, ["a", "bad"], 21, 22)
        assert list(feeds.set_aside) == ["bad"]
        assert "disc compares all pairs of at most 20 candidates, not 21" in feeds.set_aside["bad"]
