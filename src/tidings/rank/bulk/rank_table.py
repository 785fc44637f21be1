"""The records that ranks are computed from: subscriptions by number, their owners and spans."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_file import Reader, Writer
from tidings.compiled.array_types import AnyArray, Float64s, Int32s, Int64s
from tidings.compiled.arrays import grown, offsets, run_indexes
from tidings.index.access.kernels.partial_match import Hits
from tidings.rank.bulk.kernels.rank import (
    MAX,
    MEAN,
    MIN,
    SUBSCRIBER,
    SUBSCRIPTION,
    SUM,
    RankArrays,
    RankOutput,
    Spans,
    rank_events,
)
from tidings.rank.matches import Matches

AGGREGATES: Final = {"max": MAX, "mean": MEAN, "min": MIN, "sum": SUM}
MOST_WORTH: Final = 1e101
"""No worth is larger: scores of the model end at 1e100, and rounding may add a little."""
EPOCHS: Final = 2_000_000_000
NO_WORTHS: Final[Float64s] = np.empty(0)


class RankRows(NamedTuple):
    """Subscriptions by number: their owners and worths, and the others that each strictly covers.

    Those of the n-th one are covered[starts[n]:starts[n + 1]].
    """

    numbers: Int32s
    owners: Int32s
    worths: Float64s
    starts: Int64s
    covered: Int32s

    @classmethod
    def without_covers(
        cls, numbers: Sequence[int], owners: Sequence[int], worths: Sequence[float]
    ) -> "RankRows":
        """Return rows of subscriptions that all count."""
        return cls(
            np.array(numbers, np.int32),
            np.array(owners, np.int32),
            np.array(worths, np.float64),
            np.zeros(len(numbers) + 1, np.int64),
            np.empty(0, np.int32),
        )


class RankTable:
    """The records of all subscriptions whose owners are ranked by one method."""

    def __init__(self) -> None:
        self._subscriptions = _new_records(64)
        self._covered: Int32s = np.empty(64, np.int32)
        self._subscribers = np.zeros(64, SUBSCRIBER)
        self._epoch: Int32s = np.zeros(1, np.int32)
        self._used = self._unused = 0

    def put(self, rows: RankRows) -> None:
        """Write all subscriptions of some owners; those they no longer have must be removed."""
        numbers, records = rows.numbers, self._make_room(rows)
        self._unused += int(records["size"][numbers].sum())
        records["owner"][numbers] = rows.owners
        records["worth"][numbers] = rows.worths
        records["size"][numbers] = np.diff(rows.starts)
        records["first"][numbers] = self._used + rows.starts[:-1]
        self._covered[self._used : self._used + len(rows.covered)] = rows.covered
        self._used += len(rows.covered)
        if 2 * self._unused > self._used:
            self._compact()

    def set_aggregate(self, owner: int, name: str) -> None:
        """Set how the worths of an owner's most specific subscriptions become a rank."""
        self._subscribers = grown(self._subscribers, owner + 1)
        self._subscribers["aggregate"][owner] = AGGREGATES[name]

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove subscriptions; their numbers may be reused."""
        records = self._subscriptions
        present = np.array([number for number in numbers if number < len(records)], np.int64)
        self._unused += int(records["size"][present].sum())
        records["owner"][present], records["size"][present] = -1, 0

    def rank(self, hits: Hits, worths: Float64s = NO_WORTHS) -> Matches:
        """Rank events by their hits; `worths` replaces the stored worth of each hit."""
        if self._epoch[0] > EPOCHS - len(hits.starts):
            self._subscriptions["stamp"] = self._subscribers["stamp"] = self._epoch[0] = 0
        self._reserve(int(hits.numbers.max(initial=-1)) + 1)
        out = _output(len(hits.numbers), len(hits.starts))
        arrays = RankArrays(self._subscriptions, self._covered, self._subscribers, self._epoch)
        rank_events(arrays, hits, worths, out)
        size = int(out.starts[-1])
        ends = offsets(out.counts[:size])
        matched = out.matched[: ends[-1]]
        return Matches(out.starts, out.subscribers[:size], out.ranks[:size], ends, matched)

    def write(self, writer: Writer, subscriptions: int, owners: int) -> None:
        """Write the records of this many subscriptions and owners to a file, without stamps."""
        records, held = _new_records(subscriptions), self._subscriptions[:subscriptions]
        for name in ("worth", "owner", "size"):
            records[name][: len(held)] = held[name]
        sizes = records["size"].astype(np.int64)
        first = np.zeros(subscriptions, np.int64)
        first[: len(held)] = held["first"]
        records["first"] = offsets(sizes)[:-1]
        subscribers, present = np.zeros(owners, SUBSCRIBER), self._subscribers[:owners]
        subscribers["aggregate"][: len(present)] = present["aggregate"]
        writer.array("rows", records)
        writer.array("covered", self._covered[run_indexes(first, sizes)])
        writer.array("owners", subscribers)

    @classmethod
    def read(cls, reader: Reader, subscriptions: int, owners: int) -> "RankTable":
        """Return the records of this many subscriptions and owners from a file.

        A stamp of a later epoch would make kernels follow places that were never written; so all
        stamps must be 0, like the epoch.
        """
        table = cls()
        records = reader.array("rows", SUBSCRIPTION, subscriptions)
        subscribers = reader.array("owners", SUBSCRIBER, owners)
        covered = reader.numbers("covered", None, subscriptions)
        reader.within_bounds("rows", records["owner"], owners, -1)
        reader.finite("rows", records["worth"], MOST_WORTH)
        sizes = records["size"].astype(np.int64)
        tiled = not len(sizes) or (
            sizes.min() >= 0 and np.array_equal(records["first"], np.cumsum(sizes) - sizes)
        )
        right = tiled and int(sizes.sum()) == len(covered)
        reader.require(right, "rows", "do not split the covered ones among them")
        reader.within_bounds("owners", subscribers["aggregate"], len(AGGREGATES))
        stamps = (records["stamp"], subscribers["stamp"], subscribers["place"])
        reader.require(not any(column.any() for column in stamps), "rows", "are stamped")
        table._subscriptions, table._subscribers = records, subscribers
        table._covered, table._used = covered, len(covered)
        return table

    @property
    def owners(self) -> Int32s:
        """The owner of each subscription, or -1."""
        owners: Int32s = self._subscriptions["owner"]
        return owners

    @property
    def nbytes(self) -> int:
        """Bytes of all records."""
        return self._subscriptions.nbytes + self._covered.nbytes + self._subscribers.nbytes

    def _make_room(self, rows: RankRows) -> AnyArray:
        """Return the records of subscriptions, with room for these and their covers."""
        self._covered = grown(self._covered, self._used + len(rows.covered))
        return self._reserve(int(rows.numbers.max(initial=-1)) + 1)

    def _reserve(self, numbers: int) -> AnyArray:
        if numbers > len(self._subscriptions):
            larger = _new_records(max(numbers, 2 * len(self._subscriptions)))
            larger[: len(self._subscriptions)] = self._subscriptions
            self._subscriptions = larger
        return self._subscriptions

    def _compact(self) -> None:
        """Drop the covered spans that no subscription has any more."""
        records = self._subscriptions
        sizes = records["size"].astype(np.int64)
        self._covered = self._covered[run_indexes(records["first"], sizes)]
        records["first"] = offsets(sizes)[:-1]
        self._used, self._unused = len(self._covered), 0


def _new_records(size: int) -> AnyArray:
    records = np.zeros(size, SUBSCRIPTION)
    records["owner"] = -1
    return records


def _output(hits: int, starts: int) -> RankOutput:
    return RankOutput(
        np.zeros(starts, np.int64),
        np.empty(hits, np.int32),
        np.empty(hits),
        np.empty(hits),
        *(np.empty(hits, np.int32) for _ in range(3)),
    )


# Spans of values by number, in one array that grows at its end and reclaims unused spans.

NOTHING: Final = np.empty(0)


class SpanPool:
    """One span of values per number, or none."""

    def __init__(self, dtype: Any) -> None:
        self._firsts: Int64s = np.full(64, -1, np.int64)
        self._sizes: Int64s = np.zeros(64, np.int64)
        self._values = np.empty(64, dtype)
        self._used = 0

    def put(self, number: int, values: AnyArray) -> None:
        """Write the span of a number, replacing the old one."""
        self._make_room(number + 1)
        if self._firsts[number] < 0 or self._sizes[number] < len(values):
            self._firsts[number] = self._reserve(number, len(values))
        first, self._sizes[number] = self._firsts[number], len(values)
        self._values[first : first + len(values)] = values

    def get(self, number: int) -> AnyArray:
        """Return the span of a number; it is empty where there is none."""
        first = int(self._firsts[number]) if number < len(self._firsts) else -1
        return self._values[first : first + int(self._sizes[number])] if first >= 0 else NOTHING

    def drop(self, numbers: Sequence[int]) -> None:
        """Remove the spans of numbers."""
        present = [number for number in numbers if number < len(self._firsts)]
        self._firsts[present], self._sizes[present] = -1, 0

    def spans(self, numbers: int) -> Spans:
        """Return all spans, with entries for at least this many numbers."""
        self._make_room(numbers)
        return Spans(self._firsts, self._values)

    def write(self, writer: Writer, numbers: int) -> None:
        """Write the spans of the first `numbers` numbers to a file, one after the other."""
        self._make_room(numbers)
        firsts, sizes = self._firsts[:numbers], self._sizes[:numbers]
        writer.array("firsts", np.where(firsts < 0, -1, offsets(sizes)[:-1]))
        writer.array("sizes", sizes)
        writer.array("values", self._values[run_indexes(firsts, sizes)])

    @classmethod
    def read(cls, reader: Reader, dtype: Any, numbers: int) -> "SpanPool":
        """Return the spans of a file; the values themselves are not validated."""
        pool = cls(dtype)
        pool._firsts = reader.array("firsts", np.int64, numbers)
        pool._sizes = reader.array("sizes", np.int64, numbers)
        pool._values = reader.array("values", dtype)
        pool._used = len(pool._values)
        reader.within_bounds("sizes", pool._sizes, pool._used + 1)
        none = (pool._firsts == -1) & (pool._sizes == 0)
        tiled = none | (pool._firsts == np.cumsum(pool._sizes) - pool._sizes)
        right = tiled.all() and int(pool._sizes.sum()) == pool._used
        reader.require(right, "firsts", "do not split the values among them")
        return pool

    @property
    def firsts(self) -> Int64s:
        """Where the span of each number starts, or -1."""
        return self._firsts

    @property
    def sizes(self) -> Int64s:
        """How long the span of each number is."""
        return self._sizes

    @property
    def values(self) -> AnyArray:
        """The values of all spans."""
        return self._values

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self._firsts.nbytes + self._sizes.nbytes + self._values.nbytes

    def _make_room(self, numbers: int) -> None:
        self._firsts = grown(self._firsts, numbers, -1)
        self._sizes = grown(self._sizes, numbers)

    def _reserve(self, number: int, size: int) -> int:
        self._sizes[number] = 0
        if self._used + size > len(self._values):
            self._compact(size)
        first, self._used = self._used, self._used + size
        return first

    def _compact(self, size: int) -> None:
        """Drop values that no number has, and make room for twice those that are left."""
        values = self._values[run_indexes(self._firsts, self._sizes)]
        self._firsts = np.where(self._firsts < 0, -1, offsets(self._sizes)[:-1])
        self._used = len(values)
        self._values = np.empty(2 * (len(values) + size) + 64, self._values.dtype)
        self._values[: len(values)] = values
