"""Bisection of failures in the match stage: culprits are named, and everything else is sent."""

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.spark.match_stage.test_stage import batches, matches, sent

from tidings import Event, Policy, Subscriber, Subscription
from tidings.errors import InvalidPolicy, StoreError
from tidings.formats.arrow import read_valid_events
from tidings.index_files.mapped_file import Damaged
from tidings.index_files.mapped_matcher import build_base, ranked_by_index
from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.index_files.subscriber_bundle import SubscriberBundle, bundle_subscribers
from tidings.model.dead_letter import BadRecord, Culprit, Finished
from tidings.model.records import PublicationTime
from tidings.rank.matcher import Matcher
from tidings.score.exact import Exact
from tidings.score.preference import Preference
from tidings.score.relaxed import Relaxed
from tidings.spark.bisect_failures import FATAL, bisect
from tidings.spark.match_stage.matcher_source import PickledSource
from tidings.spark.match_stage.results import TargetStage, match_batches
from tidings.spark.match_stage.stage import NOW, MatchStage, match_by_bucket

EVENTS = [Event(f"e{at:02}", {"n": at}, at) for at in range(20)]
POISON = {"e03", "e04", "e11", "e19"}


def ids(events: Sequence[Event]) -> list[str]:
    if bad := POISON.intersection(event.id for event in events):
        raise TypeError(f"odd {min(bad)}")
    return [event.id for event in events]


def test_culprits_are_found_and_the_others_are_finished():
    results = list(bisect(ids, EVENTS))
    culprits = [each for each in results if isinstance(each, Culprit)]
    assert [(each.item.id, each.reason) for each in culprits] == [
        (name, f"TypeError: odd {name}") for name in sorted(POISON)
    ]
    finished = [id for each in results if isinstance(each, Finished) for id in each.result]
    assert finished == [event.id for event in EVENTS if event.id not in POISON]


def test_a_computation_that_works_is_one_call():
    calls: list[Any] = []
    assert list(bisect(calls.append, EVENTS)) == [Finished(EVENTS, None)]
    assert calls == [EVENTS]


@given(st.lists(st.integers(0, 20), max_size=5))
def test_any_split_finds_the_same_culprits(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), 20]
    parts = [EVENTS[a:b] for a, b in itertools.pairwise(edges)]
    results = [each for part in parts for each in bisect(ids, part)]
    assert {each for each in results if isinstance(each, Culprit)} == {
        each for each in bisect(ids, EVENTS) if isinstance(each, Culprit)
    }


@pytest.mark.parametrize("kind", FATAL)
def test_a_fatal_error_stops_the_batch(kind: type[Exception]) -> None:
    def compute(_: object) -> None:
        raise kind("gone")

    with pytest.raises(kind):
        list(bisect(compute, EVENTS))
    assert issubclass(FileNotFoundError, OSError)
    assert {Damaged, StoreError, MemoryError} <= {*FATAL}


def test_a_failure_without_items_is_not_blamed_on_them():
    def compute(events: Sequence[Event]) -> None:
        raise KeyError(f"a broken index, {len(events)}")

    with pytest.raises(KeyError, match="a broken index, 20"):
        list(bisect(compute, EVENTS))


def broken(batch: pa.RecordBatch) -> Iterator[Event | BadRecord]:
    """Read events, some of them with values of an unknown type."""
    for event in read_valid_events(batch):
        if isinstance(event, Event) and event.id in POISON:
            published = PublicationTime.read(event.published_at)
            yield Event.known(event.id, {"n": object()}, published, None)
        else:
            yield event


MEMBERS = bundle_subscribers(
    [Subscriber("ann"), Subscriber("bob", Policy(scorer=Relaxed()))],
    [Subscription("a", "ann", "n >= 0"), Subscription("b", "bob", "n < 100")],
)


def test_an_event_that_cannot_be_matched_is_a_dead_letter():
    stage = MatchStage(PickledSource.of(MEMBERS), broken, 2, streams=True)
    rows = sent(stage, batches(EVENTS, size=7))
    matched = {match[0] for match in matches(rows)}
    assert matched == {event.id for event in EVENTS} - POISON
    dead = [json.loads(row["body"]) for row in rows if row["kind"] == "dead"]
    assert sorted(each["event"] for each in dead) == sorted(POISON)
    assert all(each["reason"].startswith("the event cannot be matched: ") for each in dead)
    ticks = [row["published_us"] for row in rows if row["kind"] in ("matches", "tick")]
    assert max(ticks) == 18_000_000  # the last one, e19, is a dead letter and moves no watermark


