"""Snapshots of a live box index: immutable runs and a memtable, read at one version.

    runs        | run 0 (largest) | run 1 | ...      compiled indexes, with death stamps
    memtable    | rows 0 .. size - 1 | room |        packed rows, scored one by one

A box that dies gets a stamp: the version from which it is dead. Rows are appended where no
reader looks, so that a writer never disturbs a reader.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np

from tidings.compiled.array_types import Bools, Int32s, Int64s
from tidings.compiled.arrays import total_bytes
from tidings.compiled.jit import TypedKernel
from tidings.errors import TidingsError, shown
from tidings.index import arguments
from tidings.index.background import BackgroundMerge, first_to_merge
from tidings.index.boxes.aggregate import named_aggregate
from tidings.index.boxes.auto import suits_lists
from tidings.index.boxes.exact_blocks import ExactBlocks
from tidings.index.boxes.kernels.memtable import EXACT, MAX, SUM, MemtableRows, search_memtable
from tidings.index.boxes.kernels.quantize import BoxBounds, CodeCuts, Liveness
from tidings.index.boxes.kernels.relaxed_layout import pack, total_weights
from tidings.index.boxes.kernels.topk_heap import TopkHeaps
from tidings.index.boxes.protocol import BoxAnswer, BoxAnswers, Boxes, NumericEvents, boxes_of
from tidings.index.boxes.relaxed_blocks import RelaxedBlocks
from tidings.index.boxes.search_base import (
    ALL_ALIVE,
    CompiledBoxIndex,
    answer_many,
    answer_one,
    coded_events,
    empty_heaps,
    sorted_answers,
    unpacked,
)
from tidings.index.boxes.sparse import SparseBoxes

NEVER: Final = np.iinfo(np.int32).max
SEARCH_MEMTABLE: Final = TypedKernel(search_memtable)
MakeIndex = Callable[[Boxes, Int64s], CompiledBoxIndex]
"""Builds an index over boxes with ascending ids."""


@dataclass(frozen=True, eq=False)
class IdentifiedBoxes:
    """Boxes and their ids."""

    boxes: Boxes
    ids: Int64s


@dataclass(frozen=True, eq=False)
class BoxRun:
    """An immutable index, except for the versions at which its boxes died."""

    index: CompiledBoxIndex
    ids: Int64s
    places: Int32s
    """The place of each id's stamp."""
    died: Int32s
    stamped: Bools
    """Whether there are stamps at all: one value, which is set before the first of them."""

    def kill(self, positions: Any, version: int) -> None:
        """Stamp boxes, by their positions in the order of ids, as dead from a version onwards."""
        self.stamped[0] |= np.size(positions) > 0
        self.died[self.places[positions]] = version

    def liveness(self, version: int) -> Liveness:
        """Return which boxes are alive at a version; without stamps, candidates are not tested."""
        return Liveness(self.died, version) if self.stamped[0] else ALL_ALIVE

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def dead(self) -> int:
        """The number of dead boxes, in any version."""
        return int((self.died != NEVER).sum())

    @property
    def nbytes(self) -> int:
        """The bytes of the index, its ids and stamps."""
        return self.index.nbytes + total_bytes(self.ids, self.places, self.died)

    def stamps(self) -> Int32s:
        """Return the stamps in the order of the ids."""
        return self.died[self.places]

    def alive(self, version: int) -> Int64s:
        """Return the positions, in the order of ids, of the boxes alive at a version."""
        return np.flatnonzero(self.stamps() > version)

    def find(self, ids: Int64s) -> Int64s:
        """Return the position of each id, or -1 if it is absent or dead."""
        if len(self.ids) == 0:
            return np.full(len(ids), -1, np.int64)
        positions = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        alive = (self.ids[positions] == ids) & (self.died[self.places[positions]] == NEVER)
        return np.where(alive, positions, -1)


def build_run(make: MakeIndex, entries: IdentifiedBoxes) -> BoxRun:
    """Build a run over boxes with ascending ids, all alive."""
    index = make(entries.boxes, entries.ids)
    places = index.places()
    died = np.full(len(places), NEVER, np.int32)
    return BoxRun(index, entries.ids, places, died, np.zeros(1, np.bool_))


