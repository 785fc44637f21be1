"""One event, one policy or one broken call never takes anything from the others."""

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import pytest

from tidings import (
    Engine,
    Event,
    InvalidSubscription,
    Limits,
    Policy,
    Relaxed,
    Sliding,
    Subscriber,
    Subscription,
    TidingsError,
)
from tidings.diversify import EventHashes
from tidings.engine.engine import RECORDS
from tidings.engine.intake import Latest
from tidings.errors import MESSAGE_BYTES

KINDS = [("scan", "plain"), ("scan", "table"), ("access", "plain"), ("access", "table")]
both = pytest.mark.parametrize(("index", "feeds"), KINDS)


class Broken(Exception):
    """What only a user's own code raises."""


def engine_of(index: str = "scan", feeds: str = "plain", **settings: Any) -> Engine:
    engine = Engine(index=index, feeds=feeds, **settings)
    engine.subscribe(Subscriber("ann", Policy(k=3, window=Sliding(5))))
    engine.add(Subscription("s1", "ann", "x >= 0"))
    return engine


def event(n: int, at: float | None = None) -> Event:
    return Event(f"e{n}", {"x": n}, published_at=n if at is None else at)


def ids(deliveries: Any) -> list[str]:
    return [delivery.event for delivery in deliveries]


def broken_after(n: int) -> Iterator[Event]:
    yield from (event(each) for each in range(n))
    raise Broken


@both
@pytest.mark.parametrize("taken", [0, 2, RECORDS, RECORDS + 3])
def test_a_stream_that_breaks_can_be_published_again(index: str, feeds: str, taken: int) -> None:
    engine, whole = engine_of(index, feeds), engine_of(index, feeds)
    with pytest.raises(Broken):
        engine.publish_many(broken_after(taken))
    everything = [event(each) for each in range(taken + 2)]
    assert engine.publish_many(everything) == whole.publish_many(everything)
    assert len(engine.dead_letters) == taken // RECORDS * RECORDS


def test_what_a_broken_call_delivered_survives_a_restart() -> None:
    engine, again = engine_of(), engine_of()
    with pytest.raises(Broken):
        engine.publish_many(broken_after(RECORDS))
    again.restore(json.loads(json.dumps(engine.snapshot())))
    assert len(again.advance(0)) == RECORDS
    assert again.advance(0) == []


@dataclass(frozen=True)
class Flaky:
    """An aggregate that fails for a weight of 7, or returns an invalid rank."""

    answer: Any = None

    def __call__(self, weights: Any) -> Any:
        if 7.0 in weights:
            if self.answer is None:
                raise Broken("seven")
            return self.answer
        return max(weights)