def test_matches_and_targets_skip_events_that_cannot_be_matched():
    matched = [
        each["event"]
        for batch in match_batches(PickledSource.of(MEMBERS), broken, batches(EVENTS))
        for each in batch.to_pylist()
    ]
    assert {*matched} == {event.id for event in EVENTS} - POISON
    targets = TargetStage(PickledSource.of(MEMBERS), broken, 1, Exact())
    best = [row["event"] for b in targets.batches(batches(EVENTS)) for row in b.to_pylist()]
    assert best == [event.id for event in EVENTS if event.id not in POISON]


def fails_for_two(weights: Sequence[float]) -> float:
    if len(weights) == 2:
        raise ZeroDivisionError("odd weights")
    return sum(weights)


def infinite(_: Sequence[float]) -> float:
    return float("inf")


def with_poison() -> list[Any]:
    poison = Subscriber("pat", Policy(scorer=Relaxed(fails_for_two)))
    infinite_rank = Subscriber("quin", Policy(scorer=Relaxed(infinite)))
    owned = [
        Subscription("p", "pat", any=[("n = 7", 1.0), ("n >= 5", 1.0)]),
        Subscription("q", "quin", "n = 3"),
    ]
    return [*MEMBERS, *bundle_subscribers([poison, infinite_rank], owned)]


def test_a_scorer_that_fails_costs_only_its_owner_that_event():
    rows = sent(
        MatchStage(PickledSource.of(with_poison()), read_valid_events, 2), batches(EVENTS, size=6)
    )
    pairs = [(name, event) for event, name, *_ in matches(rows)]
    for name in ("ann", "bob"):
        assert sorted(event for owner, event in pairs if owner == name) == [e.id for e in EVENTS]
    assert sorted(event for owner, event in pairs if owner == "pat") == [
        event.id for event in EVENTS if event.attributes["n"] >= 5 and event.id != "e07"
    ]
    dead = [json.loads(row["body"]) for row in rows if row["kind"] == "dead"]
    assert sorted(each["reason"] for each in dead) == [
        (
            "subscriber 'pat' did not get event 'e07': its scorer failed: "
            "ZeroDivisionError: odd weights"
        ),
        (
            "subscriber 'quin' did not get event 'e03': its scorer failed: a scorer must return a "
            "rank between 0 and 1e+150, not inf"
        ),
    ]
    assert {each["record"]["subscriber"] for each in dead} == {"pat", "quin"}


def test_a_scorer_that_cannot_be_prepared_fails_only_for_its_owners_matches():
    class Unready(Relaxed):
        def prepare(self, owned: Any, prefers: Any) -> Any:
            raise LookupError("not ready")

    one = bundle_subscribers(
        [Subscriber("una", Policy(scorer=Unready(infinite)))], [Subscription("u", "una", "n = 5")]
    )
    matched = match_by_bucket(PickledSource.of([*MEMBERS, *one]).matcher(0), EVENTS, 1)
    assert [
        (failure.event.id, failure.subscriber, failure.reason) for failure in matched.unranked
    ] == [("e05", "una", "LookupError: not ready")]
    assert matched.matches == 40


def clocked(events: Sequence[Event], now_s: int) -> list[pa.RecordBatch]:
    """Return batches with the time of the micro-batch."""
    return [
        batch.append_column(NOW, pa.array([now_s * 1_000_000] * batch.num_rows, pa.int64()))
        for batch in batches(list(events), size=8)
    ]


def test_an_event_far_ahead_of_the_clock_is_a_dead_letter_and_moves_no_watermark():
    far = Event("far", {"n": 1}, "9999-12-31T23:59:59Z")
    events = [*EVENTS, far]
    stage = MatchStage(
        PickledSource.of(MEMBERS), read_valid_events, 2, streams=True, future_us=5_000_000
    )
    rows = sent(stage, clocked(events, now_s=10))
    assert {match[0] for match in matches(rows)} == {f"e{at:02}" for at in range(16)}
    dead = [json.loads(row["body"]) for row in rows if row["kind"] == "dead"]
    assert sorted(each["record"]["id"] for each in dead) == ["e16", "e17", "e18", "e19", "far"]
    assert (
        "published_at 9999-12-31T23:59:59Z is more than 5 s ahead of the clock, which says "
        "1970-01-01T00:00:10Z; the option `future` sets how much"
    ) in [each["reason"] for each in dead]
    ticks = [row["published_us"] for row in rows if row["kind"] in ("matches", "tick")]
    assert max(ticks) == 15_000_000
    again = sent(stage, clocked(events, now_s=10))
    assert [row["body"] for row in again if row["kind"] == "dead"] == [
        row["body"] for row in rows if row["kind"] == "dead"
    ]
    later = sent(stage, clocked(EVENTS, now_s=15))
    assert not [row for row in later if row["kind"] == "dead"]


