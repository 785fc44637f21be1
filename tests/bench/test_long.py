"""The long run without Spark: its stream, and what counts as flat."""

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tidings import Continuous, Engine, Event
from tidings.store import open_store

pytestmark = pytest.mark.bench
FILES = 12
Module = Callable[[str], Any]


@pytest.mark.parametrize(
    ("values", "flat"),
    [
        ([5.0] * 8, True),
        ([1, 5, 5, 5, 5, 5, 5, 5], True),
        ([9, 9, 5, 5, 5, 5, 5, 5], True),
        ([1, 2, 3, 4, 5, 6, 7, 8], False),
        ([5, 5, 5, 5, 5, 5, 9, 9], False),
        ([0, 0, 0, 0, 0, 0, 0, 1], False),
    ],
)
def test_a_series_is_flat_if_its_last_quarter_is_like_its_second(
    module: Module, values: list[float], flat: bool
) -> None:
    hours = [n / 60 for n in range(len(values))]
    assert module("watching").trend(hours, values)["flat"] is flat


def test_growth_is_told_by_the_hour(module: Module) -> None:
    hours = [n / 60 for n in range(60)]
    assert module("watching").trend(hours, [3 * n for n in hours])["an_hour"] == pytest.approx(3)


def test_whatever_grows_is_named(module: Module) -> None:
    long = module("long")
    names = [*long.FIGURES, *long.GROWING]
    same = [{"hours": float(n)} | dict.fromkeys(names, 5.0) for n in range(8)]
    assert long.judged(same)["flat"]
    for name in names:
        grown = [each | {name: each["hours"]} for each in same]
        found = long.judged(grown)
        excused = name in long.EXCUSED or name in long.GROWING
        assert found["growing"] == ([] if excused else [name])


def test_processes_are_seen_from_outside(module: Module) -> None:
    watching = module("watching")
    found = watching.processes(os.getpid())
    assert found["driver"] == [os.getpid()]
    assert watching.memory(found["driver"])["rss"] > 10**7
    assert watching.entries("fd", found["driver"]) > 2
    assert watching.entries("task", [0]) == 0


@pytest.fixture
def files(module: Module) -> list[list[Event]]:
    return list(module("days").stream(module("days").Days(30), FILES))


def test_all_events_come_and_only_what_should_is_late_or_there_twice(
    module: Module, files: list[list[Event]]
) -> None:
    engine, days = Engine(lateness=module("days").LATENESS), module("days")
    for events in files:
        engine.publish_many(events)
    times = Counter(event.id for events in files for event in events)
    due = {f"e{number}-{at}" for number in range(FILES - 1) for at in range(30)}
    assert due <= times.keys()
    again = {name for name, count in times.items() if count > 1}
    assert len(engine.dead_letters) == sum(times.values()) - len(times)
    assert again
    late = {event.id for event in engine.late}
    ends = {event.id: (event.published_us / 1e6) % days.FILE_S for event in engine.late}
    gaps = [days.FILE_S - each for each in ends.values()]
    assert late
    assert all(days.LATEST_LATE_S < gap < days.EARLIEST_LATE_S for gap in gaps)


def test_numbers_grow_with_time_and_files_are_drawn_anew(
    module: Module, files: list[list[Event]]
) -> None:
    everything = sorted(
        {event.id: event for events in files for event in events}.values(),
        key=lambda event: event.published_us,
    )
    numbers = [event.sequence for event in everything]
    assert numbers == sorted(numbers, key=lambda each: each or 0)
    assert files == list(module("days").stream(module("days").Days(30), FILES))


def test_no_policy_grows_by_design(module: Module) -> None:
    policies = module("days").POLICIES
    assert len(policies) == 48
    assert sum(each.diversify.name != "none" for each in policies) == 22
    endless = [each for each in policies if each.window == Continuous()]
    assert {each.diversify.name for each in endless} == {"none"}


def test_changes_leave_as_much_and_whom_they_should(module: Module, tmp_path: Any) -> None:
    days = module("days")
    everybody = days.people(60)
    calm = {person.id for person in days.steady(everybody)}
    with open_store(tmp_path / "people.db") as store:
        store.catalogue.load(
            each for person in everybody for each in (person, *days.wishes(person.id))
        )
        before = store.catalogue.version()
        changes = days.Changes(store, everybody)
        for _ in range(days.GUESTS + 20):
            changes.make()
        touched = set(store.history.touched(before, store.catalogue.version()))
        assert not touched & calm
        assert touched & {person.id for person in everybody}
        guests = store.catalogue.page("subscriber", after="guest", limit=1000)
        assert sum(each.id.startswith("guest") for each in guests) == days.GUESTS
