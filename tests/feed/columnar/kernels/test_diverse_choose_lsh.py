"""Votes of buckets as matches come and go, compared with a count from scratch."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.feed.columnar.kernels.batches import Offered, batches, best_first
from tests.feed.columnar.kernels.diverse import choice_of, diverse_cohort

from tidings.compiled.array_types import Int32s
from tidings.compiled.jit import kernel
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.kernels import diverse_buffer, diverse_choose
from tidings.feed.columnar.kernels.layout import CHOSEN, HELD, SLAB, Arrival, DiverseWindows
from tidings.feed.columnar.slab_pools import new_slabs

LSH: dict[str, Any] = {"name": "maxdivrel-lsh", "tables": 3, "rows": 1}


@kernel
def enter(windows: DiverseWindows, row: int, match: Arrival, voting: bool) -> int:
    diverse_buffer.reserve_place(windows.buffer, row)
    place = diverse_buffer.add_match(windows.buffer, row, match)
    if voting:
        diverse_choose.add_votes(windows, row, place)
    return place


@kernel
def remove(windows: DiverseWindows, row: int, place: int) -> None:
    diverse_choose.remove_votes(windows, row, place)


@kernel
def count_all(windows: DiverseWindows, row: int) -> None:
    diverse_choose.count_all_votes(windows, row)


@kernel
def choose(windows: DiverseWindows, row: int, chosen: Int32s) -> int:
    return diverse_choose.choose_elected(windows, row, chosen)


def cohort_of(k: int = 2, decay: Any = "none") -> DiverseCohort:
    """Return a cohort with slabs so large that no window moves, which would forget the votes."""
    window = {"name": "sliding", "length": "1d"}
    cohort = diverse_cohort(k=k, window=window, diversify=LSH, decay=decay)
    cohort.pool = cohort.pool._replace(slabs=new_slabs([64]))
    return cohort


def fill(cohort: DiverseCohort, batch: list[Offered], voting: bool = True) -> None:
    for _, slot, score in batch:
        enter(cohort.windows, 0, Arrival(slot, score, 0, slot), voting)


def votes(cohort: DiverseCohort) -> dict[int, int]:
    """Return the votes by slot."""
    used = np.flatnonzero(cohort.window(0, "mark"))
    counted = cohort.votes[int(cohort.head[0, SLAB]) + used]
    return dict(zip(cohort.window(0, "slot")[used].tolist(), counted.tolist(), strict=True))


def won(cohort: DiverseCohort, matches: list[Offered]) -> dict[int, int]:
    """Count for each match the tables in which nothing better has its band."""
    bands, counted = cohort.features.bands(np.arange(64)), {}
    for _, slot, score in matches:
        rivals = [one for _, one, s in matches if best_first(one, s) < best_first(slot, score)]
        counted[slot] = sum(
            all(bands[rival, table] != bands[slot, table] for rival in rivals)
            for table in range(bands.shape[1])
        )
    return counted


def drop(cohort: DiverseCohort, slot: int) -> None:
    """Let a match leave the window."""
    marks = cohort.window(0, "mark")
    place = int(np.flatnonzero((cohort.window(0, "slot") == slot) & (marks > 0))[0])
    remove(cohort.windows, 0, place)
    marks[place] = 0
    cohort.head[0, HELD] -= 1


@given(batches(rows=1), st.data())
def test_votes_stay_those_of_the_buckets_won(batch: list[Offered], data: st.DataObject) -> None:
    cohort, matches = cohort_of(), list[Offered]()
    for match in batch:
        fill(cohort, [match])
        matches.append(match)
        assert votes(cohort) == won(cohort, matches)
        if len(matches) > 1 and data.draw(st.booleans()):
            left = data.draw(st.sampled_from(matches))
            drop(cohort, left[1])
            matches.remove(left)
            assert votes(cohort) == won(cohort, matches)


@given(batches(rows=1))
def test_a_count_from_scratch_gives_the_same_votes(batch: list[Offered]) -> None:
    counted, kept = cohort_of(), cohort_of()
    fill(counted, batch, voting=False)
    fill(kept, batch)
    marks = counted.window(0, "mark").copy()
    if batch:
        count_all(counted.windows, 0)
        assert counted.head[0, CHOSEN] == 1
    assert votes(counted) == votes(kept) == won(kept, batch)
    assert (counted.window(0, "mark") == marks).all()


@given(batches(rows=1), st.integers(1, 5))
def test_the_elected_are_those_of_most_votes(batch: list[Offered], k: int) -> None:
    cohort, chosen = cohort_of(k), np.zeros(64, np.int32)
    fill(cohort, batch)
    size = choose(cohort.windows, 0, chosen)
    slots = cohort.window(0, "slot")[chosen[:size]].tolist()
    matches = [(slot, score) for _, slot, score in batch]
    assert slots == choice_of(cohort.policy.diversify)(matches, k)


@pytest.mark.parametrize(("rate", "winner"), [(None, 4), (1e6, 40)])
def test_a_bucket_votes_for_the_fresher_rank(rate: float | None, winner: int) -> None:
    """Slots 4 and 40 are alike, so the buckets are the same; slot 40 is nine microseconds newer."""
    decay = "none" if rate is None else {"name": "exponential", "rate": rate}
    cohort = cohort_of(decay=decay)
    fill(cohort, [(0, 4, 0.75), (0, 40, 0.5)])
    assert votes(cohort) == {4: 0, 40: 0, winner: 3}
