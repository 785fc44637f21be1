"""The index over boxes that fits: chosen by how many predicates there are, with the reason."""

from typing import Any, ClassVar, Final

from tidings.index.boxes.aggregate import Aggregate
from tidings.index.boxes.exact_blocks import ExactBlocks
from tidings.index.boxes.papers.threshold import Threshold
from tidings.index.boxes.protocol import Answer, Answers, Boxes, BoxIndex
from tidings.index.boxes.relaxed_blocks import MOST, RelaxedBlocks
from tidings.index.boxes.sparse import Sparse

FILL: Final = 1 / 16
"""Below this share of constrained attributes, lists beat blocks, which compare them all."""


def exact_auto(boxes: Boxes) -> "Auto":
    """Choose for exact matching: blocks, which stop at the first attribute that rules them out."""
    return Auto(ExactBlocks(boxes), "it serves all exact matching")


def relaxed_auto(boxes: Boxes, aggregate: str | Aggregate = "sum") -> "Auto":
    """Choose for relaxed matching by the aggregate and by the share of constrained attributes."""
    if callable(aggregate):
        return Auto(Threshold(boxes, aggregate), "only it takes any monotone function")
    fill = float(boxes.constrained().mean()) if len(boxes) else 0.0
    share = f"{fill:.1%} of the attributes are constrained"
    if fill < FILL or boxes.attributes > MOST:
        return Auto(Sparse(boxes, aggregate), share)
    return Auto(RelaxedBlocks(boxes, aggregate), share)


class Auto:
    """An index chosen by itself; `describe` tells which and why.

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

    def top(self, row: Any, k: int) -> Answer:
        """Give ids and scores of the k best for an event."""
        return self.chosen.top(row, k)

    def top_many(self, rows: Any, k: int) -> Answers:
        """Give a row of ids and of scores for each event, and how many each has."""
        return self.chosen.top_many(rows, k)

    def counters(self) -> dict[str, int]:
        """Give what the last question looked at."""
        return dict(self.chosen.counters())

    def describe(self) -> str:
        """Tell which index was chosen, why, and what it holds."""
        return f"{self.chosen.name}, since {self.reason}.\n{self.chosen.describe()}"
