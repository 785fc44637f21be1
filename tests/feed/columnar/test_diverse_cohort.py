"""Diverse cohorts: long streams, memory, and rows that the clock does not touch."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.feed.columnar.test_feeds import LONG, long_stream, table_of
from tests.feed.streams import END, Own, Step, enrolled, run

from tidings.diversify.greedy import DivRank
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.columnar.kernels import layout
from tidings.feed.columnar.python_cohort import PythonCohort
from tidings.feed.plain import PlainFeeds
from tidings.model.records import Event, Match
from tidings.policy import Policy
from tidings.window import Moment

PARTS = ["divrank", "maxavg", "disc", {"name": "maxdivrel", "alpha": 0.5}, "maxdivrel-lsh"]


def varied(steps: list[Step]) -> list[Step]:
    """Return a stream whose events have attributes with different distances."""
    steps_with_attributes = []
    for n, step in enumerate(steps):
        values = {"a": n * 7 % 5, "b": n * 3 % 4, "c": n % 2}
        event = Event(step.event.id, values, step.event.published_at, step.event.sequence)
        steps_with_attributes.append(Step(event, step.sequence, step.scores, step.matched))
    return steps_with_attributes


def diverse_of(table: TableFeeds) -> DiverseCohort:
    cohort = table.cohorts[0]
    assert isinstance(cohort, DiverseCohort)
    return cohort


def kept_places(cohort: DiverseCohort) -> Any:
    """Return the places of the last choice of the first row that are still valid."""
    first = 0 if cohort.diversity.kept_width > 0 else int(cohort.head[0, layout.SLAB])
    return cohort.kept_place[first : first + int(cohort.head[0, layout.CHOSEN])]


@pytest.mark.slow
@pytest.mark.parametrize("window", LONG, ids=str)
@pytest.mark.parametrize("diversify", PARTS, ids=str)
def test_a_long_stream_delivers_like_plain_feeds(window: Any, diversify: Any) -> None:
    decay = {"name": "exponential", "rate": 0.02}
    policy = Policy(k=5, window=window, decay=decay, diversify=diversify)
    policies = dict.fromkeys("uvw", policy)
    stream = varied(long_stream(11, "uvw", 160))
    table, plain = table_of(policies), enrolled(PlainFeeds(), policies)
    assert run(table, stream[:120]) == run(plain, stream[:120])
    twin = TableFeeds()
    twin.restore(table.snapshot())
    assert twin.snapshot() == table.snapshot()
    assert run(twin, stream[120:]) == run(table, stream[120:]) == run(plain, stream[120:])
    assert twin.advance(END) == table.advance(END) == plain.advance(END)


def test_a_wide_window_delivers_like_plain_feeds() -> None:
    window = {"name": "sliding", "length": 60}
    policies = {"u": Policy(k=3, window=window, diversify={"name": "divrank", "sigma": 0.7})}
    stream = varied(long_stream(5, "u", 150))
    table, plain = table_of(policies), enrolled(PlainFeeds(), policies)
    assert run(table, stream) == run(plain, stream)
    assert diverse_of(table).head[0, layout.HELD] == 60


@pytest.mark.parametrize("diversify", ["divrank", "maxsum", "disc", "maxdivrel-lsh"])
def test_a_full_window_of_a_hundred_takes_at_most_four_kilobytes(diversify: str) -> None:
    policy = Policy(k=10, window={"name": "sliding", "length": 100}, diversify=diversify)
    table = table_of({f"u{n}": policy for n in range(100)})
    sizes = []
    for n in range(1, 131):
        event = Event(f"e{n}", {"a": n % 7, "b": n % 5}, n, n)
        offers = [(Match(f"u{u}", event, (u * n % 11) / 11, ()), Moment(n, n)) for u in range(100)]
        table.offer_many(offers)
        sizes.append(diverse_of(table).nbytes / 100)
    assert sizes[2] < 600
    assert 2_400 <= sizes[-1] <= 4_096


def test_a_period_makes_no_choice_before_it_ends() -> None:
    policy = Policy(k=2, window={"name": "periodic", "length": "10s"}, diversify="divrank")
    table = table_of({"u": policy, "v": policy})
    cohort = diverse_of(table)
    for n in range(1, 9):
        event = Event(f"e{n}", {"a": n % 3}, n, n)
        now = Moment(event.published_us, n)
        assert table.offer_many([(Match("u", event, 0.5, ()), now)]) == table.advance(now) == []
        assert not cohort._scratch.features.any()
    assert cohort.head[0, layout.HELD] == 8
    assert len(table.advance(Moment(10_000_000, 9))) == 2
    assert cohort._scratch.features.any()
    assert cohort.head[0, layout.HELD] == 0


def observe(monkeypatch: Any, owner: object, name: str, note: Callable[..., object]) -> None:
    """Call `note` whenever a method is called."""
    method = getattr(owner, name)

    def both(*arguments: Any) -> Any:
        note(*arguments)
        return method(*arguments)

    monkeypatch.setattr(owner, name, both)


@pytest.mark.parametrize("name", ["sliding", "continuous", "jumping", "periodic"])
def test_the_clock_touches_only_ended_windows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: dict[str, Any] = {"sliding": {"length": "5s"}, "continuous": {"expires": "5s"}}
    lengths |= {"jumping": {"length": "6s", "step": "3s"}, "periodic": {"length": "3s"}}
    policy = Policy(k=2, window={"name": name, **lengths[name]}, diversify="divrank")
    table, seen = table_of({f"u{n}": policy for n in range(50)}), list[list[int]]()
    cohort = diverse_of(table)
    observe(monkeypatch, cohort, "advance", lambda rows, _: seen.append(rows.tolist()))
    event = Event("e1", {"a": 1}, 1, 1)
    table.offer_many([(Match("u7", event, 0.5, ()), Moment(1_000_000, 1))])
    table.advance(Moment(2_000_000, 1))
    assert seen == []
    table.advance(Moment(3_000_000, 1))
    row = int(table.tables.subscribers.row[table.number("u7")])
    assert seen == ([[row]] if name in ("jumping", "periodic") else [])


def test_the_hashes_of_an_event_are_shared_by_all_subscribers() -> None:
    policy = Policy(k=2, window={"name": "sliding", "length": 5}, diversify="divrank")
    table = table_of({f"u{n}": policy for n in range(40)})
    for n in range(1, 8):
        event = Event(f"e{n}", {"a": n % 3}, n, n)
        table.offer_many([(Match(f"u{u}", event, 0.5, ()), Moment(n, n)) for u in range(40)])
    hashes = diverse_of(table).features.hashes
    assert hashes is not None
    assert len(hashes) == 7


def test_user_defined_distances_get_a_python_cohort() -> None:
    table = table_of({"u": Policy(diversify=DivRank(distance=Own()))})
    assert isinstance(table.cohorts[0], PythonCohort)
