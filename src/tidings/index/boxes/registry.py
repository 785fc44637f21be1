"""Box indexes by name and by matching; the papers' own are imported when asked for."""

from collections.abc import Callable
from typing import Any, Final, Literal, overload

from tidings.errors import TidingsError
from tidings.index import arguments
from tidings.index.boxes.auto import exact_auto, relaxed_auto
from tidings.index.boxes.exact_blocks import ExactBlocks
from tidings.index.boxes.live import LiveBoxes
from tidings.index.boxes.protocol import BoxIndex, boxes_of
from tidings.index.boxes.relaxed_blocks import RelaxedBlocks
from tidings.index.boxes.scan import ExactBoxScan, RelaxedBoxScan
from tidings.index.boxes.sparse import SparseBoxes
from tidings.model.named_parts import LazyPart

BOX_INDEXES: Final[dict[str, dict[str, Callable[..., BoxIndex]]]] = {
    "scan": {"exact": ExactBoxScan, "relaxed": RelaxedBoxScan},
    "intersection": {"exact": LazyPart("tidings.index.boxes.papers.intersection:Intersection")},
    "threshold": {"relaxed": LazyPart("tidings.index.boxes.papers.threshold:Threshold")},
    "blocks": {"exact": ExactBlocks, "relaxed": RelaxedBlocks},
    "sparse": {"relaxed": SparseBoxes},
    "live": {"exact": LiveBoxes, "relaxed": LiveBoxes},
    "auto": {"exact": exact_auto, "relaxed": relaxed_auto},
}


@overload
def box_index(
    name: Literal["live"], low: Any, high: Any, worth: Any, **options: Any
) -> LiveBoxes: ...
@overload
def box_index(name: str, low: Any, high: Any, worth: Any, **options: Any) -> BoxIndex: ...
def box_index(name: str, low: Any, high: Any, worth: Any, **options: Any) -> BoxIndex:
    """Build the index `name` over boxes; scores (n,) make it exact, weights (n, d) relaxed.

    >>> low, high = [[0, 0], [5, 0]], [[9, 4], [6, 9]]
    >>> exact = box_index("blocks", low, high, [1.0, 3.0])
    >>> exact.top([5, 3], k=2).ids.tolist(), exact.top([7, 3], k=2).ids.tolist()
    ([1, 0], [0])
    >>> relaxed = box_index("blocks", low, high, [[2.0, 1.0], [4.0, 0.5]])
    >>> [column.tolist() for column in relaxed.top([7, 3], k=2)]
    [[0, 1], [3.0, 0.5]]

    Relaxed indexes take `aggregate`: `sum` or `max`; `scan` and `threshold` also any monotone
    function of rows of contributions. `intersection` and `threshold` take `over`, the name of an
    interval index. `auto` chooses blocks, or `sparse` where few attributes are constrained, or
    `scan` for an aggregate that is a function. `live` takes changes while it answers.
    """
    checked = arguments.choice("index", name, BOX_INDEXES)
    boxes = boxes_of(low, high, worth)
    matching = boxes.matching
    if matching not in BOX_INDEXES[checked]:
        able = ", ".join(other for other, kinds in BOX_INDEXES.items() if matching in kinds)
        raise TidingsError(f"{checked} has no {matching} matching; expected one of: {able}")
    index: BoxIndex = arguments.build(checked, BOX_INDEXES[checked][matching], boxes, options)
    return index
