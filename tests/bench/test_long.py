"""The long run without Spark: its stream, and its test for growth."""

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


def test_growth_is_measured_per_hour(module: Module) -> None:
    hours = [n / 60 for n in range(60)]
    assert module("watching").trend(hours, [3 * n for n in hours])["an_hour"] == pytest.approx(3)


def test_growing_figures_are_named(module: Module) -> None:
    long = module("long")
    names = [*long.FIGURES, *long.GROWING]
    same = [{"hours": float(n)} | dict.fromkeys(names, 5.0) for n in range(8)]
    assert long.judged(same)["flat"]
    for name in names:
        grown = [sample | {name: sample["hours"]} for sample in same]
        verdict = long.judged(grown)
        excused = name in long.EXCUSED or name in long.GROWING
        assert verdict["growing"] == ([] if excused else [name])


def test_processes_are_measured_from_outside(module: Module) -> None:
    watching = module("watching")
    processes = watching.processes(os.getpid())
    assert processes["driver"] == [os.getpid()]
    assert watching.memory(processes["driver"])["rss"] > 10**7
    assert watching.entries("fd", processes["driver"]) > 2
    assert watching.entries("task", [0]) == 0


@pytest.fixture
def files(module: Module) -> list[list[Event]]:
    return list(module("days").stream(module("days").Days(30), FILES))


def test_all_events_are_there_and_some_are_late_or_duplicate(
    module: Module, files: list[list[Event]]
) -> None:
    engine, days = Engine(lateness=module("days").LATENESS), module("days")
    for events in files:
        engine.publish_many(events)
    counts = Counter(event.id for events in files for event in events)
    due = {f"e{file}-{number}" for file in range(FILES - 1) for number in range(30)}
    assert due <= counts.keys()
    duplicates = {name for name, count in counts.items() if count > 1}
    assert len(engine.dead_letters) == sum(counts.values()) - len(counts)
    assert duplicates
    late = {event.id for event in engine.late}
    ends = {event.id: (event.published_us / 1e6) % days.FILE_S for event in engine.late}
    gaps = [days.FILE_S - end for end in ends.values()]
    assert late
    assert all(days.LATEST_LATE_S < gap < days.EARLIEST_LATE_S for gap in gaps)


def test_sequence_numbers_follow_time_and_the_stream_is_reproducible(
    module: Module, files: list[list[Event]]
) -> None:
    unique = sorted(
        {event.id: event for events in files for event in events}.values(),
        key=lambda event: event.published_us,
    )
    numbers = [event.sequence for event in unique]
    assert numbers == sorted(numbers, key=lambda number: number or 0)
    assert files == list(module("days").stream(module("days").Days(30), FILES))


def test_no_policy_grows_by_design(module: Module) -> None:
    policies = module("days").POLICIES
    assert len(policies) == 48
    assert sum(policy.diversify.name != "none" for policy in policies) == 22
    endless = [policy for policy in policies if policy.window == Continuous()]
    assert {policy.diversify.name for policy in endless} == {"none"}


def test_changes_leave_steady_subscribers_alone(module: Module, tmp_path: Any) -> None:
    days = module("days")
    subscribers = days.people(60)
    calm = {person.id for person in days.steady(subscribers)}
    with open_store(tmp_path / "people.db") as store:
        store.catalogue.load(
            each for person in subscribers for each in (person, *days.wishes(person.id))
        )
        before = store.catalogue.version()
        changes = days.Changes(store, subscribers)
        for _ in range(days.GUESTS + 20):
            changes.make()
        touched = set(store.history.touched(before, store.catalogue.version()))
        assert not touched & calm
        assert touched & {person.id for person in subscribers}
        guests = store.catalogue.page("subscriber", after="guest", limit=1000)
        assert sum(each.id.startswith("guest") for each in guests) == days.GUESTS