@both
@pytest.mark.parametrize("answer", [None, float("nan"), -1.0, float("inf"), "best"])
def test_a_scorer_that_fails_sets_its_subscriber_aside(
    index: str, feeds: str, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    engine = engine_of(index, feeds)
    poison = Policy(k=3, scorer=Relaxed(Flaky(answer)), window=Sliding(5))
    engine.subscribe(Subscriber("eve", poison))
    engine.add(Subscription("s2", "eve", any=[["x >= 0", 1], ["x = 2", 7]]))
    with caplog.at_level(logging.WARNING, "tidings"):
        found = engine.publish_many([event(n) for n in range(4)])
    per = {who: ids(d for d in found if d.subscriber == who) for who in ("ann", "eve")}
    assert per == {"ann": ["e0", "e1", "e2", "e3"], "eve": ["e0", "e1"]}
    assert [*engine.set_aside] == ["eve"]
    [letter] = engine.dead_letters
    assert "subscriber eve was set aside" in letter.reason
    assert ["eve" in record.getMessage() for record in caplog.records] == [True]
    engine.replace(Subscriber("eve", Policy(k=3, window=Sliding(5))))
    assert engine.set_aside == {}
    healthy = engine.publish(Event("e9", {"x": 2}, published_at=9))
    assert sorted(each.subscriber for each in healthy) == ["ann", "eve"]


@both
def test_the_reason_of_a_failure_is_short_and_can_be_printed(index: str, feeds: str) -> None:
    def fail(weights: Sequence[float]) -> float:
        raise Broken("\ud800" + "x" * 5_000)

    engine = engine_of(index, feeds)
    engine.subscribe(Subscriber("eve", Policy(scorer=Relaxed(aggregate=fail))))
    engine.add(Subscription("s2", "eve", "x >= 0"))
    assert [due.subscriber for due in engine.publish(Event("e1", {"x": 1}, 1))] == ["ann"]
    assert len(engine.set_aside["eve"].encode()) <= MESSAGE_BYTES
    assert len(engine.dead_letters[0].reason.encode()) <= MESSAGE_BYTES


def test_an_event_that_no_stage_can_take_is_a_dead_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of()
    matches = engine._stages.matcher.matches

    def failing(each: Event) -> Any:
        if each.id == "e1":
            raise Broken("one")
        return matches(each)

    monkeypatch.setattr(engine._stages.matcher, "matches", failing)
    assert ids(engine.publish_many([event(0), event(1), event(2, 1)])) == ["e0", "e2"]
    assert "event e1: the stages failed: Broken: one" in engine.dead_letters[0].reason
    monkeypatch.undo()
    assert ids(engine.publish(event(1))) == ["e1"]


def test_the_engine_refuses_to_be_called_by_what_it_calls() -> None:
    engine = engine_of()
    calling = Relaxed(lambda _: len(engine.feed("ann")))
    engine.subscribe(Subscriber("eve", Policy(scorer=calling)))
    engine.add(Subscription("s2", "eve", "x >= 0"))
    assert [delivery.subscriber for delivery in engine.publish(event(1))] == ["ann"]
    assert "from within one of its own calls" in engine.set_aside["eve"]


def test_an_iterator_may_call_the_engine() -> None:
    engine = engine_of()

    def stream() -> Iterator[Event]:
        for n in range(3):
            engine.feed("ann")
            engine.publish(event(10 + n, n))
            yield event(n)

    engine.publish_many(stream())
    assert [event.id for event in engine.late] == ["e0", "e1"]  # what it published was newer
    assert engine.dead_letters == []


def test_an_event_without_a_time_gets_that_of_the_clock_and_is_never_late() -> None:
    now = [100.0]
    engine = engine_of(clock=lambda: now[0])
    bare = {"id": "a", "attributes": {"x": 1}}
    assert [delivery.delivered_us for delivery in engine.publish(bare)] == [100_000_000]
    now[0] = 90.0
    assert [delivery.delivered_us for delivery in engine.publish(bare | {"id": "b"})] == [
        100_000_000
    ]
    engine.advance("9999-12-31T23:59:59.999999Z")
    assert ids(engine.publish(bare | {"id": "c"})) == ["c"]
    assert engine.late == []
    assert engine.target({"id": "q", "attributes": {"x": 1}}) == [("s1", 1.0)]


def test_an_event_of_the_far_future_moves_no_watermark() -> None:
    engine = engine_of(future="5m", clock=lambda: 1000)
    far = Event("far", {"x": 1}, published_at="9999-01-01")
    assert ids(engine.publish_many([far, event(1, 1300), event(2, 1301), event(3, 1300)])) == [
        "e1",
        "e3",
    ]
    reasons = [letter.reason for letter in engine.dead_letters]
    assert "future = 5m is allowed" in reasons[0]
    assert "1s ahead" in reasons[1].replace("5m1s", "5m 1s")
    assert engine.late == []


def test_late_events_are_counted_and_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    engine = engine_of(limits=Limits(kept_letters=3))
    with caplog.at_level(logging.WARNING, "tidings"):
        engine.publish_many([event(9), *(event(n, 1) for n in range(5))])
    assert [event.id for event in engine.late] == ["e2", "e3", "e4"]
    assert engine.late.total == 5
    assert len(caplog.records) == 1
    again = engine_of()
    again.restore(json.loads(json.dumps(engine.snapshot())))
    assert again.late.total == 5
    engine.late.clear()
    assert (list(engine.late), engine.late.total) == ([], 5)


def test_all_that_is_refused_is_returned_however_much_is_kept() -> None:
    engine = Engine(limits=Limits(kept_letters=3))
    refused = engine.add_many([{"id": f"s{n}"} for n in range(10)])
    assert [letter.record["id"] for letter in refused] == [f"s{n}" for n in range(10)]
    assert (len(engine.dead_letters), engine.dead_letters.total) == (3, 10)


def test_limits_hold_for_forms_and_for_objects() -> None:
    engine = Engine(limits=Limits(k=5, conjunctions=2, any_predicates=1, attributes=1))
    with pytest.raises(TidingsError, match="limit k = 5"):
        engine.subscribe(Subscriber("ann", Policy(k=6)))
    with pytest.raises(TidingsError, match="limit k = 5"):
        engine.subscribe({"id": "ann", "policy": {"k": 6}})
    with pytest.raises(TidingsError, match="limit conjunctions = 2"):
        engine.add(Subscription("s", "ann", "x = 1 or x = 2 or y = 3"))
    with pytest.raises(TidingsError, match="limit any_predicates = 1"):
        engine.add(Subscription("s", "ann", any=[["x = 1", 1], ["y = 1", 1]]))
    engine.publish(Event("e", {"x": 1, "y": 2}, published_at=0))
    assert "limit attributes = 1" in engine.dead_letters[-1].reason


@pytest.mark.parametrize(
    ("limit", "condition", "value"),
    [
        ("string_bytes", None, "x" * 81),
        ("record_bytes", None, ["xxxxx"] * 9),
        ("list_values", None, list(range(9))),
        ("conjunction_predicates", " and ".join(f"a{number} = 1" for number in range(9)), None),
        ("in_values", f"a in {tuple(range(9))}", None),
        ("predicates", " or ".join(f"a{number} = 1" for number in range(9)), None),
    ],
)
def test_values_of_objects_are_within_the_limits_of_their_engine(
    limit: str, condition: str | None, value: Any
) -> None:
    engine = Engine(limits=Limits(**{limit: 80 if "bytes" in limit else 8}))
    engine.subscribe(Subscriber("ann", Policy()))
    if condition:
        for wish in (Subscription("s", "ann", condition), {"id": "s", "where": condition}):
            form = wish if isinstance(wish, Subscription) else wish | {"subscriber": "ann"}
            with pytest.raises(InvalidSubscription, match=rf"subscription s: .*limit {limit} = 8"):
                engine.add(form)
    else:
        fine = [Event(f"e{number}", {"a": 1}, number) for number in range(9)]
        engine.publish_many([*fine, Event("e9", {"a": value}, 9)])
        engine.publish({"id": "e10", "published_at": 10, "attributes": {"a": value}})
        reasons = [letter.reason for letter in engine.dead_letters]
        assert [reason.count(f"limit {limit} = 8") for reason in reasons] == [1, 1]


@both
def test_a_change_that_fails_changes_nothing(
    index: str, feeds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, twin = engine_of(index, feeds), engine_of(index, feeds)
    inside = engine._stages

    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(inside.feeds, "enrol", fail)
        for command in (engine.subscribe, engine.replace):
            name = "bob" if command == engine.subscribe else "ann"
            with pytest.raises(TidingsError, match="MemoryError"):
                command(Subscriber(name, Policy(k=1)))
    with monkeypatch.context() as patch:
        patch.setattr(inside.matcher, "_add_to_index", fail)
        with pytest.raises(TidingsError, match="MemoryError"):
            engine.add(Subscription("s2", "ann", "x = 1"))
    with pytest.raises(InvalidSubscription, match="there is no subscription"):
        engine.replace(Subscription("s2", "ann", "x = 1"))
    engine.dead_letters.clear()
    assert engine.snapshot() == twin.snapshot()
    engine.add(Subscription("s2", "ann", "x = 1"))
    twin.add(Subscription("s2", "ann", "x = 1"))
    assert engine.publish(event(1)) == twin.publish(event(1))


class Loud(dict[str, Any]):
    """A mapping that fails when it is looked at."""

    def __iter__(self) -> Iterator[str]:
        raise Broken

    def __contains__(self, _: object) -> bool:
        raise Broken

    def __getitem__(self, _: object) -> Any:
        raise Broken


class Hidden:
    """An object that refuses to show its class."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise Broken


class Endless(list[Any]):
    """A list whose members never end, whatever its length."""

    def __iter__(self) -> Iterator[Any]:
        return repeat(1)


LOOP: dict[str, Any] = {}
LOOP["loop"] = LOOP
ODD: list[Any] = [
    *(None, True, -1, 0, 2**63, 10**400, 1.5, float("nan"), float("inf"), "", "x", b"x", "\ud800"),
    *([], {}, set(), [[]], {"id": []}, {"id": "e", "attributes": []}, object(), Event, LOOP),
    *(Loud(), Loud(a=1), lambda: 1, {"subscriber": 1}, {"id": "s", "subscriber": {}}, ["s1"]),
    *(Hidden(), [Hidden()], {"id": "e", "attributes": {"a": Endless([1, 2])}}),
]
CALLS: list[Any] = [
    lambda engine, odd: engine.subscribe(odd),
    lambda engine, odd: engine.unsubscribe(odd),
    lambda engine, odd: engine.add(odd),
    lambda engine, odd: engine.add_many(odd),
    lambda engine, odd: engine.add_many([odd]),
    lambda engine, odd: engine.remove(odd),
    lambda engine, odd: engine.replace(odd),
    lambda engine, odd: engine.publish(odd),
    lambda engine, odd: engine.publish(Endless([odd])),
    lambda engine, odd: engine.publish_many(odd),
    lambda engine, odd: engine.publish_table(odd),
    lambda engine, odd: engine.match_counts(odd),
    lambda engine, odd: engine.match_counts([odd]),
    lambda engine, odd: engine.advance(odd),
    lambda engine, odd: engine.feed(odd),
    lambda engine, odd: engine.target(odd),
    lambda engine, odd: engine.target(event(1), k=odd),
    lambda engine, odd: engine.target(event(1), scorer=odd),
    lambda engine, odd: engine.explain(odd, "e1"),
    lambda engine, odd: engine.explain("ann", odd),
    lambda engine, odd: engine.explain_target(odd, event(1)),
    lambda engine, odd: engine.explain_target("s1", odd),
    lambda engine, odd: engine.explain_target("s1", event(1), k=odd),
    lambda engine, odd: Engine(lateness=odd),
    lambda engine, odd: Engine(remember=odd),
    lambda engine, odd: Engine(index=odd),
    lambda engine, odd: Engine(feeds=odd),
    lambda engine, odd: Engine(remember_ids=odd),
    lambda engine, odd: Engine(limits=odd),
    lambda engine, odd: Engine(future=odd),
    lambda engine, odd: Engine(default_policy=odd),
    lambda engine, odd: Engine(clock=odd).publish({"id": "e", "attributes": {}}),
]


@pytest.mark.fuzz
@pytest.mark.parametrize("call", CALLS)
def test_no_argument_raises_a_foreign_error(call: Any) -> None:
    engine = engine_of("access", "table")
    engine.publish(event(1))
    for odd in ODD:
        try:
            call(engine, odd)
        except TidingsError:
            pass
        except Broken:
            assert isinstance(odd, Loud)
    json.dumps(engine.snapshot())
    engine.restore(json.loads(json.dumps(engine.snapshot())))


def test_the_latest_are_a_sequence() -> None:
    latest = Latest(3, range(5))
    assert [*latest] == [2, 3, 4]
    assert (latest[0], latest[1:], len(latest)) == (2, [3, 4], 3)
    assert latest != "234"
    assert repr(latest) == "[2, 3, 4]"


def poisoned(add_many: Any) -> Any:
    """Return a way to hash events that fails for some of them."""

    def failing(hashes: EventHashes, events: Sequence[Event]) -> list[int]:
        if bad := [event.id for event in events if event.id in ("e3", "e11")]:
            raise Broken(bad[0])
        added: list[int] = add_many(hashes, events)
        return added

    return failing


def diverse_engine(*, ruled: bool = False) -> Engine:
    """Return an engine whose second cohort compares events, and the first does not."""
    engine = Engine(index="access", feeds="table")
    rules = [{"name": "quota", "n": 9, "per": "day"}] if ruled else []
    engine.subscribe(Subscriber("ann", Policy(k=3, window=Sliding(5), rules=rules)))
    engine.subscribe(Subscriber("bob", Policy(k=3, window=Sliding(5), diversify="divrank")))
    for name in ("ann", "bob"):
        engine.add(Subscription(f"s-{name}", name, "x >= 0"))
    return engine


@pytest.mark.parametrize("ruled", [False, True])
def test_only_the_events_that_make_a_stage_fail_are_dead_letters(
    monkeypatch: pytest.MonkeyPatch, ruled: bool
) -> None:
    """A run of many events goes on without them, as if they had never been published."""
    engine, twin = diverse_engine(ruled=ruled), diverse_engine(ruled=ruled)
    stream = [event(n) for n in range(20)]
    expected = twin.publish_many([each for each in stream if each.id not in ("e3", "e11")])
    with monkeypatch.context() as patch:
        patch.setattr(EventHashes, "add_many", poisoned(EventHashes.add_many))
        delivered = engine.publish_many(stream)
    assert delivered == expected
    assert [letter.reason for letter in engine.dead_letters] == [
        f"event {name}: the stages failed: Broken: {name}" for name in ("e3", "e11")
    ]
    later = [event(n) for n in range(20, 30)]
    assert engine.publish_many(later) == twin.publish_many(later)
    assert engine.explain("bob", "e12") == twin.explain("bob", "e12")


def test_a_failure_after_windows_have_changed_refuses_what_was_offered_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = diverse_engine()

    def fail(*_: object) -> None:
        raise Broken("windows")

    with monkeypatch.context() as patch:
        patch.setattr(engine._stages.feeds, "offer_prepared", fail)
        assert engine.publish_many([event(n) for n in range(4)]) == []
    reason = "event e0, e1, e2, e3: the stages failed: Broken: windows"
    assert [letter.reason for letter in engine.dead_letters] == [reason] * 4
    assert ids(engine.publish(event(9))) == ["e9", "e9"]
