"""Pruning: a match that can never be delivered leaves its window unchanged, where that is safe."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.test_diverse_cohort import diverse_of
from tests.feed.columnar.test_feeds import cohort_of, table_of

from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.columnar.kernels import layout
from tidings.feed.columnar.ranked_cohort import RankedCohort
from tidings.model.records import Event, Match
from tidings.policy import Policy
from tidings.window import Moment

scores = st.lists(st.sampled_from([0.0, 0.2, 0.4, 0.4, 0.7, 0.9]), max_size=40)
some_k = st.integers(1, 3)
DECAYS: list[Any] = ["none", {"name": "exponential", "rate": 0.3}]


def offer(table: TableFeeds, number: int, score: float, **values: Any) -> list[str]:
    event = Event(f"e{number:03d}", values, number, number)
    now = Moment(event.published_us, number)
    return [delivery.event for delivery in table.offer_many([(Match("u", event, score, ()), now)])]


def state(cohort: RankedCohort) -> list[list[Any]]:
    """Return the list, the ring and the main counters of the first row."""
    cells = cohort.entries(np.array([0]))
    ring = cohort.cells(np.array([0])) if cohort.has_rings else cells[:0]
    columns = (cohort.key[cells], cohort.score[cells], cohort.entry[cells], cohort.ring[ring])
    return [
        column.tolist()
        for column in (*columns, cohort.head[0, [layout.SENT, layout.END, layout.SIZE]])
    ]


def better_entries(cohort: RankedCohort, key: float) -> int:
    """Return how many listed entries have a higher key."""
    return int((cohort.key[cohort.entries(np.array([0]))] > key).sum())


@settings(max_examples=60)
@given(stream=scores, k=some_k)
@pytest.mark.parametrize("decay", DECAYS, ids=str)
def test_continuous_windows_ignore_matches_behind_the_best(
    stream: list[float], k: int, decay: Any
) -> None:
    table = table_of({"u": Policy(k=k, window="continuous", decay=decay)})
    cohort = cohort_of(table)
    for number, score in enumerate(stream, start=1):
        before, seen = state(cohort), int(cohort.head[0, layout.SEEN])
        if not offer(table, number, score):
            assert state(cohort) == before
            assert cohort.head[0, layout.SEEN] == seen
        assert cohort.head[0, layout.SIZE] <= k


@settings(max_examples=60)
@given(stream=scores, k=some_k)
def test_periods_only_count_matches_behind_the_best(stream: list[float], k: int) -> None:
    table = table_of({"u": Policy(k=k, window={"name": "periodic", "length": "1d"})})
    cohort = cohort_of(table)
    for number, score in enumerate(stream, start=1):
        behind = better_entries(cohort, score) >= k
        before = state(cohort)
        offer(table, number, score)
        assert number == 1 or (state(cohort) == before) == behind
        assert cohort.head[0, layout.COUNT] == number


@settings(max_examples=60)
@given(stream=scores, k=some_k)
@pytest.mark.parametrize("name", ["sliding", "jumping"])
def test_entries_beaten_k_times_are_not_listed(name: str, stream: list[float], k: int) -> None:
    """The list holds exactly the matches that fewer than k newer ones equal or beat."""
    step = {"step": 4} if name == "jumping" else {}
    table = table_of({"u": Policy(k=k, window={"name": name, "length": 1000, **step})})
    cohort = cohort_of(table)
    for number, score in enumerate(stream, start=1):
        offer(table, number, score)
        cells = cohort.entries(np.array([0]))
        listed = sorted(cohort.entry[cells, layout.SLOT].tolist())
        seen = stream[:number]
        alive = [
            nth
            for nth, own in enumerate(seen)
            if sum(other >= own for other in seen[nth + 1 :]) < k
        ]
        assert listed == sorted(table.tables.events.slot_of(f"e{nth + 1:03d}") for nth in alive)
        assert cohort.head[0, layout.HELD] == number


@settings(max_examples=60)
@given(stream=scores, k=some_k, strict=st.booleans())
@pytest.mark.parametrize("decay", DECAYS, ids=str)
def test_a_history_is_unchanged_without_a_swap(
    stream: list[float], k: int, strict: bool, decay: Any
) -> None:
    window = {"name": "history", "length": 1000, "strict": strict}
    table = table_of({"u": Policy(k=k, window=window, decay=decay)})
    cohort = cohort_of(table)
    for number, score in enumerate(stream, start=1):
        before = state(cohort)
        if not offer(table, number, score):
            assert state(cohort) == before


@settings(max_examples=40)
@given(stream=scores, k=some_k, values=st.lists(st.integers(0, 2), min_size=40, max_size=40))
def test_a_diverse_history_keeps_its_members_without_a_swap(
    stream: list[float], k: int, values: list[int]
) -> None:
    window = {"name": "history", "length": 1000}
    table = table_of({"u": Policy(k=k, window=window, diversify="divrank")})
    cohort = diverse_of(table)
    for number, score in enumerate(stream, start=1):
        before = np.sort(cohort.window(0, "mark")[cohort.window(0, "mark") > 0])
        if not offer(table, number, score, a=values[number - 1]):
            assert (np.sort(cohort.window(0, "mark")[cohort.window(0, "mark") > 0]) == before).all()
        assert cohort.head[0, layout.HELD] <= k


def test_with_leave_a_beaten_match_is_delivered_later() -> None:
    """It must not be pruned: the matches that beat it are delivered and leave first."""
    window = {"name": "jumping", "length": 100, "step": 3, "delivered": "leave"}
    table = table_of({"u": Policy(k=1, window=window)})
    scores = [0.1, 0.5, 0.9, 0, 0, 0]
    delivered = [offer(table, n, score) for n, score in enumerate(scores, start=1)]
    assert delivered == [[], [], ["e003"], [], [], ["e002"]]
    assert [offer(table, n, 0) for n in (7, 8, 9)][-1] == ["e001"]


@pytest.mark.parametrize("part", ["divrank", "maxmin", "maxsum", "disc"])
def test_the_lowest_rank_can_win_by_its_distance(part: str) -> None:
    """So diverse windows must not prune by rank."""
    table = table_of({"u": Policy(k=2, window={"name": "sliding", "length": 9}, diversify=part)})
    for number in range(1, 5):
        offer(table, number, 0.9, a=1, b=1)
    assert offer(table, 5, 0.1, a=2, b=2) == ["e005"]
    assert diverse_of(table).head[0, layout.HELD] == 5
