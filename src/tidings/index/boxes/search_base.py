"""What the compiled indexes of boxes have in common: they search for heaps that others share."""

from typing import Any, Final, Protocol

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.index import arguments
from tidings.index.boxes.kernels.quantize import Alive, Asked, Cuts
from tidings.index.boxes.kernels.topk_heap import Found, sort_found
from tidings.index.boxes.protocol import Answers, Boxes, events_of
from tidings.index.boxes.quantize import asked_of

Ids = np.typing.NDArray[np.int32]

EVERYBODY: Final[Alive] = np.empty(0, np.int32), 0


class Fast(Protocol):
    """A compiled index over boxes that never change; some of them may die."""

    cuts: Cuts
    attributes: int

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""

    def search(self, asked: Asked, found: Found, alive: Alive) -> Int64s:
        """Offer to each event's heap what may be among its k best; give the counters."""

    def places(self) -> Ids:
        """Give for each box, in the order in which they were given, the place of its stamp."""

    def held(self, places: Ids) -> Boxes:
        """Give boxes back by place; a free attribute weighs 0."""


def answered(index: Fast, rows: Any, k: int) -> tuple[Answers, Int64s]:
    """Answer all events with an index of which everybody lives; give the counters, too."""
    events = events_of(index.attributes, rows)
    found = empty_found(len(events), arguments.width(k, len(events)))
    counters = index.search(asked_of(index.cuts, events), found, EVERYBODY)
    return sorted_found(found), counters


def one_answer(answers: Answers) -> tuple[Any, Any]:
    """Give the only row of answers."""
    ids, scores, counts = answers
    return ids[0, : counts[0]], scores[0, : counts[0]]


def empty_found(count: int, k: int) -> Found:
    """Make empty heaps for so many events."""
    return np.full((count, k), np.nan), np.full((count, k), -1, np.int64), np.zeros(count, np.int64)


def sorted_found(found: Found) -> Answers:
    """Give heaps as answers."""
    sort_found(found)
    return found[1], found[0], found[2]


def bytes_of(arrays: Any) -> int:
    """Add up the bytes of the arrays in nested tuples."""
    if isinstance(arrays, tuple):
        return sum(bytes_of(each) for each in arrays)
    return int(getattr(arrays, "nbytes", 0))


def inverse(order: Ids) -> Ids:
    """Give the place of each number in an order."""
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return places


def unpacked(packed: Float64s, places: Any) -> Boxes:
    """Give boxes of rows; what was free is free again, with the weight 0."""
    rows = packed[places].reshape(len(places), packed.shape[1] // 3, 3)
    free = rows[:, :, 0] > rows[:, :, 1]
    low, high = np.where(free, -np.inf, rows[:, :, 0]), np.where(free, np.inf, rows[:, :, 1])
    return Boxes(low, high, np.ascontiguousarray(rows[:, :, 2]))
