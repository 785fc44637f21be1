"""Match batches: the matches that the match stage sends to one bucket, in columns.

The matches of one Arrow batch travel with the names behind their numbers. Numbers are valid within
one batch only, so stages need not agree on any numbering; batches that are merged are renumbered.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import Bools, Int32s, Int64s
from tidings.formats.binary import Frame, check, reading
from tidings.model.records import LAST_SEQUENCE
from tidings.model.values import EARLIEST_US, LATEST_US
from tidings.rank.matches import Matches

# Version 2 had no content, and up to version 3 there was a form of every event.
FRAME: Final = Frame(b"tidings-parcel", 4, "a match batch", older=(2, 3))
_DTYPES: Final = {
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
_OPTIONAL: Final = frozenset({"forms", "contents"})
_LARGEST_SCORE: Final = 1e200
"""Sums of a history's scores stay finite."""
_PUBLICATION_ORDER: Final = [("us", "ascending"), ("sequence", "ascending"), ("id", "ascending")]

Columns = Mapping[str, Any]


class MatchBatch(NamedTuple):
    """Matches for the subscribers of one bucket, with the names behind their numbers.

    Match m is of subscriber `subscribers[matches.subscribers[m]]`; its matched subscriptions are
    numbers of `subscriptions`, in order of their ids. `forms` has events as JSON text, which is
    empty where no subscriber of the bucket needs more than the id. `contents` has the content of
    each event as JSON text, empty where it has none. Either list is empty if all its texts are.
    """

    events: Sequence[str]
    us: Int64s
    sequence: Int64s
    forms: Sequence[str]
    matches: Matches
    subscribers: Sequence[str]
    subscriptions: Sequence[str]
    contents: Sequence[str] = ()

    @classmethod
    def empty(cls) -> "MatchBatch":
        """Return a batch without events."""
        none = np.zeros(0, np.int64)
        return cls([], none, none, [], Matches.empty(), [], [])

    @classmethod
    def merged(cls, batches: "Sequence[MatchBatch]") -> "MatchBatch":
        """Return the events of all batches, one batch after the other, with one numbering."""
        if len(batches) <= 1:
            return batches[0] if batches else cls.empty()
        subscribers, subscriber_numbers = _union([batch.subscribers for batch in batches])
        subscriptions, subscription_numbers = _union([batch.subscriptions for batch in batches])
        renumbered = [
            batch.matches._replace(
                subscribers=owners[batch.matches.subscribers], matched=ids[batch.matches.matched]
            )
            for batch, owners, ids in zip(
                batches, subscriber_numbers, subscription_numbers, strict=True
            )
        ]
        return cls(
            events=list(chain.from_iterable(batch.events for batch in batches)),
            us=np.concatenate([batch.us for batch in batches]),
            sequence=np.concatenate([batch.sequence for batch in batches]),
            forms=_merged_texts(batches, lambda batch: batch.forms),
            matches=Matches.concatenated(renumbered),
            subscribers=subscribers,
            subscriptions=subscriptions,
            contents=_merged_texts(batches, lambda batch: batch.contents),
        )

    def publication_order(self) -> Int64s:
        """Return the positions of the events sorted by time, then sequence, then id."""
        by_time = np.argsort(self.us, kind="stable")
        if (np.diff(self.us[by_time]) > 0).all():
            return by_time
        ids = pa.array(self.events, pa.large_string())
        table = pa.table({"us": self.us, "sequence": np.maximum(self.sequence, 0), "id": ids})
        order = pc.sort_indices(table, sort_keys=_PUBLICATION_ORDER)
        return np.asarray(order.to_numpy().astype(np.int64))

    def ordered(self) -> "MatchBatch":
        """Return the batch in order of publication."""
        order = self.publication_order()
        return self if (np.diff(order) == 1).all() else self.select(order)

    def select(self, events: Int64s) -> "MatchBatch":
        """Return the events at some positions, in that order, and only the names they need."""
        positions = events.tolist()
        matches = self.matches.select(events)
        owners, subscribers = _used(matches.subscribers, self.subscribers)
        matched, subscriptions = _used(matches.matched, self.subscriptions)
        return MatchBatch(
            events=[self.events[position] for position in positions],
            us=self.us[events],
            sequence=self.sequence[events],
            forms=_picked(self.forms, positions),
            matches=matches._replace(subscribers=owners, matched=matched),
            subscribers=subscribers,
            subscriptions=subscriptions,
            contents=_picked(self.contents, positions),
        )

    def without_events(self, events: AbstractSet[str]) -> "MatchBatch":
        """Return the batch without some events."""
        places = [place for place, id in enumerate(self.events) if id not in events]
        return self if len(places) == len(self.events) else self.select(np.array(places, np.int64))

    def of_subscribers(self, mask: Bools) -> "MatchBatch":
        """Return the matches of the subscribers that a mask keeps, and their events."""
        return self.of_matches(mask[self.matches.subscribers])

    def of_matches(self, mask: Bools) -> "MatchBatch":
        """Return the matches that a mask keeps, and their events."""
        matches = self.matches.only(mask)
        return self._replace(matches=matches).select(np.diff(matches.starts).nonzero()[0])

    def repeats(self) -> Bools:
        """Return which events have an earlier event of the same id in the batch."""
        if len({*self.events}) == len(self.events):
            return np.zeros(len(self.events), np.bool_)
        last = len(self.events) - 1
        first = {id: last - position for position, id in enumerate(reversed(self.events))}
        repeated = np.ones(len(self.events), np.bool_)
        repeated[[*first.values()]] = False
        return repeated

    def joined(self) -> "MatchBatch":
        """Return the batch in order of publication, the parts of an event joined into one.

        The form of an event is present if some part had it.
        """
        ordered = self.ordered()
        pairs = zip(ordered.events, ["", *ordered.events], strict=False)
        first = np.array([id != before for id, before in pairs], np.bool_).nonzero()[0]
        ends = np.append(first, len(ordered.events))
        runs = list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
        forms, contents = (
            [max(texts[begin:end]) for begin, end in runs] if texts else ()
            for texts in (ordered.forms, ordered.contents)
        )
        return ordered._replace(
            events=[ordered.events[position] for position in first.tolist()],
            contents=contents,
            us=ordered.us[first],
            sequence=ordered.sequence[first],
            forms=forms,
            matches=ordered.matches._replace(starts=ordered.matches.starts[ends]),
        )

    def pack(self) -> bytes:
        """Return the batch as bytes."""
        return FRAME.pack({}, self.columns())

    def columns(self) -> dict[str, Any]:
        """Return the columns by their names on the wire."""
        columns = self._asdict()
        del columns["matches"]
        for name in ("forms", "contents"):
            if not columns[name]:
                del columns[name]
        names = {name: columns.pop(name) for name in ("subscribers", "subscriptions")}
        return columns | dict(zip(_MATCH_COLUMNS, self.matches, strict=True)) | names

    @classmethod
    def unpack(cls, state: bytes) -> "MatchBatch":
        """Read packed bytes; damaged ones are refused."""
        # A mutable copy: kernels would be compiled a second time for arrays that are read-only.
        _, columns = FRAME.unpack(bytearray(state))
        with reading(FRAME.name):
            names = {*cls._fields, *_MATCH_COLUMNS} - {"matches", *_OPTIONAL}
            check(columns.keys() - _OPTIONAL == names, FRAME.name, "it has other columns")
            columns = {"forms": []} | columns
            _check(columns)
            matches = Matches(*(columns.pop(name) for name in _MATCH_COLUMNS))
            return cls(**columns, matches=matches)


