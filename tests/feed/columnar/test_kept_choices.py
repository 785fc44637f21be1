"""What a window keeps of its last choice: it is the whole choice, and untouched where it stands."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.test_diverse_cohort import diverse_of
from tests.feed.columnar.test_feeds import table_of

from tidings.diversify import select
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.columnar.kernels import diverse_layout as seats
from tidings.model.records import Event, Match
from tidings.policy import Policy
from tidings.window import Moment

LENGTH = 7
GROWN = ["divrank", "maxmin", "maxsum", "maxavg"]
FORMS: list[Any] = [{"name": name, "sigma": s} for name in GROWN for s in (0.0, 0.4, 1.0)]
WINDOWS: list[Any] = [
    {"name": "sliding", "length": LENGTH},
    {"name": "sliding", "length": f"{LENGTH}s"},
    {"name": "continuous", "expires": LENGTH},
]

steps = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 1, 2]),
        st.sampled_from([0.1, 0.4, 0.4, 0.4 + 1e-13, 0.7, 0.9]),
        st.dictionaries(st.sampled_from("ab"), st.integers(0, 2)),
        st.sampled_from("xyz"),
    ),
    max_size=30,
)


def stream_of(drawn: list[Any]) -> list[tuple[Event, float]]:
    found, at = [], 0
    for number, (gap, score, values, letter) in enumerate(drawn, start=1):
        at += gap
        found.append((Event(f"{letter}{number}", values, at, number), score))
    return found


def offer(table: TableFeeds, event: Event, score: float) -> list[str]:
    now = Moment(event.published_us, event.sequence or 0)
    return [each.event for each in table.offer_many([(Match("u", event, score, ()), now)])]


def held(window: Any, seen: list[tuple[Event, float]]) -> list[tuple[Event, float]]:
    """Give what a window holds of all that it has seen."""
    if isinstance(window.get("length"), str):
        start = seen[-1][0].published_us - LENGTH * 1_000_000
        return [each for each in seen if each[0].published_us > start]
    return seen[-LENGTH:]


def kept_events(table: TableFeeds, cohort: DiverseCohort) -> list[str]:
    slots = cohort.window(0, 0)[cohort.kept_places(0)]
    return [table.names.events.event(int(slot)).id for slot in slots]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("form", FORMS, ids=str)
@settings(max_examples=25)
@given(drawn=steps, k=st.integers(2, 4))
def test_what_is_kept_is_what_the_diversifier_chooses(
    window: Any, form: Any, drawn: list[Any], k: int
) -> None:
    table = table_of({"u": Policy(k=k, window=window, diversify=form)})
    seen: list[tuple[Event, float]] = []
    for event, score in stream_of(drawn):
        seen.append((event, score))
        offer(table, event, score)
        there = held(window, seen)
        chosen = select([each for each, _ in there], [rank for _, rank in there], k, form)
        kept = kept_events(table, diverse_of(table))
        assert kept == ([each.id for each in chosen] if len(there) > 1 else [])


@settings(max_examples=60)
@given(drawn=steps, window=st.sampled_from(WINDOWS))
def test_votes_are_those_of_the_buckets(drawn: list[Any], window: Any) -> None:
    form = {"name": "maxdivrel-lsh", "tables": 4, "rows": 1}
    table = table_of({"u": Policy(k=2, window=window, diversify=form)})
    cohort, seen = diverse_of(table), list[tuple[Event, float]]()
    for event, score in stream_of(drawn):
        seen.append((event, score))
        offer(table, event, score)
        there = held(window, seen)
        if len(there) < 2:
            continue
        base = int(cohort.head[0, seats.BASE])
        for place in np.flatnonzero(cohort.window(0, 3)).tolist():
            slot = int(cohort.window(0, 0)[place])
            name = table.names.events.event(slot).id
            assert cohort.votes[base + place] == votes_of(cohort, table, there, name)


def votes_of(
    cohort: DiverseCohort, table: TableFeeds, there: list[tuple[Event, float]], name: str
) -> int:
    """Count the buckets of which an event is the most relevant, by definition."""
    order = sorted(there, key=lambda each: (-each[1], -each[0].published_us, each[0].id))
    slots = [table.names.events.slot_of(each.id) for each, _ in order]
    own = [each.id for each, _ in order].index(name)
    bands = cohort.traits.bands
    return sum(
        all(bands[slot, t] != bands[slots[own], t] for slot in slots[:own])
        for t in range(bands.shape[1])
    )


def full(k: int, diversify: Any) -> tuple[TableFeeds, DiverseCohort]:
    """A full window of which the first match is not chosen."""
    window = {"name": "sliding", "length": LENGTH}
    table = table_of({"u": Policy(k=k, window=window, diversify=diversify)})
    for n in range(1, LENGTH + 1):
        offer(table, Event(f"e{n}", {"a": n}, n, n), 0.1 * n)
    return table, diverse_of(table)


@pytest.mark.parametrize("name", GROWN)
def test_a_choice_that_stands_is_not_touched(name: str) -> None:
    """No candidate is even laid out: one that cannot win is judged by its rank and k distances."""
    table, cohort = full(3, name)
    before = (cohort.places.copy(), cohort.worths.copy())
    cohort._bench[2][:] = -1
    assert offer(table, Event("low", {"a": 99}, 50, 8), 0.0) == []
    assert np.array_equal(before[0], cohort.places)
    assert np.array_equal(before[1], cohort.worths)
    assert np.count_nonzero(cohort._bench[2] >= 0) == 4


def test_those_before_the_one_that_leaves_stand() -> None:
    table, cohort = full(4, "divrank")
    last = int(cohort.kept_places(0)[3])
    third = kept_events(table, cohort)[:3]
    cohort.worths[1] += 5  # as if the pair could not be beaten: it is not looked at again
    cohort.head[0, seats.KEPT] = 3
    offer(table, Event("low", {"a": 1}, 50, 8), 0.0)
    assert kept_events(table, cohort)[:3] == third
    assert int(cohort.kept_places(0)[3]) == last
