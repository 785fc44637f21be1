"""What the match stage sends to a bucket: the matches of one Arrow batch, in columns.

Numbers stand for names within one parcel only, so that stages need not agree on any.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.formats.binary import Frame, check, reading
from tidings.model.records import LAST_SEQUENCE
from tidings.model.values import EARLIEST_US, LATEST_US
from tidings.rank.matches import Matches

FRAME: Final = Frame(b"tidings-parcel", 2, "a parcel of matches")
_KINDS: Final = {
    "us": np.int64,
    "sequence": np.int64,
    "starts": np.int64,
    "owners": np.int32,
    "ranks": np.float64,
    "matched_starts": np.int64,
    "matched": np.int32,
}
_MATCH_COLUMNS: Final = ("starts", "owners", "ranks", "matched_starts", "matched")
"""The columns of `Matches` by their names on the wire."""
_MOST: Final = 1e200
"""No score is larger; sums of a history's scores stay finite."""


Columns = Mapping[str, Any]


class Parcel(NamedTuple):
    """Matches for the subscribers of one bucket, with the names behind their numbers.

    Match m is of subscriber `subscribers[matches.subscribers[m]]`; its matched subscriptions are
    numbers of `subscriptions`, in order of their ids.
    """

    events: Sequence[str]
    us: Int64s
    sequence: Int64s
    forms: Sequence[str]
    """The events as JSON text; empty texts where nobody in the bucket needs more than the id."""
    matches: Matches
    subscribers: Sequence[str]
    subscriptions: Sequence[str]

    def pack(self) -> bytes:
        """Give it as bytes."""
        return FRAME.pack({}, self.columns())

    def columns(self) -> dict[str, Any]:
        """Return the columns by their names on the wire."""
        columns = self._asdict()
        del columns["matches"]
        names = {name: columns.pop(name) for name in ("subscribers", "subscriptions")}
        return columns | dict(zip(_MATCH_COLUMNS, self.matches, strict=True)) | names

    @classmethod
    def unpack(cls, state: bytes) -> "Parcel":
        """Read it again."""
        _, columns = FRAME.unpack(state)
        with reading(FRAME.name):
            names = {*cls._fields, *_MATCH_COLUMNS} - {"matches"}
            check(columns.keys() == names, FRAME.name, "it has other columns")
            _check(columns)
            matches = Matches(*(columns.pop(name) for name in _MATCH_COLUMNS))
            return cls(**columns, matches=matches)


def _check(parcel: Columns) -> None:
    """Refuse a parcel unless its columns are as long as they should be, and refer to what is there.

    What holds for each match takes one pass over the column.
    """
    for name in ("events", "forms", "subscribers", "subscriptions"):
        check(isinstance(parcel[name], list), FRAME.name, f"column {name} has no texts")
    for name, kind in _KINDS.items():
        column = parcel[name]
        check(
            isinstance(column, np.ndarray) and column.dtype == kind and column.ndim == 1,
            FRAME.name,
            f"column {name} has other values",
        )
    count = len(parcel["events"])
    check(count == len(parcel["forms"]), FRAME.name, "column forms has another length")
    _check_within(parcel, "us", count, EARLIEST_US, LATEST_US)
    _check_within(parcel, "sequence", count, -1, LAST_SEQUENCE)
    matches = _check_starts(parcel, "starts", count)
    _check_within(parcel, "owners", matches, 0, len(parcel["subscribers"]) - 1)
    _check_within(parcel, "ranks", matches, 0, _MOST)
    members = _check_starts(parcel, "matched_starts", matches)
    _check_within(parcel, "matched", members, 0, len(parcel["subscriptions"]) - 1)


def _check_within(parcel: Columns, name: str, count: int, low: float, high: float) -> None:
    column = parcel[name]
    check(len(column) == count, FRAME.name, f"column {name} has another length")
    inside = not count or (low <= column.min() and column.max() <= high)
    check(inside, FRAME.name, f"column {name} has a number out of range")


def _check_starts(parcel: Columns, name: str, count: int) -> int:
    """Return where the last of some runs ends; they begin at 0 and follow each other."""
    starts = parcel[name]
    check(len(starts) == count + 1, FRAME.name, f"column {name} has another length")
    rising = starts[0] == 0 and (starts[1:] >= starts[:-1]).all()
    check(rising, FRAME.name, f"column {name} is not in order")
    return int(starts[-1])
