"""Kept choices of diverse windows: they equal a choice from scratch, and valid parts stay."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.test_diverse_cohort import diverse_of, kept_places
from tests.feed.columnar.test_feeds import table_of

from tidings.diversify import select
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.columnar.kernels import layout
from tidings.model.records import Event, Match
from tidings.policy import Policy
from tidings.window import Moment

LENGTH = 7
GREEDY = ["divrank", "maxmin", "maxsum", "maxavg"]
FORMS: list[Any] = [{"name": name, "sigma": s} for name in GREEDY for s in (0.0, 0.4, 1.0)]
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
    stream, us = [], 0
    for number, (gap, score, values, letter) in enumerate(drawn, start=1):
        us += gap
        stream.append((Event(f"{letter}{number}", values, us, number), score))
    return stream


def offer(table: TableFeeds, event: Event, score: float) -> list[str]:
    now = Moment(event.published_us, event.sequence or 0)
    return [delivery.event for delivery in table.offer_many([(Match("u", event, score, ()), now)])]


def held(window: Any, seen: list[tuple[Event, float]]) -> list[tuple[Event, float]]:
    """Return the matches in the window of all that it has seen."""
    if isinstance(window.get("length"), str):
        start = seen[-1][0].published_us - LENGTH * 1_000_000
        return [match for match in seen if match[0].published_us > start]
    return seen[-LENGTH:]


def kept_events(table: TableFeeds, cohort: DiverseCohort) -> list[str]:
    slots = cohort.window(0, "slot")[kept_places(cohort)]
    return [table.tables.events.event(int(slot)).id for slot in slots]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("form", FORMS, ids=str)
@settings(max_examples=25)
@given(drawn=steps, k=st.integers(2, 4))
def test_the_kept_choice_is_the_choice_from_scratch(
    window: Any, form: Any, drawn: list[Any], k: int
) -> None:
    table = table_of({"u": Policy(k=k, window=window, diversify=form)})
    seen: list[tuple[Event, float]] = []
    for event, score in stream_of(drawn):
        seen.append((event, score))
        offer(table, event, score)
        matches = held(window, seen)
        chosen = select([event for event, _ in matches], [rank for _, rank in matches], k, form)
        kept = kept_events(table, diverse_of(table))
        assert kept == ([event.id for event in chosen] if len(matches) > 1 else [])


@settings(max_examples=60)
@given(drawn=steps, window=st.sampled_from(WINDOWS))
def test_votes_count_the_buckets_that_a_match_wins(drawn: list[Any], window: Any) -> None:
    form = {"name": "maxdivrel-lsh", "tables": 4, "rows": 1}
    table = table_of({"u": Policy(k=2, window=window, diversify=form)})
    cohort, seen = diverse_of(table), list[tuple[Event, float]]()
    for event, score in stream_of(drawn):
        seen.append((event, score))
        offer(table, event, score)
        matches = held(window, seen)
        if len(matches) < 2:
            continue
        start = int(cohort.head[0, layout.SLAB])
        for place in np.flatnonzero(cohort.window(0, "mark")).tolist():
            slot = int(cohort.window(0, "slot")[place])
            name = table.tables.events.event(slot).id
            assert cohort.votes[start + place] == votes_of(cohort, table, matches, name)


def votes_of(
    cohort: DiverseCohort, table: TableFeeds, matches: list[tuple[Event, float]], name: str
) -> int:
    """Count the buckets in which an event is the most relevant, by definition."""
    order = sorted(matches, key=lambda match: (-match[1], -match[0].published_us, match[0].id))
    slots = [table.tables.events.slot_of(event.id) for event, _ in order]
    own = [event.id for event, _ in order].index(name)
    bands = cohort.features.bands(np.array(slots))
    return sum(
        all(bands[rival, t] != bands[own, t] for rival in range(own)) for t in range(bands.shape[1])
    )


def full(k: int, diversify: Any) -> tuple[TableFeeds, DiverseCohort]:
    """Return a full window whose first match is not chosen."""
    window = {"name": "sliding", "length": LENGTH}
    table = table_of({"u": Policy(k=k, window=window, diversify=diversify)})
    for n in range(1, LENGTH + 1):
        offer(table, Event(f"e{n}", {"a": n}, n, n), 0.1 * n)
    return table, diverse_of(table)


@pytest.mark.parametrize("name", GREEDY)
def test_a_valid_choice_is_not_changed(name: str) -> None:
    """Other candidates are not prepared: a match that cannot win costs k distances."""
    table, cohort = full(3, name)
    before = (cohort.kept_place.copy(), cohort.kept_value.copy())
    cohort._scratch.features[:] = -1
    assert offer(table, Event("low", {"a": 99}, 50, 8), 0.0) == []
    assert np.array_equal(before[0], cohort.kept_place)
    assert np.array_equal(before[1], cohort.kept_value)
    assert np.count_nonzero(cohort._scratch.features >= 0) == 4


def test_the_choice_before_a_match_that_leaves_stays() -> None:
    table, cohort = full(4, "divrank")
    last = int(kept_places(cohort)[3])
    third = kept_events(table, cohort)[:3]
    cohort.kept_value[1] += 5  # as if no pair could beat it, so that it is not computed again
    cohort.head[0, layout.CHOSEN] = 3
    offer(table, Event("low", {"a": 1}, 50, 8), 0.0)
    assert kept_events(table, cohort)[:3] == third
    assert int(kept_places(cohort)[3]) == last
