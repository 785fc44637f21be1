"""The indexes over several attributes by name, and by the matching that each can do."""

from collections.abc import Callable
from typing import Any, Final, Literal, overload

from tidings.errors import TidingsError
from tidings.index import arguments
from tidings.index.boxes.auto import exact_auto, relaxed_auto
from tidings.index.boxes.exact_blocks import ExactBlocks
from tidings.index.boxes.live.index import Live
from tidings.index.boxes.papers.intersection import Intersection
from tidings.index.boxes.papers.threshold import Threshold
from tidings.index.boxes.protocol import BoxIndex, boxes_of
from tidings.index.boxes.relaxed_blocks import RelaxedBlocks
from tidings.index.boxes.scan import ExactScan, RelaxedScan
from tidings.index.boxes.sparse import Sparse

BOX_INDEXES: Final[dict[str, dict[str, Callable[..., BoxIndex]]]] = {
    "scan": {"exact": ExactScan, "relaxed": RelaxedScan},
    "intersection": {"exact": Intersection},
    "threshold": {"relaxed": Threshold},
    "blocks": {"exact": ExactBlocks, "relaxed": RelaxedBlocks},
    "sparse": {"relaxed": Sparse},
    "live": {"exact": Live, "relaxed": Live},
    "auto": {"exact": exact_auto, "relaxed": relaxed_auto},
}


@overload
def box_index(name: Literal["live"], low: Any, high: Any, worth: Any, **options: Any) -> Live: ...
@overload
def box_index(name: str, low: Any, high: Any, worth: Any, **options: Any) -> BoxIndex: ...
def box_index(name: str, low: Any, high: Any, worth: Any, **options: Any) -> BoxIndex:
    """Build the index `name` over boxes; scores (n,) make it exact, weights (n, d) relaxed.

    >>> low, high = [[0, 0], [5, 0]], [[9, 4], [6, 9]]
    >>> exact = box_index("blocks", low, high, [1.0, 3.0])
    >>> exact.top([5, 3], k=2)[0].tolist(), exact.top([7, 3], k=2)[0].tolist()
    ([1, 0], [0])
    >>> relaxed = box_index("blocks", low, high, [[2.0, 1.0], [4.0, 0.5]])
    >>> [each.tolist() for each in relaxed.top([7, 3], k=2)]
    [[0, 1], [3.0, 0.5]]

    Relaxed indexes take `aggregate`: `sum` or `max`; `scan` and `threshold` also any monotone
    function of rows of contributions. `intersection` and `threshold` take `over`, the name of an
    interval index. `auto` takes blocks, or `sparse` where few attributes are constrained, or
    `threshold` for an aggregate that is a function. `live` takes changes while it is asked.
    """
    known = arguments.known("index", name, BOX_INDEXES)
    boxes = boxes_of(low, high, worth)
    if boxes.matching not in BOX_INDEXES[known]:
        able = [each for each, kinds in BOX_INDEXES.items() if boxes.matching in kinds]
        raise TidingsError(f"{known} does not match {boxes.matching}; there are {', '.join(able)}")
    made: BoxIndex = arguments.built(known, BOX_INDEXES[known][boxes.matching], boxes, options)
    return made