def test_without_a_clock_nothing_is_ahead():
    events = [Event("far", {"n": 1}, "9999-12-31T23:59:59Z")]
    for stage in (
        MatchStage(PickledSource.of(MEMBERS), read_valid_events, 1, future_us=1),
        MatchStage(PickledSource.of(MEMBERS), read_valid_events, 1),
    ):
        assert matches(sent(stage, batches(events)))
    assert matches(
        sent(MatchStage(PickledSource.of(MEMBERS), read_valid_events, 1), clocked(events, 0))
    )


def test_the_matcher_of_an_engine_sets_owners_aside():
    matcher = Matcher(index="access")
    for member in with_poison():
        assert member.subscriber
        matcher.subscribe(member.subscriber)
        matcher.add_many(member.subscriptions)
    matcher.match_many(EVENTS)
    assert matcher.set_aside.keys() == {"pat", "quin"}


@pytest.mark.parametrize("sealed", [False, True])
def test_a_subscriber_that_cannot_be_compiled_is_ranked_by_its_own_scorer(
    sealed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    owned = [Subscription(f"s{name}", name, "n >= 3", prefrank=0.5) for name in ("ann", "bob")]
    bundles = bundle_subscribers([Subscriber("ann"), Subscriber("bob")], owned)
    expected = ranks(matcher_of(bundles, sealed=sealed))
    worths = Preference.weighted_prefranks

    def failing(self: Preference, subscriptions: Any, prefers: Any) -> list[float]:
        if any(subscription.subscriber == "bob" for subscription in subscriptions):
            raise LookupError("no such worth")
        return worths(self, subscriptions, prefers)

    def unprepared(*_: object) -> Any:
        raise LookupError("no such cover")

    monkeypatch.setattr(Preference, "weighted_prefranks", failing)
    assert ranks(matcher_of(bundles, sealed=sealed)) == expected
    monkeypatch.setattr(Preference, "prepare", unprepared)
    matcher = matcher_of(bundles, sealed=sealed)
    for _ in range(2):  # a second batch names them as well
        matched = match_by_bucket(matcher, EVENTS, 1)
        assert {(failure.subscriber, failure.reason) for failure in matched.unranked} == {
            ("bob", "LookupError: no such cover")
        }
        assert [failure.event for failure in matched.unranked] == EVENTS[3:]
    assert ranks(matcher) == {key: rank for key, rank in expected.items() if key[0] == "ann"}


def matcher_of(bundles: Sequence[SubscriberBundle], *, sealed: bool) -> OverlayMatcher:
    return (
        OverlayMatcher(build_base(bundles)) if sealed else OverlayMatcher(build_base([]), bundles)
    )


def ranks(matcher: OverlayMatcher) -> dict[tuple[str, str], float]:
    batch = match_by_bucket(matcher, EVENTS, 1).batches[0]
    matches = batch.matches
    names = [str(name) for name in batch.subscribers]
    columns = (matches.events, matches.subscribers, matches.ranks)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {(names[owner], batch.events[event]): rank for event, owner, rank in rows}


def derived_scorer() -> Any:
    """Return a scorer that derives from a built-in one but ranks otherwise."""

    @dataclass(frozen=True)
    class Halved(Exact):
        def prepare(self, subscriptions: Any, prefers: Any) -> Any:
            inner: Any = super().prepare(subscriptions, prefers)
            return SimpleNamespace(
                rank=lambda event, hits: inner.rank(event, hits) / 2,
                score=lambda event, hit: inner.score(event, hit) / 2,
            )

    return Halved()


def test_a_scorer_derived_from_a_built_in_one_is_not_mistaken_for_it() -> None:
    owned = [Subscription(f"s{name}", name, "n >= 3", score=0.5) for name in ("ann", "bob")]
    subscribers = [
        Subscriber("ann", Policy(scorer=Exact())),
        Subscriber("bob", Policy(scorer=derived_scorer())),
    ]
    bundles = bundle_subscribers(subscribers, owned)
    with pytest.raises(
        InvalidPolicy,
        match=r"the policy of subscriber bob cannot be written .*Halved.* registered",
    ):
        build_base(bundles)
    by_pair = ranks(matcher_of(bundles, sealed=False))
    assert {name: by_pair[name, "e07"] for name in ("ann", "bob")} == {"ann": 0.5, "bob": 0.25}
    matcher = Matcher(subscribers, owned, index="access")
    assert matcher.top(EVENTS[7], 1, derived_scorer()) == [("sann", 0.25)]
    assert not ranked_by_index(derived_scorer())
