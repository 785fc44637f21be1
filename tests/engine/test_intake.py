"""How a stream gets in: order, numbers, and ids that come once."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tidings import Engine, Event
from tidings.engine.intake import Intake
from tidings.model.dead_letter import BadRecord

EVENTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60)), max_size=30)


def event(name: object, at: int) -> Event:
    return Event(f"e{name}", {"x": 1}, published_at=at)


def taken(intake: Intake, events: list[Event]) -> list[tuple[str, int | None]]:
    steps = [step for event in events for step in intake.arrive(event)]
    return [(step.event.id, step.event.sequence) for step in steps if step.event]


def test_events_are_numbered_in_order_of_publication() -> None:
    intake = Intake(lateness_us=10_000_000)
    assert taken(intake, [event(1, 5), event(2, 3), event(3, 20)]) == [("e2", 1), ("e1", 2)]
    assert [step.event.id for step in intake.advance(30_000_000) if step.event] == ["e3"]
    assert (intake.now.us, intake.now.sequence) == (20_000_000, 3)


@given(EVENTS)
def test_ids_are_remembered_as_long_as_was_said(stream: list[tuple[int, int]]) -> None:
    intake, known, newest = Intake(remember_ids="10s"), dict[int, int](), -1
    refused = late = 0
    for name, at in stream:
        if name in known and known[name] > newest - 10:
            refused += 1
        else:
            known[name] = at
            late += at < newest
            newest = max(at, newest)
        intake.arrive(event(name, at))
    assert (len(intake.dead_letters), len(intake.late)) == (refused, late)


@given(EVENTS, st.integers(0, 30))
def test_it_goes_on_from_a_snapshot(stream: list[tuple[int, int]], cut: int) -> None:
    events = [event(*each) for each in stream]
    one, other = Intake(3_000_000, "10s"), Intake(3_000_000, "10s")
    first = taken(other, events[:cut])
    again = Intake.restored(json.loads(json.dumps(other.snapshot())))
    assert taken(one, events) == first + taken(again, events[cut:])
    assert again.snapshot() == one.snapshot()


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60), st.integers(0, 90)), max_size=30),
    st.sampled_from([None, "10s"]),
    st.booleans(),
)
def test_many_records_arrive_as_single_ones_do(
    stream: list[tuple[int, int, int]], remember_ids: str | None, ordered: bool
) -> None:
    if ordered:
        times = sorted(at for _, at, _ in stream)
        stream = [(number, at, 0) for number, at in enumerate(times)]
    events: list[Any] = [
        Event(f"e{name}", {"x": 1}, at, None if sequence > 30 else sequence)
        for name, at, sequence in stream
    ]
    one, many = Intake(remember_ids=remember_ids), Intake(remember_ids=remember_ids)
    single = [step for event in events for step in one.arrive(event)]
    together = [step for half in (events[:20], events[20:]) for step in many.arrive_many(half)]
    assert [s for s in together if s.event] == [s for s in single if s.event]
    # Each moment that a step without an event reaches is that of the event before it.
    assert [s.now for s in together][-1:] == [s.now for s in single][-1:]
    assert many.snapshot() == one.snapshot()
    assert list(many.late) == list(one.late)


def test_records_among_which_one_is_refused_arrive_one_by_one() -> None:
    intake = Intake()
    events: list[Any] = [event(number % 9, number) for number in range(10)]
    steps = intake.arrive_many(
        [*events, BadRecord({}, "no", 10), {"id": "e10", "published_at": 20, "attributes": {}}]
    )
    names = [step.event.id for step in steps if step.event]
    assert names == [f"e{number}" for number in [*range(9), 10]]
    assert len(intake.dead_letters) == 2


def test_ids_that_are_forgotten_take_no_room() -> None:
    intake = Intake(remember_ids="100s")
    for at in range(10_000):
        intake.arrive(event(at, at))
    assert len(intake.snapshot()["published"]) <= 2 * 1024
    for_ever = Intake()
    for at in range(10_000):
        for_ever.arrive(event(at, at))
    assert len(for_ever.snapshot()["published"]) == 10_000


def test_the_largest_number_leaves_room_for_those_that_follow():
    engine = Engine()
    for number, sequence in enumerate([(1 << 61) - 1, (1 << 60) - 1, None]):
        engine.publish(
            {"id": f"e{number}", "published_at": 0, "attributes": {}}
            | ({} if sequence is None else {"sequence": sequence})
        )
    [letter] = engine.dead_letters
    assert "so that the events after it can be numbered" in letter.reason
    Engine().restore(engine.snapshot())
