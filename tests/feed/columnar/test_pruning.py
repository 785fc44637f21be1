"""What cannot win is dropped before the state of its window is written, where that is safe.

Counted by what is left untouched: what a window holds before and after such a match.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.test_diverse_cohort import diverse_of
from tests.feed.columnar.test_feeds import cohort_of, table_of

from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.columnar.kernels import diverse_layout as seats
from tidings.feed.columnar.kernels import layout as at
from tidings.feed.columnar.ranked_cohort import Cohort
from tidings.model.records import Event, Match
from tidings.policy import Policy
from tidings.window import Moment

scores = st.lists(st.sampled_from([0.0, 0.2, 0.4, 0.4, 0.7, 0.9]), max_size=40)
some_k = st.integers(1, 3)
DECAYS: list[Any] = ["none", {"name": "exponential", "rate": 0.3}]


def offer(table: TableFeeds, number: int, score: float, **values: Any) -> list[str]:
    event = Event(f"e{number:03d}", values, number, number)
    now = Moment(event.published_us, number)
    return [each.event for each in table.offer_many([(Match("u", event, score, ()), now)])]


def state(cohort: Cohort) -> list[list[Any]]:
    """Give what the window of the first row lists, and what it was asked to count on."""
    listed = cohort.entries(np.array([0]))
    ring = cohort.cells(np.array([0])) if cohort.rings else listed[:0]
    columns = (cohort.key[listed], cohort.score[listed], cohort.who[listed], cohort.ring[ring])
    return [each.tolist() for each in (*columns, cohort.head[0, [at.SENT, at.END, at.SIZE]])]


def places_before(cohort: Cohort, key: float) -> int:
    """Count the listed entries that a newest match of this key would stand behind."""
    return int((cohort.key[cohort.entries(np.array([0]))] > key).sum())


@settings(max_examples=60)
@given(stream=scores, k=some_k)
@pytest.mark.parametrize("decay", DECAYS, ids=str)
def test_continuous_writes_nothing_for_what_is_behind_the_best(
    stream: list[float], k: int, decay: Any
) -> None:
    table = table_of({"u": Policy(k=k, window="continuous", decay=decay)})
    cohort = cohort_of(table)
    for number, score in enumerate(stream, start=1):
        before, seen = state(cohort), int(cohort.head[0, at.SEEN])
        if not offer(table, number, score):
            assert state(cohort) == before
            assert cohort.head[0, at.SEEN] == seen
        assert cohort.head[0, at.SIZE] <= k


@settings(max_examples=60)
@given(stream=scores, k=some_k)
def test_a_period_only_counts_what_is_behind_its_best(stream: list[float], k: int) -> None:
    table = table_of({"u": Policy(k=k, window={"name": "periodic", "length": "1d"})})
    cohort = cohort_of(table)
    for number, score in enumerate(stream, start=1):
        behind = places_before(cohort, score) >= k
        before = state(cohort)
        offer(table, number, score)
        assert number == 1 or (state(cohort) == before) == behind
        assert cohort.head[0, at.COUNT] == number


@settings(max_examples=60)
@given(stream=scores, k=some_k)
@pytest.mark.parametrize("name", ["sliding", "jumping"])
def test_what_k_newer_ones_beat_is_not_listed(name: str, stream: list[float], k: int) -> None:
    """Listed are exactly those that fewer than k newer and better ones have beaten."""
    step = {"step": 4} if name == "jumping" else {}
    table = table_of({"u": Policy(k=k, window={"name": name, "length": 1000, **step})})
    cohort = cohort_of(table)
    for number, score in enumerate(stream, start=1):
        offer(table, number, score)
        places = cohort.entries(np.array([0]))
        listed = sorted(cohort.who[places, at.SLOT].tolist())
        seen = stream[:number]
        alive = [
            nth
            for nth, own in enumerate(seen)
            if sum(other >= own for other in seen[nth + 1 :]) < k
        ]
        assert listed == sorted(table.names.events.slot_of(f"e{nth + 1:03d}") for nth in alive)
        assert cohort.head[0, at.HELD] == number


@settings(max_examples=60)
@given(stream=scores, k=some_k, strict=st.booleans())
@pytest.mark.parametrize("decay", DECAYS, ids=str)
def test_a_history_writes_nothing_without_a_swap(
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
def test_a_history_that_diversifies_keeps_its_members_without_a_swap(
    stream: list[float], k: int, values: list[int]
) -> None:
    window = {"name": "history", "length": 1000}
    table = table_of({"u": Policy(k=k, window=window, diversify="divrank")})
    cohort = diverse_of(table)
    for number, score in enumerate(stream, start=1):
        before = np.sort(cohort.window(0, 3)[cohort.window(0, 3) > 0])
        if not offer(table, number, score, a=values[number - 1]):
            assert (np.sort(cohort.window(0, 3)[cohort.window(0, 3) > 0]) == before).all()
        assert cohort.head[0, seats.HELD] <= k


def test_with_leave_one_that_many_newer_ones_beat_is_delivered_after_them() -> None:
    """Pruning it would lose it: what beats it is delivered, and leaves first."""
    window = {"name": "jumping", "length": 100, "step": 3, "delivered": "leave"}
    table = table_of({"u": Policy(k=1, window=window)})
    given = [offer(table, n, score) for n, score in enumerate([0.1, 0.5, 0.9, 0, 0, 0], start=1)]
    assert given == [[], [], ["e003"], [], [], ["e002"]]
    assert [offer(table, n, 0) for n in (7, 8, 9)][-1] == ["e001"]


@pytest.mark.parametrize("part", ["divrank", "maxmin", "maxsum", "disc"])
def test_the_lowest_rank_may_win_by_its_distance(part: str) -> None:
    """Nothing may be pruned by rank where distances count: two better ones do not beat it."""
    table = table_of({"u": Policy(k=2, window={"name": "sliding", "length": 9}, diversify=part)})
    for number in range(1, 5):
        offer(table, number, 0.9, a=1, b=1)
    assert offer(table, 5, 0.1, a=2, b=2) == ["e005"]
    assert diverse_of(table).head[0, seats.HELD] == 5