class BoxSnapshot(NamedTuple):
    """One version of the index, valid for as long as a reader holds it."""

    runs: tuple[BoxRun, ...]
    rows: MemtableRows
    died: Int32s
    """The death stamps of the memtable's rows."""
    size: int
    """The number of rows in the memtable."""
    version: int

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(run.nbytes for run in self.runs) + total_bytes(self.rows, self.died)

    def search(self, events: NumericEvents, scoring: int, best: TopkHeaps) -> None:
        """Offer the boxes that may be among the k best; the largest run first raises the bar."""
        for run in self.runs:
            coded = coded_events(run.index.cuts, events)
            run.index.search(coded, best, run.liveness(self.version))
        if self.size:
            coded = coded_events(no_cuts(events.attributes), events)
            liveness = Liveness(self.died, self.version)
            SEARCH_MEMTABLE(self.rows, self.size, coded, liveness, scoring, best)

    def append(self, new: IdentifiedBoxes, scoring: int) -> "BoxSnapshot":
        """Return the next version, with boxes appended; a full memtable doubles."""
        rows, died, size = self.rows, self.died, self.size
        end = size + len(new.ids)
        if end > len(died):
            rows, died = empty_memtable(rows.packed.shape[1] // 3, max(end, 2 * len(died)))
            copy_rows(self, 0, rows, died)
        boxes = new.boxes
        bounds = BoxBounds(boxes.low, boxes.high)
        weights = boxes.worth if scoring != EXACT else np.zeros(boxes.low.shape)
        pack(bounds, weights, np.arange(len(boxes), dtype=np.int32), rows.packed[size:end])
        if scoring == EXACT:
            rows.most[size:end] = boxes.worth
        else:
            total_weights(bounds, weights, scoring == MAX, rows.most[size:end])
        rows.ids[size:end], died[size:end] = new.ids, NEVER
        return BoxSnapshot(self.runs, rows, died, end, self.version + 1)

    def without_rows(self, count: int) -> "BoxSnapshot":
        """Return the snapshot without the first `count` rows of its memtable, in new arrays."""
        size = self.size - count
        rows, died = empty_memtable(self.rows.packed.shape[1] // 3, size)
        copy_rows(self, count, rows, died)
        return BoxSnapshot(self.runs, rows, died, size, self.version)

    def memtable_boxes(self, places: Int64s, scoring: int) -> Boxes:
        """Return the boxes of some rows of the memtable."""
        boxes = unpacked(self.rows.packed, places)
        return replace(boxes, worth=self.rows.most[places]) if scoring == EXACT else boxes


def no_cuts(attributes: int) -> CodeCuts:
    """Return cuts for boxes that are compared without codes."""
    return CodeCuts(np.empty((attributes + 1, 0)), np.zeros(attributes + 1, np.int64))


def empty_memtable(attributes: int, room: int) -> tuple[MemtableRows, Int32s]:
    """Return room for boxes, and for their death stamps."""
    packed = np.empty((room, 3 * attributes))
    rows = MemtableRows(packed, np.empty(room), np.empty(room, np.int64))
    return rows, np.empty(room, np.int32)


def copy_rows(snapshot: BoxSnapshot, start: int, rows: MemtableRows, died: Int32s) -> None:
    """Copy the memtable's rows from `start` on to the beginning of another."""
    end, count = snapshot.size, snapshot.size - start
    rows.packed[:count] = snapshot.rows.packed[start:end]
    rows.most[:count] = snapshot.rows.most[start:end]
    rows.ids[:count] = snapshot.rows.ids[start:end]
    died[:count] = snapshot.died[start:end]


def scoring_of(boxes: Boxes, aggregate: str) -> int:
    """Return how a memtable scores its boxes."""
    if boxes.matching == "exact":
        return EXACT
    return MAX if aggregate == "max" else SUM


def concatenated(parts: list[IdentifiedBoxes]) -> IdentifiedBoxes:
    """Return the boxes of all parts."""
    low, high, worth = (
        np.concatenate([getattr(part.boxes, side) for part in parts])
        for side in ("low", "high", "worth")
    )
    return IdentifiedBoxes(Boxes(low, high, worth), np.concatenate([part.ids for part in parts]))


def merge(
    make: MakeIndex, frozen: BoxSnapshot, first: int, scoring: int
) -> Callable[[BoxSnapshot], BoxRun]:
    """Build one run of the boxes alive in the runs from `first` on and in the memtable.

    Returns a function that copies the stamps of a later snapshot, in which boxes may have died
    while the run was built, and then returns the run.
    """
    version = frozen.version
    alive = [run.alive(version) for run in frozen.runs[first:]]
    rows = np.flatnonzero(frozen.died[: frozen.size] > version)
    parts = [IdentifiedBoxes(frozen.memtable_boxes(rows, scoring), frozen.rows.ids[rows])]
    parts += [
        IdentifiedBoxes(run.index.boxes_at(run.places[positions]), run.ids[positions])
        for run, positions in zip(frozen.runs[first:], alive, strict=True)
    ]
    joined = concatenated(parts)
    order = np.argsort(joined.ids, kind="stable")
    run = build_run(make, IdentifiedBoxes(joined.boxes.take(order), joined.ids[order]))

    def with_later_deaths(snapshot: BoxSnapshot) -> BoxRun:
        stamps = [snapshot.died[rows]]
        runs = snapshot.runs[first : len(frozen.runs)]
        stamps += [old.stamps()[at] for old, at in zip(runs, alive, strict=True)]
        run.died[run.places] = np.concatenate(stamps)[order]
        run.stamped[0] = run.dead > 0
        return run

    return with_later_deaths


# A live box index: it changes while it answers, and merges its memtable in the background.

LEAST: Final = 1024
"""The default bound: fewer boxes than this in the memtable never start a merge."""
BACKLOG: Final = 8
"""A writer waits for the merge once the memtable has this many times the bound."""
DEAD: Final = 4
"""Once one box in 4 is dead, all runs are merged."""


class Located(NamedTuple):
    """Some of the ids of a change, in one part of the index."""

    run: BoxRun | None
    """None for the memtable."""
    chosen: Int64s
    """Which of the ids."""
    positions: Int64s
    """Their rows in the memtable, or their positions in the order of the run's ids."""


class LiveBoxes:
    """Boxes that change while readers on other threads are answered.

    Older boxes are in runs, immutable indexes with death stamps; newer ones in a memtable, which
    is searched linearly. Once the memtable has more than `bound` boxes, a background thread merges
    it with all runs of up to twice the size (`first_to_merge`), so that there are O(log n) runs. A
    writer that outruns the merge waits, which keeps the memtable short. Readers hold a snapshot,
    never wait, and see all of a change or nothing of it. `over` is `blocks`, `sparse` or `auto`.
    """

    name: ClassVar[str] = "live"

    def __init__(
        self, boxes: Boxes, aggregate: Any = "sum", over: str = "auto", bound: int = LEAST
    ) -> None:
        arguments.count("bound", bound)
        self._scoring = scoring_of(boxes, named_aggregate(aggregate, self.name))
        self._make = index_maker(boxes, aggregate, over)
        self._bound, self._matching, self.attributes = bound, boxes.matching, boxes.attributes
        self._merge = BackgroundMerge()
        run = build_run(self._make, IdentifiedBoxes(boxes, np.arange(len(boxes))))
        self._snapshot = BoxSnapshot((run,), *empty_memtable(boxes.attributes, 0), 0, 0)
        self._next_id = self._count = len(boxes)
        self._row_of: dict[int, int] = {}
        self._dead = 0

    def __len__(self) -> int:
        return self._count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays of the current snapshot."""
        return self._snapshot.nbytes

    def top(self, row: Any, k: int) -> BoxAnswer:
        return answer_one(self._answer, self.attributes, row, k, self._next_id)

    def top_many(self, rows: Any, k: int) -> BoxAnswers:
        return answer_many(self._answer, self.attributes, rows, k)

    def counters(self) -> dict[str, int]:
        """Return the number of runs, the size of the memtable, and the number of rebuilds."""
        snapshot = self._snapshot
        sizes = {"runs": len(snapshot.runs), "memtable": snapshot.size}
        return {**sizes, "rebuilds": self._merge.completed}

    def describe(self) -> str:
        """Return the sizes of the runs and the memtable, and whether a rebuild is running."""
        snapshot, running = self._snapshot, "a" if self._merge.running else "no"
        runs = ", ".join(f"{len(run):,}" for run in snapshot.runs)
        return (
            f"live: {self._count:,} subscriptions over {self.attributes} attributes, "
            f"{self._matching}; runs of {runs}, memtable {snapshot.size:,}, "
            f"{running} rebuild is under way, {self._merge.completed} done."
        )

    def insert(self, low: Any, high: Any, worth: Any) -> int:
        """Insert a box and return its id."""
        return int(self.insert_many([low], [high], [worth])[0])

    def insert_many(self, low: Any, high: Any, worth: Any) -> Int64s:
        """Insert boxes in one change and return their ids; all are refused if one is wrong."""
        boxes = self._checked(low, high, worth)
        with self._merge.lock:
            self._merge.check_writable()
            ids = np.arange(self._next_id, self._next_id + len(boxes))
            self._append(IdentifiedBoxes(boxes, ids))
            self._next_id, self._count = self._next_id + len(ids), self._count + len(ids)
            self._start_if_due()
        self._wait_if_ahead()
        return ids

    def delete(self, id: int) -> None:
        """Delete a box by id."""
        self.delete_many([id])

    def delete_many(self, ids: Any) -> None:
        """Delete boxes by id in one change; none is deleted if one does not exist."""
        targets = arguments.distinct_ids("subscription", ids)
        with self._merge.lock:
            self._merge.check_writable()
            self._kill(self._locate(targets))
            self._snapshot = self._snapshot._replace(version=self._snapshot.version + 1)
            for id in targets.tolist():
                self._row_of.pop(id, None)
            self._count -= len(targets)
            self._start_if_due()

    def replace(self, id: int, low: Any, high: Any, worth: Any) -> None:
        """Change the bounds and the score or weights of a box."""
        self.replace_many([id], [low], [high], [worth])

    def replace_many(self, ids: Any, low: Any, high: Any, worth: Any) -> None:
        """Change the bounds and worths of boxes in one change; none if an id does not exist."""
        targets = arguments.distinct_ids("subscription", ids)
        boxes = self._checked(low, high, worth)
        if len(targets) != len(boxes):
            raise TidingsError(f"{len(targets)} ids do not fit {len(boxes)} boxes")
        with self._merge.lock:
            self._merge.check_writable()
            self._kill(self._locate(targets))
            self._append(IdentifiedBoxes(boxes, targets))
            self._start_if_due()
        self._wait_if_ahead()

    def rescore(self, id: int, worth: Any) -> None:
        """Change the score or the weights of a box."""
        self.rescore_many([id], [worth])

    def rescore_many(self, ids: Any, worth: Any) -> None:
        """Change the scores or weights of boxes in one change; none if an id does not exist."""
        targets = arguments.distinct_ids("subscription", ids)
        with self._merge.lock:
            self._merge.check_writable()
            located = self._locate(targets)
            shape = len(targets), self.attributes
            low, high = np.empty(shape), np.empty(shape)
            for part in located:
                boxes = self._boxes_of(part)
                low[part.chosen], high[part.chosen] = boxes.low, boxes.high
            boxes = self._checked(low, high, worth)
            self._kill(located)
            self._append(IdentifiedBoxes(boxes, targets))
            self._start_if_due()
        self._wait_if_ahead()

    def rebuild(self) -> None:
        """Start merging everything into one run in the background, unless a merge is running."""
        with self._merge.lock:
            self._merge.check_writable()
            self._start_merge(everything=True)

    def settle(self) -> None:
        """Wait until no rebuild is running."""
        self._merge.wait()

    def close(self) -> None:
        """Wait for a running rebuild and refuse further changes; events are still answered."""
        self._merge.close()

    def _answer(self, events: NumericEvents, width: int) -> BoxAnswers:
        snapshot = self._snapshot
        if len(snapshot.runs) == 1 and not snapshot.size:
            # Most of the time: nothing to merge, so no heaps of scores, which take 1 us an event.
            (run,) = snapshot.runs
            return run.index.answers(events, width, run.liveness(snapshot.version))
        best = empty_heaps(len(events), width)
        snapshot.search(events, self._scoring, best)
        return sorted_answers(best)

    def _checked(self, low: Any, high: Any, worth: Any) -> Boxes:
        boxes = boxes_of(low, high, worth)
        if boxes.attributes != self.attributes or boxes.matching != self._matching:
            raise TidingsError(
                f"expected {self.attributes} attributes, {self._matching}, not "
                f"{boxes.attributes}, {boxes.matching}"
            )
        return boxes

    def _locate(self, ids: Int64s) -> list[Located]:
        """Return where the ids are; refuse ids that do not exist."""
        rows = np.fromiter((self._row_of.get(id, -1) for id in ids.tolist()), np.int64, len(ids))
        parts: list[tuple[BoxRun | None, Int64s]] = [(None, rows)]
        parts += [(run, run.find(ids)) for run in self._snapshot.runs]
        missing = np.logical_and.reduce([positions < 0 for _, positions in parts])
        if missing.any():
            raise TidingsError(f"there is no subscription {ids[np.argmax(missing)]}")
        return [
            Located(run, np.flatnonzero(positions >= 0), positions[positions >= 0])
            for run, positions in parts
        ]

    def _boxes_of(self, part: Located) -> Boxes:
        if part.run is None:
            return self._snapshot.memtable_boxes(part.positions, self._scoring)
        return part.run.index.boxes_at(part.run.places[part.positions])

    def _kill(self, located: list[Located]) -> None:
        """Stamp boxes as dead from the next version onwards."""
        version = self._snapshot.version + 1
        for run, _, positions in located:
            if run is None:
                self._snapshot.died[positions] = version
            else:
                run.kill(positions, version)
                self._dead += len(positions)

    def _append(self, new: IdentifiedBoxes) -> None:
        """Append boxes to the memtable and publish them, with all stamps written before."""
        first = self._snapshot.size
        self._snapshot = self._snapshot.append(new, self._scoring)
        rows = range(first, self._snapshot.size)
        self._row_of.update(zip(new.ids.tolist(), rows, strict=True))

    def _wait_if_ahead(self) -> None:
        """Wait while the memtable has more than a backlog of changes."""
        while self._merge.running and self._snapshot.size > BACKLOG * max(self._bound, 1):
            self.settle()

    def _start_if_due(self) -> None:
        if self._snapshot.size > self._bound or self._has_many_dead():
            self._start_merge()

    def _has_many_dead(self) -> bool:
        return self._dead > max(self._bound, sum(map(len, self._snapshot.runs)) // DEAD)

    def _start_merge(self, everything: bool = False) -> None:
        self._merge.start(lambda: self._run_merges(everything))

    def _run_merges(self, everything: bool) -> None:
        """Merge until no merge is due."""
        more = True
        while more:
            more = self._merge_once(everything)
            everything = False

    def _merge_once(self, everything: bool) -> bool:
        """Build one run and swap it in; return whether another merge is due."""
        with self._merge.lock:
            frozen, everything = self._snapshot, everything or self._has_many_dead()
        first = 0 if everything else first_to_merge([*map(len, frozen.runs)], frozen.size)
        with_later_deaths = merge(self._make, frozen, first, self._scoring)
        with self._merge.lock:
            current = self._snapshot
            rest = current.without_rows(frozen.size)
            rows = {id: row - frozen.size for id, row in self._row_of.items() if row >= frozen.size}
            runs = (*current.runs[:first], with_later_deaths(current))
            # Nothing is assigned before all has succeeded: a failure leaves the index as it was.
            self._snapshot, self._row_of = rest._replace(runs=runs), rows
            self._merge.completed += 1
            self._dead = sum(run.dead for run in self._snapshot.runs)
            if rest.size > self._bound and not self._merge.closed:
                return True
            self._merge.finish()
        return False


def index_maker(boxes: Boxes, aggregate: Any, over: Any) -> MakeIndex:
    """Return a function that builds a run; `auto` chooses lists or blocks as `relaxed_auto`."""
    if not isinstance(over, str) or over not in ("auto", "blocks", "sparse"):
        raise TidingsError(f"unknown over {shown(over)}; expected one of: auto, blocks, sparse")
    if boxes.matching == "exact":
        return ExactBlocks
    lists = over == "sparse" or (over == "auto" and suits_lists(boxes))
    kind = SparseBoxes if lists else RelaxedBlocks

    def make(some: Boxes, names: Int64s) -> CompiledBoxIndex:
        return kind(some, aggregate, names)

    return make
