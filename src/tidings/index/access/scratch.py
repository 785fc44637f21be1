"""Where one reader works: its own stamps, epochs and room for answers."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidings.index.access.kernels.match import Room
from tidings.index.access.kernels.partial_match import Touch
from tidings.index.access.kernels.postings import LEVELS, WIDE
from tidings.index.access.kernels.records import Marks, Said
from tidings.index.access.snapshot import State

LAST_EPOCH: Final = 2_000_000_000
TOGETHER: Final = 32  # rows that are looked at together


class Desk:
    """Arrays that are made once and grow; no two questions work at one desk at a time."""

    def __init__(self) -> None:
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self._epoch = np.zeros(1, np.int32)
        self._rows = np.zeros(TOGETHER, np.int32)
        self.looked = np.zeros(3, np.int64)

    @property
    def worn(self) -> bool:
        """Tell whether epochs are about to outgrow their numbers."""
        return bool(self._epoch[0] > LAST_EPOCH)

    def marks(self, state: State, said: Said, most: int) -> Marks:
        """Give room to mark events that stamp at most so many entries."""
        entries, slots = state.vocabulary.entries, state.vocabulary.slots
        spans = said.spans.reshape(-1, 4)
        values = int((spans[:, 3] - spans[:, 2] + spans[:, 1] - spans[:, 0]).max(initial=0))
        unsure = len(said.sure) > 0
        stamp = self._room("stamp", entries + 1 + slots, np.int32)
        return Marks(
            self._epoch,
            stamp,
            entries,
            stamp[entries + 1 :],
            self._room("slot_span", 2 * slots, np.int32),
            self._room("entry_sure", entries, np.float64) if unsure else np.empty(0),
            self._room("slot_sure", slots, np.float64) if unsure else np.empty(0),
            self._room("ids", most, np.int32),
            self._room("slots", values, np.int32),
            self._room("upper", values, np.int64),
            self._room("lower", values, np.int64),
        )

    def room(self, state: State, said: Said, marks: Marks, k: int) -> Room:
        """Give room to find; for the k best, if that is what is looked for."""
        lists = len(marks.ids) + LEVELS * len(marks.slots)
        if said.upper is not said.lower or _several(said):
            lists += sum(int(each.lists.cells.sum()) for each in state.segments) * 2
        return Room(
            marks,
            self._room("taken", len(state.table.owners), np.int32),
            self._room("lists", WIDE * lists, np.int32),
            np.empty(k, np.int64),
            self._room("ranks", state.tail.count, np.int32),
            self._rows,
            self.looked,
        )

    def touch(self, ranks: int, checks: int) -> Touch:
        """Give room to collect checks that hold."""
        return Touch(
            self._room("seen", ranks, np.int32),
            self._room("place", ranks, np.int32),
            self._room("touched", ranks, np.int32),
            self._room("counts", ranks, np.int32),
            self._room("bounds", ranks, np.float64),
            self._room("hits", 2 * checks + 2, np.int32),
            self._room("partials", checks + 1, np.float64),
        )

    def _room(self, name: str, size: int, dtype: Any) -> npt.NDArray[Any]:
        found = self._arrays.get(name)
        if found is None or len(found) < size:
            found = self._arrays[name] = np.zeros(max(64, size + size // 4), dtype)
        return found


def _several(said: Said) -> bool:
    """Tell whether some slot may have several values."""
    return bool(np.any(said.slots[1:] == said.slots[:-1]))
