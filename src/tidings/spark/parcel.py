"""What the match stage sends to a bucket: the matches of one Arrow batch, in columns.

Numbers stand for names within one parcel only, so that stages need not agree on any.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.frame import Frame

Shorts = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FRAME: Final = Frame(b"tidings-parcel", 1, "a parcel of matches")


class Parcel(NamedTuple):
    """Matches for the subscribers of one bucket, event by event.

    Those of event e are from `starts[e]` to `starts[e + 1]`. Match m is of subscriber
    `subscribers[owners[m]]` with `ranks[m]`, by the subscriptions numbered
    `matched[matched_starts[m]:matched_starts[m + 1]]`, in order of their ids.
    """

    events: Sequence[str]
    us: Ints
    sequence: Ints
    forms: Sequence[str]
    """The events as JSON text; empty texts where nobody in the bucket needs more than the id."""
    starts: Ints
    owners: Shorts
    ranks: Floats
    matched_starts: Ints
    matched: Shorts
    subscribers: Sequence[str]
    subscriptions: Sequence[str]

    def pack(self) -> bytes:
        """Give it as bytes."""
        return FRAME.pack({}, self._asdict())

    @classmethod
    def unpack(cls, state: bytes) -> "Parcel":
        """Read it again."""
        columns: dict[str, Any] = FRAME.unpack(state)[1]
        return cls(**columns)
