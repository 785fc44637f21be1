"""A subscriber whose policy fails is set aside; the others are not affected."""

import logging
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from tidings.diversify import DIVERSIFIERS
from tidings.diversify.distance import Jaccard
from tidings.diversify.greedy import DivRank
from tidings.diversify.none import NoDiversity
from tidings.feed import FEEDS, Feeds
from tidings.feed.columnar.kernels.layout import HELD
from tidings.model.limits import Limits
from tidings.model.records import Delivery, Event, Match
from tidings.policy import Policy, Subscriber
from tidings.score import DECAYS
from tidings.score.decay import NoDecay
from tidings.window import Moment

LAST = Moment(10**9, 100)
every_kind = pytest.mark.parametrize("kind", FEEDS)


@dataclass(frozen=True)
class BadDistance(Jaccard):
    """A distance that fails from some event on."""

    value: Any = None
    name: ClassVar[str] = "bad-distance"

    def between(self, one: Event, other: Event) -> float:
        if max(one.published_us, other.published_us) < 4_000_000:
            return super().between(one, other)
        if isinstance(self.value, str):
            raise TypeError(self.value)
        return self.value  # type: ignore[no-any-return]


@dataclass(frozen=True)
class BadDiversifier(NoDiversity):
    """A diversifier with an invalid choice."""

    chosen: tuple[Any, ...] = (7,)
    name: ClassVar[str] = "bad-diversifier"

    def choose(self, candidates: Any, k: int) -> list[int]:
        return list(self.chosen)


@dataclass(frozen=True)
class BadDecay(NoDecay):
    """A decay that returns invalid ranks."""

    value: Any = math.nan
    name: ClassVar[str] = "bad-decay"

    def fresh(self, score: float, published_us: int, now_us: int) -> float:
        return self.value  # type: ignore[no-any-return]


def publish(feeds: Feeds, names: Sequence[str], first: int = 1, last: int = 8) -> list[Delivery]:
    """Offer events, each to all subscribers in one call."""
    deliveries = []
    for n in range(first, last + 1):
        event = Event(f"e{n}", {"a": n % 3, "b": n % 2}, published_at=n, sequence=n)
        now = Moment(event.published_us, n)
        offers = [(Match(name, event, 0.1 * n, ("s",)), now) for name in names]
        deliveries += feeds.offer_many(offers)
    return deliveries + feeds.advance(LAST)


def enrolled(kind: str, policies: dict[str, Policy]) -> Feeds:
    feeds = FEEDS[kind]()
    for name, policy in policies.items():
        feeds.enrol(Subscriber(name, policy))
    return feeds


GOOD = Policy(k=2, window={"name": "jumping", "length": "4s", "step": "2s"}, diversify="divrank")
OWN = Policy(k=2, window={"name": "sliding", "length": 5}, diversify=DivRank(distance=Jaccard()))
FAILURES = [
    (DivRank(distance=BadDistance("no such thing")), "TypeError: no such thing"),
    (DivRank(distance=BadDistance(math.nan)), "the distance bad-distance of"),
    (DivRank(distance=BadDistance(math.inf)), "the distance bad-distance of"),
    (DivRank(distance=BadDistance(-1.0)), "the distance bad-distance of"),
    (DivRank(distance=BadDistance([1])), "the distance bad-distance of"),
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
@pytest.mark.parametrize(("part", "reason"), FAILURES, ids=str)
def test_a_failing_distance_affects_only_its_own_subscriber(
    kind: str, window: Any, part: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    bad = Policy(k=2, window=window, diversify=part)
    feeds = enrolled(kind, {"a": GOOD, "bad": bad, "c": OWN})
    alone = enrolled(kind, {"a": GOOD, "c": OWN})
    with caplog.at_level(logging.WARNING):
        deliveries = publish(feeds, ["a", "bad", "c"])
    expected = publish(alone, ["a", "c"])
    assert [d for d in deliveries if d.subscriber != "bad"] == expected
    assert list(feeds.set_aside) == ["bad"]
    assert feeds.set_aside["bad"].startswith(reason)
    assert sum("bad is set aside" in record.getMessage() for record in caplog.records) == 1


@every_kind
def test_a_subscriber_set_aside_gets_nothing_until_it_is_enrolled_again(kind: str) -> None:
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
def test_a_failing_current_list_is_empty(kind: str) -> None:
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
def test_an_invalid_choice_sets_its_subscriber_aside(
    kind: str, chosen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DIVERSIFIERS, "bad-diversifier", BadDiversifier)
    feeds = enrolled(kind, {"bad": Policy(k=2, diversify=BadDiversifier(chosen=chosen)), "a": GOOD})
    assert publish(feeds, ["a", "bad"]) == publish(enrolled(kind, {"a": GOOD}), ["a"])
    assert "must choose at most 2 different indexes" in feeds.set_aside["bad"]


@every_kind
@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, "x", None], ids=str)
def test_an_invalid_rank_sets_its_subscriber_aside(
    kind: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DECAYS, "bad-decay", BadDecay)
    feeds = enrolled(kind, {"bad": Policy(k=2, decay=BadDecay(value=value)), "a": GOOD})
    assert publish(feeds, ["a", "bad"]) == publish(enrolled(kind, {"a": GOOD}), ["a"])
    assert "the fresh rank of e1 by bad-decay" in feeds.set_aside["bad"]


