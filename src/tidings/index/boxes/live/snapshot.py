"""Snapshots of a live box index: immutable runs and a memtable, read at one version.

    runs        | run 0 (largest) | run 1 | ...      compiled indexes, with death stamps
    memtable    | rows 0 .. size - 1 | room |        packed rows, scored one by one

A box that dies gets a stamp: the version from which on it is dead. Rows are appended where no
reader looks, so that a writer never disturbs a reader.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Bools, Int32s, Int64s
from tidings.compiled.arrays import total_bytes
from tidings.index.boxes.kernels.memtable import EXACT, MAX, SUM, MemtableRows, search_memtable
from tidings.index.boxes.kernels.quantize import BoxBounds, CodeCuts, Liveness
from tidings.index.boxes.kernels.relaxed_layout import pack, total_weights
from tidings.index.boxes.kernels.topk_heap import TopkHeaps
from tidings.index.boxes.protocol import Boxes, NumericEvents
from tidings.index.boxes.search_base import ALL_ALIVE, CompiledBoxIndex, coded_events, unpacked
from tidings.index.typed_kernel import TypedKernel

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
        """Stamp boxes, by their positions in the order of ids, as dead from a version on."""
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