def texts_if_any(texts: Iterable[str]) -> Sequence[str]:
    """Return texts, or nothing if all of them are empty."""
    listed = list(texts)
    return listed if any(listed) else ()


def _picked(texts: Sequence[str], positions: Sequence[int]) -> Sequence[str]:
    return texts_if_any(map(texts.__getitem__, positions)) if texts else ()


def _merged_texts(
    batches: Sequence[MatchBatch], column: Callable[[MatchBatch], Sequence[str]]
) -> Sequence[str]:
    """Return one of the columns that may be empty, for the events of all batches."""
    if not any(map(column, batches)):
        return ()
    texts = (column(batch) or [""] * len(batch.events) for batch in batches)
    return list(chain.from_iterable(texts))


def _check(columns: Columns) -> None:
    """Refuse columns of a wrong type or length, and numbers that refer to nothing.

    Each column of matches takes one pass.
    """
    texts = ("events", "forms", "subscribers", "subscriptions", *({"contents"} & columns.keys()))
    for name in texts:
        check(isinstance(columns[name], list), FRAME.name, f"column {name} has no texts")
    for name, dtype in _DTYPES.items():
        column = columns[name]
        check(
            isinstance(column, np.ndarray) and column.dtype == dtype and column.ndim == 1,
            FRAME.name,
            f"column {name} has another type",
        )
    count = len(columns["events"])
    for name in _OPTIONAL & columns.keys():
        fits = len(columns[name]) in (0, count)
        check(fits, FRAME.name, f"column {name} has another length")
    _check_range(columns, "us", count, EARLIEST_US, LATEST_US)
    _check_range(columns, "sequence", count, -1, LAST_SEQUENCE)
    matches = _check_starts(columns, "starts", count)
    _check_range(columns, "owners", matches, 0, len(columns["subscribers"]) - 1)
    _check_range(columns, "ranks", matches, 0, _LARGEST_SCORE)
    matched = _check_starts(columns, "matched_starts", matches)
    _check_range(columns, "matched", matched, 0, len(columns["subscriptions"]) - 1)


def _check_range(columns: Columns, name: str, count: int, low: float, high: float) -> None:
    column = columns[name]
    check(len(column) == count, FRAME.name, f"column {name} has another length")
    inside = not count or (low <= column.min() and column.max() <= high)
    check(inside, FRAME.name, f"column {name} has a number out of range")


def _check_starts(columns: Columns, name: str, count: int) -> int:
    """Check the offsets of `count` runs, which start at 0, and return the end of the last run."""
    starts = columns[name]
    check(len(starts) == count + 1, FRAME.name, f"column {name} has another length")
    ascending = starts[0] == 0 and (starts[1:] >= starts[:-1]).all()
    check(ascending, FRAME.name, f"column {name} is not in order")
    return int(starts[-1])


def _union(names: Sequence[Sequence[str]]) -> tuple[list[str], list[Int32s]]:
    """Return all distinct names, and for each list the new numbers of its names."""
    texts = pa.array(list(chain.from_iterable(names)), pa.large_string()).dictionary_encode()
    numbers = np.asarray(texts.indices.to_numpy(), np.int32)
    ends = np.cumsum([len(column) for column in names])[:-1]
    return texts.dictionary.to_pylist(), np.split(numbers, ends)


def _used(numbers: Int32s, names: Sequence[str]) -> tuple[Int32s, list[str]]:
    """Return numbers in a dictionary of only the names that they use, and that dictionary."""
    used = np.zeros(len(names), np.bool_)
    used[numbers] = True
    table = np.cumsum(used, dtype=np.int32) - 1
    return table[numbers].astype(np.int32), [names[number] for number in used.nonzero()[0].tolist()]
