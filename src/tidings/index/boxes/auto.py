"""Chooses a box index by the aggregate and by the share of constrained attributes."""

from typing import Any, ClassVar, Final

from tidings.index.boxes.aggregate import Aggregate
from tidings.index.boxes.exact_blocks import ExactBlocks
from tidings.index.boxes.protocol import BoxAnswer, BoxAnswers, Boxes, BoxIndex
from tidings.index.boxes.relaxed_blocks import MAX_ATTRIBUTES, RelaxedBlocks
from tidings.index.boxes.scan import RelaxedBoxScan
from tidings.index.boxes.sparse import SparseBoxes

SPARSE_BELOW: Final = 1 / 16
"""Below this share of constrained attributes, lists beat blocks, which compare all of them."""


def constrained_share(boxes: Boxes) -> float:
    """Return the share of attributes that are constrained, over all boxes."""
    return float(boxes.constrained().mean()) if len(boxes) else 1.0


def suits_lists(boxes: Boxes) -> bool:
    """Return whether lists of predicates suit the boxes better than blocks."""
    return constrained_share(boxes) < SPARSE_BELOW or boxes.attributes > MAX_ATTRIBUTES


def exact_auto(boxes: Boxes) -> "AutoBoxes":
    """Choose for exact matching: blocks, which stop at the first attribute that excludes all."""
    return AutoBoxes(ExactBlocks(boxes), "it serves all exact matching")


def relaxed_auto(boxes: Boxes, aggregate: str | Aggregate = "sum") -> "AutoBoxes":
    """Choose for relaxed matching by the aggregate and the share of constrained attributes."""
    if callable(aggregate):
        # The papers' threshold algorithm takes any function too, but is 140 to 600 times slower
        # than numpy columns (bench/results/box.md); nothing faster than the scan can call it.
        return AutoBoxes(RelaxedBoxScan(boxes, aggregate), "the aggregate is a function")
    reason = f"{constrained_share(boxes):.1%} of the attributes are constrained"
    if suits_lists(boxes):
        return AutoBoxes(SparseBoxes(boxes, aggregate), reason)
    return AutoBoxes(RelaxedBlocks(boxes, aggregate), reason)


class AutoBoxes:
    """An index chosen automatically; `describe` names it and the reason.

    >>> from tidings.index.boxes.protocol import boxes_of
    >>> print(relaxed_auto(boxes_of([[0.0]], [[1.0]], [[1.0]])).describe())
    blocks, since 100.0% of the attributes are constrained.
    blocks: 1 subscriptions over 1 attributes, relaxed; 64 a block, heaviest first, by sum.
    """

    name: ClassVar[str] = "auto"

    def __init__(self, chosen: BoxIndex, reason: str) -> None:
        self.chosen = chosen
        self.reason = reason

    @property
    def nbytes(self) -> int:
        """The bytes of the chosen index."""
        return self.chosen.nbytes

    def top(self, row: Any, k: int) -> BoxAnswer:
        return self.chosen.top(row, k)

    def top_many(self, rows: Any, k: int) -> BoxAnswers:
        return self.chosen.top_many(rows, k)

    def counters(self) -> dict[str, int]:
        return dict(self.chosen.counters())

    def describe(self) -> str:
        """Return which index was chosen, why, and its contents."""
        return f"{self.chosen.name}, since {self.reason}.\n{self.chosen.describe()}"
