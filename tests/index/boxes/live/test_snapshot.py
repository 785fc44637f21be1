"""Snapshots of a live box index: versions, deaths, appended rows, and merged runs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.index.boxes.exact_blocks import ExactBlocks
from tidings.index.boxes.kernels.memtable import EXACT, MAX, SUM
from tidings.index.boxes.live.snapshot import (
    NEVER,
    BoxRun,
    BoxSnapshot,
    IdentifiedBoxes,
    build_run,
    concatenated,
    empty_memtable,
    merge,
    no_cuts,
    scoring_of,
)
from tidings.index.boxes.protocol import Boxes, events_of
from tidings.index.boxes.relaxed_blocks import RelaxedBlocks
from tidings.index.boxes.search_base import empty_heaps, single_answer, sorted_answers


def entries(ids, low=0.0, high=9.0, scoring=EXACT) -> IdentifiedBoxes:
    """Return boxes [low, high] over one attribute, each worth a tenth of its id."""
    shape = len(ids), 1
    worth = np.array(ids) / 10
    boxes = Boxes(
        np.full(shape, low), np.full(shape, high), worth if scoring == EXACT else worth[:, None]
    )
    return IdentifiedBoxes(boxes, np.array(ids, np.int64))


def run_of(ids, scoring=EXACT) -> BoxRun:
    def make(boxes, names):
        return ExactBlocks(boxes, names) if scoring == EXACT else RelaxedBlocks(boxes, "sum", names)

    return build_run(make, entries(ids, scoring=scoring))


def snapshot_of(*runs, room=2, version=0) -> BoxSnapshot:
    rows, died = empty_memtable(1, room)
    return BoxSnapshot(runs, rows, died, 0, version)


def found(snapshot, scoring=EXACT, k=20, q=5.0):
    best = empty_heaps(1, k)
    snapshot.search(events_of(1, [[q]]), scoring, best)
    answer = single_answer(sorted_answers(best))
    return dict(zip(answer.ids.tolist(), answer.scores.tolist(), strict=True))


def test_a_run_finds_the_ids_that_are_alive():
    run = run_of([2, 4, 8])
    run.kill(1, 3)
    assert run.find(np.array([2, 3, 4, 8, 9])).tolist() == [0, -1, -1, 2, -1]
    assert (len(run), run.dead) == (3, 1)
    assert run.stamps().tolist() == [NEVER, 3, NEVER]
    assert run_of([]).find(np.array([1])).tolist() == [-1]


def test_a_box_is_dead_from_its_version_on():
    run = run_of([2, 4, 8])
    run.kill(1, 3)
    assert run.alive(2).tolist() == [0, 1, 2]
    assert run.alive(3).tolist() == [0, 2]
    assert list(found(snapshot_of(run, version=2))) == [8, 4, 2]
    assert list(found(snapshot_of(run, version=3))) == [8, 2]


@pytest.mark.parametrize("scoring", [EXACT, SUM])
def test_runs_and_rows_are_searched_together(scoring):
    snapshot = snapshot_of(run_of([3, 6], scoring), run_of([4], scoring))
    snapshot = snapshot.append(entries([9, 10], scoring=scoring), scoring)
    snapshot = snapshot.append(entries([11], 6.0, 9.0, scoring), scoring)
    assert found(snapshot, scoring) == {10: 1.0, 9: 0.9, 6: 0.6, 4: 0.4, 3: 0.3}
    assert list(found(snapshot, scoring, k=3, q=7.0)) == [11, 10, 9]
    assert found(snapshot, scoring, k=0) == {}


def test_a_reader_of_an_earlier_version_sees_no_later_row():
    first = snapshot_of(room=4).append(entries([1]), EXACT)
    second = first.append(entries([2]), EXACT)
    assert second.rows is first.rows
    assert second.version == first.version + 1
    assert (list(found(first)), list(found(second))) == ([1], [2, 1])


def test_a_full_memtable_doubles_and_keeps_its_rows_and_deaths():
    small = snapshot_of(room=2).append(entries([1, 2]), EXACT)
    small.died[0] = small.version + 1
    grown = small.append(entries([3]), EXACT)
    assert len(grown.died) == 4
    assert list(found(grown)) == [3, 2]
    assert list(found(small)) == [2, 1]
    large = grown.append(entries(range(10, 30)), EXACT)
    assert len(large.died) == 23
    assert len(found(large, k=30)) == 22


def test_rows_that_were_merged_are_dropped():
    snapshot = snapshot_of(room=4).append(entries([1, 2, 3]), EXACT)
    rest = snapshot.without_rows(2)
    assert (rest.size, rest.version) == (1, snapshot.version)
    assert rest.rows is not snapshot.rows
    assert list(found(rest)) == [3]
    assert snapshot.without_rows(3).size == 0


@pytest.mark.parametrize("scoring", [EXACT, SUM, MAX])
def test_rows_are_the_boxes_that_were_appended(scoring):
    low, high = np.array([[0.0, -np.inf], [1.0, 2.0]]), np.array([[3.0, np.inf], [1.0, 5.0]])
    worth = np.array([0.3, 0.4]) if scoring == EXACT else np.array([[0.3, 9.0], [0.4, 0.5]])
    rows, died = empty_memtable(2, 2)
    snapshot = BoxSnapshot((), rows, died, 0, 0)
    new = IdentifiedBoxes(Boxes(low, high, worth), np.array([5, 6]))
    snapshot = snapshot.append(new, scoring)
    boxes = snapshot.memtable_boxes(np.arange(2), scoring)
    assert boxes.low.tolist() == low.tolist()
    assert boxes.high.tolist() == high.tolist()
    expected = [0.3, 0.4] if scoring == EXACT else [[0.3, 0.0], [0.4, 0.5]]
    assert boxes.worth.tolist() == expected
    most = {EXACT: [0.3, 0.4], SUM: [0.3, 0.9], MAX: [0.3, 0.5]}[scoring]
    assert snapshot.rows.most.tolist() == most


def make_exact(boxes, names):
    return ExactBlocks(boxes, names)


@given(
    st.sets(st.integers(0, 9)), st.sets(st.integers(10, 19)), st.sets(st.integers(0, 29)), st.data()
)
def test_a_merge_keeps_the_boxes_that_live_and_learns_of_later_deaths(old, new, dead, data):
    run, kept = run_of(sorted(old)), run_of([20, 21])
    frozen = snapshot_of(kept, run).append(entries(sorted(new)), EXACT)

    def kill(ids, version):
        for position in run.find(np.array(sorted(ids), np.int64)):
            if position >= 0:
                run.kill(position, version)
        places = [place for place, id in enumerate(sorted(new)) if id in ids]
        frozen.died[places] = np.minimum(frozen.died[places], version)

    kill(dead, frozen.version)
    copy_deaths = merge(make_exact, frozen, 1, EXACT)
    later = data.draw(st.sets(st.integers(0, 19)))
    kill(later, frozen.version + 1)
    merged = copy_deaths(frozen)
    living = sorted((old | new) - dead)
    assert merged.ids.tolist() == living
    after = [id for id, stamp in zip(living, merged.stamps(), strict=True) if stamp == NEVER]
    assert after == [id for id in living if id not in later]
    assert sorted(found(snapshot_of(merged, version=frozen.version + 1))) == after
    assert sorted(found(snapshot_of(merged, version=frozen.version))) == living


def test_parts_are_concatenated_in_order():
    both = concatenated([entries([5, 6]), entries([1], 2.0, 3.0)])
    assert both.ids.tolist() == [5, 6, 1]
    assert both.boxes.low.ravel().tolist() == [0.0, 0.0, 2.0]
    assert both.boxes.worth.tolist() == [0.5, 0.6, 0.1]


def test_the_scoring_follows_from_the_boxes_and_the_aggregate():
    one = np.zeros((1, 1))
    assert scoring_of(Boxes(one, one, np.ones(1)), "max") == EXACT
    assert scoring_of(Boxes(one, one, np.ones((1, 1))), "max") == MAX
    assert scoring_of(Boxes(one, one, np.ones((1, 1))), "sum") == SUM


def test_all_arrays_count_as_bytes():
    run = run_of([1, 2])
    assert run.nbytes == run.index.nbytes + 2 * 8 + 2 * 4 + 2 * 4
    assert snapshot_of(run, room=10).nbytes == run.nbytes + 10 * (24 + 8 + 8 + 4)
    assert no_cuts(3).counts.tolist() == [0, 0, 0, 0]
