"""What a reader of a live index of boxes holds: runs and a pile, seen at one version."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.index.boxes.kernels.quantize import Cuts
from tidings.index.boxes.kernels.relaxed_layout import pack, total_weights
from tidings.index.boxes.kernels.topk_heap import Found
from tidings.index.boxes.kernels.unindexed import EXACT, MAX, SUM, Pile, pile_many
from tidings.index.boxes.protocol import Boxes, Events
from tidings.index.boxes.quantize import asked_of
from tidings.index.boxes.search_base import Fast, bytes_of, unpacked

NEVER: Final = np.iinfo(np.int32).max
Stamps = np.typing.NDArray[np.int32]
Make = Callable[[Boxes, Int64s], Fast]
"""Builds an index over boxes, given their ids, which ascend."""


@dataclass(frozen=True, eq=False)
class Entries:
    """Boxes and their ids."""

    boxes: Boxes
    ids: Int64s


@dataclass(frozen=True, eq=False)
class Run:
    """An index that is never changed but for stamps: the versions at which its boxes died."""

    index: Fast
    ids: Int64s
    places: Stamps
    died: Stamps

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def dead(self) -> int:
        """How many are dead, in whatever version."""
        return int((self.died != NEVER).sum())

    @property
    def nbytes(self) -> int:
        """The bytes of the index and of what is kept beside it."""
        return self.index.nbytes + bytes_of((self.ids, self.places, self.died))

    def stamps(self) -> Stamps:
        """Give the stamps in the order of the ids."""
        return self.died[self.places]

    def alive(self, version: int) -> Int64s:
        """Give who lives at a version, as positions in the order of ids."""
        return np.flatnonzero(self.stamps() > version)

    def find(self, ids: Int64s) -> Int64s:
        """Give the position of each id, or -1 where it is not here or dead."""
        if len(self.ids) == 0:
            return np.full(len(ids), -1, np.int64)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        there = (self.ids[at] == ids) & (self.died[self.places[at]] == NEVER)
        return np.where(there, at, -1)


def run_of(make: Make, entries: Entries, stamps: Stamps) -> Run:
    """Build a run over entries whose ids ascend, with their stamps."""
    index = make(entries.boxes, entries.ids)
    places = index.places()
    died = np.empty(len(places), np.int32)
    died[places] = stamps
    return Run(index, entries.ids, places, died)


class State(NamedTuple):
    """One version of the index, for as long as somebody reads it."""

    runs: tuple[Run, ...]
    pile: Pile
    died: Stamps
    size: int
    version: int

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(run.nbytes for run in self.runs) + bytes_of((self.pile, self.died))

    def search(self, events: Events, how: int, found: Found) -> None:
        """Offer what may be among the best, the largest run first: it raises the k-th best."""
        for run in self.runs:
            asked = asked_of(run.index.cuts, events)
            run.index.search(asked, found, (run.died, self.version))
        if self.size:
            asked = asked_of(no_cuts(events.attributes), events)
            pile_many(self.pile, self.size, asked, (self.died, self.version), how, found)


def no_cuts(attributes: int) -> Cuts:
    """Give cuts for what is compared without codes."""
    return np.empty((attributes + 1, 0)), np.zeros(attributes + 1, np.int64)


def empty_pile(attributes: int, room: int) -> tuple[Pile, Stamps]:
    """Make room for boxes."""
    pile = np.empty((room, 3 * attributes)), np.empty(room), np.empty(room, np.int64)
    return pile, np.empty(room, np.int32)


def how_of(boxes: Boxes, aggregate: Any) -> int:
    """Give how a pile scores."""
    if boxes.matching == "exact":
        return EXACT
    return MAX if aggregate == "max" else SUM


def copy_rows(held: tuple[Pile, Stamps], span: tuple[int, int], out: tuple[Pile, Stamps]) -> None:
    """Copy a stretch of a pile to the beginning of another."""
    start, end = span
    for side in range(3):
        out[0][side][: end - start] = held[0][side][start:end]
    out[1][: end - start] = held[1][start:end]


def put(state: State, new: Entries, how: int) -> State:
    """Write boxes behind those of the pile, where no reader looks; a full pile doubles."""
    pile, died, size = state.pile, state.died, state.size
    end = size + len(new.ids)
    if end > len(died):
        wider, stamps = empty_pile(pile[0].shape[1] // 3, max(end, 2 * len(died)))
        copy_rows((pile, died), (0, size), (wider, stamps))
        pile, died = wider, stamps
    boxes = new.boxes
    weights = boxes.worth if how != EXACT else np.zeros(boxes.low.shape)
    every = boxes.low, boxes.high, weights
    pack(every, np.arange(len(boxes), dtype=np.int32), pile[0][size:end])
    if how == EXACT:
        pile[1][size:end] = boxes.worth
    else:
        total_weights(every, how == MAX, pile[1][size:end])
    pile[2][size:end], died[size:end] = new.ids, NEVER
    return State(state.runs, pile, died, end, state.version + 1)


def in_pile(pile: Pile, places: Int64s, how: int) -> Boxes:
    """Give boxes of a pile back."""
    boxes = unpacked(pile[0], places)
    return replace(boxes, worth=pile[1][places]) if how == EXACT else boxes


def joined(parts: list[Entries]) -> Entries:
    """Put entries together as they come."""
    low, high, worth = (
        np.concatenate([getattr(each.boxes, side) for each in parts])
        for side in ("low", "high", "worth")
    )
    return Entries(Boxes(low, high, worth), np.concatenate([each.ids for each in parts]))


def behind(state: State, size: int) -> State:
    """Give the state without the first `size` of its pile, in arrays of their own."""
    pile, died = empty_pile(state.pile[0].shape[1] // 3, state.size - size)
    copy_rows((state.pile, state.died), (size, state.size), (pile, died))
    return State(state.runs, pile, died, len(died), state.version)


def merge(make: Make, frozen: State, first: int, how: int) -> Callable[[State], Run]:
    """Build one run of what lives in the runs from `first` on and in the pile.

    What is given takes the stamps of a later state, in which the same arrays were stamped on.
    """
    version = frozen.version
    live = [run.alive(version) for run in frozen.runs[first:]]
    old = np.flatnonzero(frozen.died[: frozen.size] > version)
    parts = [Entries(in_pile(frozen.pile, old, how), frozen.pile[2][old])]
    parts += [
        Entries(run.index.held(run.places[at]), run.ids[at])
        for run, at in zip(frozen.runs[first:], live, strict=True)
    ]
    every = joined(parts)
    order = np.argsort(every.ids, kind="stable")
    entries = Entries(every.boxes.some(order), every.ids[order])
    run = run_of(make, entries, np.full(len(order), NEVER, np.int32))

    def stamped(state: State) -> Run:
        stamps = [state.died[old]]
        runs = state.runs[first : len(frozen.runs)]
        stamps += [each.stamps()[at] for each, at in zip(runs, live, strict=True)]
        run.died[run.places] = np.concatenate(stamps)[order]
        return run

    return stamped
