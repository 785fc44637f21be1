"""Diverse cohorts for tests of kernels, over events with attributes, and choices by definition."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from tests.feed.columnar.kernels.models import Choose, Scored, SetRank
from tests.feed.columnar.kernels.windows import US

from tidings.diversify.distance import set_divrank
from tidings.diversify.plain.choose import plain_choice
from tidings.diversify.protocol import Candidate, Diversifier
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.event_table import EventTable, FeatureCache
from tidings.feed.columnar.slab_pools import lengthen
from tidings.model.records import Event
from tidings.policy import Policy

EVENTS = [
    Event(f"e{63 - slot:02d}", {"a": slot % 3, "b": slot % 2}, int(us) / 1e6, slot or None)
    for slot, us in enumerate(US)
]
"""Sixty-four events as in `windows.py`, of six kinds: few distances, and many duplicates."""

PARTS: list[Any] = [
    {"name": "divrank", "sigma": 0.25},
    "maxmin",
    {"name": "maxsum", "sigma": 0.0},
    "disc",
    {"name": "maxdivrel", "alpha": 0.5},
    {"name": "maxdivrel-lsh", "tables": 4, "rows": 1},
    "optimal",
]
parts = st.sampled_from(PARTS)


def diverse_cohort(rows: int = 3, cells: int = 2000, **policy: Any) -> DiverseCohort:
    """Return a cohort with some empty rows, and pools that are large enough for all of a test."""
    events = EventTable()
    for slot, event in enumerate(EVENTS):
        assert events.slot(event, lambda _: None) == slot
    window = {"name": "sliding", "length": 6}
    cohort = DiverseCohort(
        Policy(**{"k": 3, "window": window, "diversify": "divrank", **policy}),
        FeatureCache(),
        events,
    )
    cohort.enrol_many(np.arange(rows), [f"u{number}" for number in range(rows)])
    cohort.features.add(events, range(64))
    lengthen(cohort, cohort.pool.arrays, cells)
    cohort._scratch = cohort._new_scratch(64)
    return cohort


def candidates(matches: list[Scored]) -> list[Candidate]:
    return [Candidate(EVENTS[slot], score, score) for slot, score in matches]


def choice_of(part: Diversifier) -> Choose:
    """Return the choice of a diversifier, by its definition."""

    def choose(matches: list[Scored], k: int) -> list[int]:
        return [matches[i][0] for i in plain_choice(part, candidates(matches), k)]

    return choose


def rank_of(part: Diversifier) -> SetRank:
    """Return the divrank of sets, by its definition."""
    return lambda matches: set_divrank(candidates(matches), part.sigma, part.distance)
