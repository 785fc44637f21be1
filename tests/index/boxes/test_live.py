"""Snapshots of a live box index: versions, deaths, appended rows, and merged runs."""

import os
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.errors import TidingsError
from tidings.index.boxes import box_index, live
from tidings.index.boxes.exact_blocks import ExactBlocks
from tidings.index.boxes.kernels.memtable import EXACT, MAX, SUM
from tidings.index.boxes.live import (
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
from tidings.index.boxes.protocol import Boxes, events_of, range_events
from tidings.index.boxes.relaxed_blocks import RelaxedBlocks
from tidings.index.boxes.search_base import empty_heaps, single_answer, sorted_answers
from tidings.model.values import Range


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


JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
EXAMPLES = settings(max_examples=40 if JIT else 6)
KINDS = [("exact", {}), ("relaxed", {"over": "blocks"}), ("relaxed", {"over": "sparse"})]
KINDS += [("relaxed", {"aggregate": "max"})]

every_kind = pytest.mark.parametrize(("how", "options"), KINDS)


def random_boxes(rng, size, attributes=3):
    """Return boxes on few numbers, some attributes free, with weights that tie."""
    low = rng.integers(0, 6, (size, attributes)).astype(float)
    high = low + rng.integers(0, 4, low.shape)
    low[rng.random(low.shape) < 0.2] = -np.inf
    high[rng.random(low.shape) < 0.2] = np.inf
    return low, high, rng.integers(0, 4, low.shape) / 10


def live_index(*boxes: Any, **options: Any) -> Any:
    return box_index("live", *boxes, **options)


def worth(how, weight):
    return weight if how == "relaxed" else weight[:, 0]


class Model:
    """Boxes by id, answered by a scan over the current ones."""

    def __init__(self, how, low, high, weight, aggregate="sum"):
        self.how, self.aggregate, self.next_id = how, aggregate, 0
        self.boxes = {}
        self.add(low, high, weight)

    def add(self, low, high, weight):
        for box in zip(low, high, worth(self.how, weight), strict=True):
            self.boxes[self.next_id] = box
            self.next_id += 1

    def top(self, event, k):
        ids = np.array(sorted(self.boxes), np.int64)
        if len(ids) == 0:
            return [], []
        low, high, worths = map(np.array, zip(*map(self.boxes.get, ids), strict=True))
        options = {"aggregate": self.aggregate} if self.how == "relaxed" else {}
        rows, scores = box_index("scan", low, high, worths, **options).top(event, k)
        return ids[rows].tolist(), scores.tolist()


def agree(index, model, rng, k=7):
    events = rng.integers(-1, 9, (3, 3)).astype(float)
    events[rng.random(events.shape) < 0.1] = np.nan
    ids, scores, counts = index.top_many(events, k)
    for row, event in enumerate(events):
        answer = ids[row, : counts[row]].tolist(), scores[row, : counts[row]].tolist()
        assert answer == model.top(event, k)
    assert len(index) == len(model.boxes)


def some_ids(model, rng, most):
    ids = sorted(model.boxes)
    return rng.permutation(ids)[: rng.integers(0, most + 1)]


def change(index, model, rng):
    """Apply one random change to both."""
    kind = rng.integers(0, 5)
    if kind == 0:
        low, high, weight = random_boxes(rng, int(rng.integers(0, 9)))
        new = index.insert_many(low, high, worth(model.how, weight))
        assert new.tolist() == list(range(model.next_id, model.next_id + len(low)))
        model.add(low, high, weight)
    elif kind == 1:
        ids = some_ids(model, rng, 6)
        index.delete_many(ids)
        for id in ids:
            del model.boxes[id]
    elif kind == 2:
        ids = some_ids(model, rng, 6)
        low, high, weight = random_boxes(rng, len(ids))
        index.replace_many(ids, low, high, worth(model.how, weight))
        new = zip(low, high, worth(model.how, weight), strict=True)
        model.boxes.update(zip(ids, new, strict=True))
    elif kind == 3:
        ids = some_ids(model, rng, 6)
        weight = worth(model.how, random_boxes(rng, len(ids))[2])
        index.rescore_many(ids, weight)
        for id, new in zip(ids, weight, strict=True):
            model.boxes[id] = (*model.boxes[id][:2], new)
    else:
        index.rebuild()
        if rng.random() < 0.5:
            index.settle()


@every_kind
@EXAMPLES
@given(seed=st.integers(0, 2**32), size=st.integers(0, 70), bound=st.sampled_from([0, 5, 1000]))
def test_answers_after_any_changes_equal_those_of_the_scan(how, options, seed, size, bound):
    rng = np.random.default_rng(seed)
    low, high, weight = random_boxes(rng, size)
    model = Model(how, low, high, weight, options.get("aggregate", "sum"))
    with live_index(low, high, worth(how, weight), bound=bound, **options) as index:
        for _ in range(8):
            change(index, model, rng)
            agree(index, model, rng)
        index.settle()
        agree(index, model, rng, k=200)


@every_kind
def test_single_changes_are_batches_of_one(how, options):
    rng = np.random.default_rng(1)
    low, high, weight = random_boxes(rng, 20)
    model = Model(how, low, high, weight, options.get("aggregate", "sum"))
    with live_index(low, high, worth(how, weight), **options) as index:
        one = random_boxes(rng, 1)
        assert index.insert(one[0][0], one[1][0], worth(how, one[2])[0]) == 20
        model.add(*one)
        index.delete(3)
        del model.boxes[3]
        index.rescore(5, worth(how, one[2])[0])
        model.boxes[5] = (*model.boxes[5][:2], worth(how, one[2])[0])
        index.replace(6, one[0][0], one[1][0], worth(how, one[2])[0])
        model.boxes[6] = (one[0][0], one[1][0], worth(how, one[2])[0])
        agree(index, model, rng)


@every_kind
def test_all_boxes_may_be_deleted_and_inserted_again(how, options):
    rng = np.random.default_rng(2)
    low, high, weight = random_boxes(rng, 130)
    model = Model(how, low, high, weight, options.get("aggregate", "sum"))
    with live_index(low, high, worth(how, weight), bound=0, **options) as index:
        index.delete_many(np.arange(130))
        model.boxes.clear()
        index.settle()
        agree(index, model, rng)
        index.insert_many(low, high, worth(how, weight))
        model.add(low, high, weight)
        index.settle()
        agree(index, model, rng)
        assert min(index.top([1, 1, 1], 200)[0], default=130) >= 130


def test_deleted_boxes_release_their_memory():
    rng = np.random.default_rng(3)
    low, high, weight = random_boxes(rng, 4000)
    with live_index(low, high, weight, bound=64) as index:
        before = index.nbytes
        index.delete_many(np.arange(0, 3600))
        index.settle()
        assert index.nbytes < before / 5
        assert index.counters()["rebuilds"] == 1
        assert len(index) == 400


def test_runs_are_merged_so_that_few_remain():
    rng = np.random.default_rng(4)
    low, high, weight = random_boxes(rng, 5000 if JIT else 300)
    with live_index(low, high, weight, bound=7) as index:
        for _ in range(60):
            index.insert_many(*random_boxes(rng, 8))
            index.settle()
        assert index.counters()["memtable"] <= 7
        assert 2 <= index.counters()["runs"] <= 9
        assert index.counters()["rebuilds"] == 60


@pytest.mark.skipif(not JIT, reason="too slow without compiled kernels")
@every_kind
def test_readers_see_all_of_a_change_or_nothing(how, options):
    """Some boxes get new weights in one change, many times; no other box matches the event.

    Every answer must therefore have all of them, with one score.
    """
    watched, rng = 40, np.random.default_rng(5)
    filler = random_boxes(rng, 3000)
    low = np.concatenate([np.full((watched, 3), 50.0), filler[0]])
    high = np.concatenate([np.full((watched, 3), 60.0), filler[1].clip(max=40)])
    low[watched:] = low[watched:].clip(min=-5)
    weight = np.concatenate([np.ones((watched, 3)), filler[2]])
    wrong, stop = [], threading.Event()
    with live_index(low, high, worth(how, weight), bound=100, **options) as index:

        def read():
            while not stop.is_set():
                ids, scores, counts = index.top_many(np.full((3, 3), 55.0), 2 * watched)
                if set(counts.tolist()) != {watched} or not (ids[0] == ids).all():
                    wrong.append((ids, counts))
                if len(set(scores[0, :watched].tolist())) != 1:
                    wrong.append(scores)

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        box = np.full((watched, 3), 50.0), np.full((watched, 3), 60.0)
        ids = np.arange(watched)
        for step in range(150):
            weights = np.full((watched, 3), 1.0 + step % 7)
            if step % 2:
                index.replace_many(ids, *box, worth(how, weights))
            else:
                index.rescore_many(ids, worth(how, weights))
            index.insert_many(low[-5:], high[-5:], worth(how, weight)[-5:])
        index.settle()
        stop.set()
        for reader in readers:
            reader.join()
        assert index.counters()["rebuilds"] > 0
    assert wrong == []


def test_a_reader_of_an_old_state_is_not_disturbed():
    rng = np.random.default_rng(6)
    low, high, weight = random_boxes(rng, 300)
    with live_index(low, high, weight, bound=0) as index:
        state = index._snapshot
        index.delete_many(np.arange(150))
        index.insert_many(*random_boxes(rng, 50))
        index.settle()
        old, index._snapshot = index._snapshot, state
        scan = box_index("scan", low, high, weight)
        assert index.top([2, 2, 2], 300)[0].tolist() == scan.top([2, 2, 2], 300)[0].tolist()
        index._snapshot = old


def test_ranges_and_probabilities_reach_the_memtable():
    low, high, weight = np.zeros((1, 2)), np.ones((1, 2)), np.ones((1, 2))
    with live_index(low, high, weight) as index:
        index.insert([4, 4], [8, 8], [2, 2])
        event = range_events([[Range(0.5, 5), 0.5]], [0.5, 1])
        ids, scores = index.top(event, 2)
        assert ids.tolist() == [0, 1]
        assert scores.tolist() == [1.5, 1.0]


def test_a_failed_rebuild_is_reported_and_loses_nothing(monkeypatch):
    rng = np.random.default_rng(7)
    low, high, weight = random_boxes(rng, 30)
    with live_index(low, high, weight, bound=0) as index:

        def broken(*_):
            raise MemoryError("no room")

        monkeypatch.setattr(live, "merge", broken)
        index.insert_many(low, high, weight)
        index.settle()
        monkeypatch.undo()
        with pytest.raises(TidingsError, match="the last merge failed"):
            index.delete(0)
        assert len(index) == 60
        index.delete(0)
        index.settle()
        assert index.counters()["rebuilds"] == 1
        assert index.counters()["memtable"] == 0


class Full(dict[int, int]):
    """Rows that cannot be copied, for lack of memory."""

    def items(self):
        raise MemoryError("no room")


def test_a_rebuild_that_fails_while_it_swaps_changes_nothing():
    rng = np.random.default_rng(7)
    low, high, weight = random_boxes(rng, 30)
    with live_index(low, high, weight, bound=10**6) as index:
        index.insert_many(low, high, weight)
        state, places = index._snapshot, index._row_of
        index._row_of = Full(places)
        index.rebuild()
        index.settle()
        assert index._snapshot is state
        assert index.counters() == {"runs": 1, "memtable": 30, "rebuilds": 0}
        index._row_of = places
        with pytest.raises(TidingsError, match=r"the last merge failed .*no room"):
            index.delete(35)
        index.delete(35)
        index.rebuild()
        index.settle()
        assert index.counters() == {"runs": 1, "memtable": 0, "rebuilds": 1}
        assert len(index) == 59


def test_wrong_changes_are_refused_and_change_nothing():
    rng = np.random.default_rng(8)
    low, high, weight = random_boxes(rng, 10)
    index = live_index(low, high, weight)
    before = index.top([1, 1, 1], 10)[0].tolist()
    for wrong, message in (
        (lambda: index.delete_many([1, 77]), "there is no subscription 77"),
        (lambda: index.rescore_many([1, 1], weight[:2]), "an id is given twice"),
        (
            lambda: index.replace_many([1], low[:2], high[:2], weight[:2]),
            "1 ids do not fit",
        ),
        (lambda: index.insert([0], [1], [1]), "expected 3 attributes, relaxed, not 1"),
        (lambda: index.insert_many(low, high, weight[:, 0]), "relaxed, not 3, exact"),
        (lambda: index.insert([2, 2, 2], [1, 1, 1], [1, 1, 1]), "low 2.0 is above high 1.0"),
        (lambda: index.rescore(1, [-1, 0, 0]), "is not a finite number >= 0"),
    ):
        with pytest.raises(TidingsError, match=message):
            wrong()
    assert index.top([1, 1, 1], 10)[0].tolist() == before
    index.close()
    with pytest.raises(TidingsError, match="closed"):
        index.delete(1)
    assert index.top([1, 1, 1], 10)[0].tolist() == before


def test_wrong_options_are_refused():
    low, high, weight = random_boxes(np.random.default_rng(9), 4)
    with pytest.raises(TidingsError, match="bound = -1 is below 0"):
        live_index(low, high, weight, bound=-1)
    with pytest.raises(TidingsError, match="unknown over 'tree'; expected one of: auto"):
        live_index(low, high, weight, over="tree")
    with pytest.raises(TidingsError, match="live aggregates by sum and max"):
        live_index(low, high, weight, aggregate=np.sum)


def test_the_description_names_runs_and_memtable():
    low, high, weight = random_boxes(np.random.default_rng(10), 10)
    index = live_index(low, high, weight)
    index.insert_many(low, high, weight)
    assert index.describe() == (
        "live: 20 subscriptions over 3 attributes, relaxed; runs of 10, memtable 10, "
        "no rebuild is under way, 0 done."
    )


def test_a_writer_that_outruns_the_rebuild_waits_for_it():
    rng = np.random.default_rng(3)
    index = live_index(*random_boxes(rng, 10), bound=5)
    for _ in range(20):
        index.insert_many(*random_boxes(rng, 30))
        assert index.counters()["memtable"] <= live.BACKLOG * 5
    assert len(index) == 610