@every_kind
def test_too_many_sets_for_optimal_set_their_subscriber_aside(kind: str) -> None:
    limits = Limits(optimal_sets=10)
    bad = Policy(
        k=2, window={"name": "sliding", "length": "1h"}, diversify="optimal", limits=limits
    )
    feeds = enrolled(kind, {"bad": bad, "a": GOOD})
    deliveries = publish(feeds, ["a", "bad"])
    assert {d.event for d in deliveries if d.subscriber == "bad"} == {
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


@every_kind
def test_too_many_bands_set_their_subscriber_aside(kind: str) -> None:
    window = {"name": "sliding", "length": "1h"}
    lsh = {"name": "maxdivrel-lsh", "tables": 4, "rows": 1}
    bad = Policy(k=2, window=window, diversify=lsh, limits=Limits(lsh_keys=23))
    feeds = enrolled(kind, {"bad": bad, "a": GOOD})
    deliveries = publish(feeds, ["a", "bad"])
    assert {"e1", "e5"} <= {d.event for d in deliveries if d.subscriber == "bad"}
    # Table feeds notice it when a window grows.
    why = r"[67] events in 4 tables of maxdivrel-lsh are more than the limit lsh_keys = 23"
    assert re.search(why, feeds.set_aside["bad"])


@pytest.mark.parametrize("diversify", ["none", "divrank"])
def test_running_out_of_memory_affects_only_the_subscriber_with_the_large_window(
    diversify: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Policy(k=2, window={"name": "sliding", "length": 500}, diversify=diversify)
    feeds, alone = (enrolled("table", {"a": policy, "b": policy}) for _ in range(2))
    [cohort] = feeds.cohorts  # type: ignore[attr-defined]
    make_room = cohort.make_room

    def refuse(row: int, used: int) -> None:
        if row == 0 and cohort.head[0, HELD] > 3:
            raise MemoryError("no more")
        make_room(row, used)

    monkeypatch.setattr(cohort, "make_room", refuse)
    events = [Event(f"e{n}", {"a": n}, published_at=n, sequence=n) for n in range(1, 60)]
    offers = [
        (Match(name, event, 0.5, ()), Moment(event.published_us, event.sequence or 0))
        for event in events
        for name in "ab"
    ]
    deliveries, expected = feeds.offer_many(offers), alone.offer_many(offers)
    to_a, to_b = ([d for d in deliveries if d.subscriber == name] for name in "ab")
    expected_a, expected_b = ([d for d in expected if d.subscriber == name] for name in "ab")
    assert to_b == expected_b
    assert to_a == expected_a[: len(to_a)]
    assert feeds.set_aside == {"a": "MemoryError: no more"}


def test_too_many_pairs_set_their_subscriber_aside(
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
