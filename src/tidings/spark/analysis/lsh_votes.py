"""The votes of LSH among very many candidates, in packed rows: Arrow in, Arrow out.

Every bucket of every table votes for its best candidate (TKS 5.2.5.2). Bucket keys are hashed into
a few slices, and so are candidates, so that the work takes two shuffles:

    record batch --BALLOTS--> slice of keys --COUNTS--> slice of candidates --BEST--> top k
                              winner of each key        sum of the votes

Each record batch sends one row to each slice of keys, with all its candidates and the keys for
which they are its best. A slice finds the winner of each of its keys and sends one row to each
slice of candidates; there the votes are summed and the k best are kept. One row per key and
candidate would cost ten times as much.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import Int64s, UInt64s

SLICE: Final = "tidings_slice"
SLICES: Final = 8
"""The number of tasks that share the keys, and then the candidates."""

_CANDIDATES: Final = {
    SLICE: pa.int32(),
    "ids": pa.list_(pa.string()),
    "published_us": pa.list_(pa.int64()),
    "ranks": pa.list_(pa.float64()),
}
BALLOTS: Final = pa.schema(_CANDIDATES | {"keys": pa.binary(), "owners": pa.binary()})
COUNTS: Final = pa.schema(_CANDIDATES | {"votes": pa.list_(pa.int64()), "size": pa.int64()})
BEST: Final = pa.schema(
    {
        "id": pa.string(),
        "published_us": pa.int64(),
        "rank": pa.float64(),
        "votes": pa.int64(),
        "size": pa.int64(),
    }
)

_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_BEST_FIRST: Final = [("rank", "descending"), ("us", "descending"), ("id", "ascending")]


class VoteColumns(NamedTuple):
    """Candidates in columns."""

    ids: pa.Array
    us: pa.Array
    ranks: pa.Array

    def take(self, places: Int64s) -> "VoteColumns":
        """Return some of the candidates."""
        return VoteColumns(*(column.take(pa.array(places)) for column in self))

    def best_first(self) -> Int64s:
        """Return their places by rank, then newer, then smaller id."""
        columns = {"rank": self.ranks, "us": self.us, "id": self.ids}
        order = pc.sort_indices(pa.table(columns), sort_keys=_BEST_FIRST)
        return np.asarray(order.to_numpy(), np.int64)

    def slices(self) -> Int64s:
        """Return the slice of each candidate, by a hash that is the same in every task."""
        us = np.asarray(self.us.to_numpy(), np.int64).view(np.uint64)
        mixed = (us ^ np.asarray(self.ranks.to_numpy(), np.float64).view(np.uint64)) * _MIX
        return np.asarray((mixed >> np.uint64(32)) % np.uint64(SLICES), np.int64)

    def row(self) -> dict[str, Any]:
        """Return the candidates as the lists of one row."""
        return {"ids": self.ids, "published_us": self.us, "ranks": self.ranks}


def ballot_rows(candidates: VoteColumns, keys: UInt64s) -> Iterator[dict[str, Any]]:
    """Yield the rows for the slices of keys, given the keys of each candidate.

    Slice 0 receives all candidates, even if none of its keys is theirs, to count them.
    """
    best = candidates.best_first()
    ordered, ordered_keys = candidates.take(best), keys[best]
    unique, first = np.unique(ordered_keys.ravel(), return_index=True)
    # np.unique returns first occurrences, and candidates are sorted: the first is the best.
    owners = (first // ordered_keys.shape[1]).astype(np.int32)
    slices = unique % np.uint64(SLICES)
    for number in range(SLICES):
        in_slice = slices == number
        if number == 0 or in_slice.any():
            won = {"keys": unique[in_slice].tobytes(), "owners": owners[in_slice].tobytes()}
            yield {SLICE: number, **ordered.row(), **won}


def count_rows(table: pa.Table, k: int) -> Iterator[dict[str, Any]]:
    """Count the votes of one slice of keys; yield a row for each slice of candidates.

    Slice 0, which receives all candidates, also sends their number and the k best of them, even if
    they have no vote.
    """
    candidates = _concatenate(table)
    number, size = table.column(SLICE)[0].as_py(), len(candidates.ids)
    lists = table.column("ids").combine_chunks()
    firsts = np.cumsum([0, *pc.list_value_length(lists).to_pylist()])[:-1]
    keys = np.concatenate([np.frombuffer(cell, np.uint64) for cell in _cells(table, "keys")])
    cells = zip(_cells(table, "owners"), firsts, strict=True)
    owners = np.concatenate([np.frombuffer(cell, np.int32) + first for cell, first in cells])
    best = candidates.best_first()
    place = np.empty(size, np.int64)
    place[best] = np.arange(size)
    order = np.lexsort((place[owners], keys))
    won = np.flatnonzero(np.diff(keys[order], prepend=~keys[order[:1]]))
    votes = np.bincount(owners[order][won], minlength=size)
    kept = votes > 0
    if number == 0:
        kept[best[:k]] = True
    slices = candidates.slices()
    for slice_number in np.unique(slices[kept]).tolist():
        places = np.flatnonzero(kept & (slices == slice_number))
        counts = {"votes": votes[places], "size": 0 if number else size}
        yield {SLICE: slice_number, **candidates.take(places).row(), **counts}


def sum_votes(table: pa.Table, k: int) -> pa.Table:
    """Sum the votes of one slice of candidates; return the k best, by votes and then by rank.

    `size` is the number of all candidates, in slices that slice 0 of the keys sent a row to.
    """
    candidates = _concatenate(table)
    columns = {
        "id": candidates.ids,
        "published_us": candidates.us,
        "rank": candidates.ranks,
        "votes": pc.list_flatten(table.column("votes").combine_chunks()),
    }
    grouped = pa.table(columns).group_by(["id", "published_us", "rank"])
    sums = grouped.aggregate([("votes", "sum")])
    keys = [("votes_sum", "descending"), ("rank", "descending"), ("published_us", "descending")]
    best = pc.sort_indices(sums, sort_keys=[*keys, ("id", "ascending")])[:k]
    winners = sums.take(best).rename_columns(["id", "published_us", "rank", "votes"])
    size = pc.max(table.column("size")).as_py()
    return winners.append_column("size", pa.array([size] * len(winners), pa.int64()))


def pack_rows(rows: Iterable[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return rows as a table; their lists are arrays, whose values are not converted."""
    all_rows = list(rows)
    columns = [_column([row[field.name] for row in all_rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _column(cells: list[Any], kind: pa.DataType) -> pa.Array:
    if not pa.types.is_list(kind):
        return pa.array(cells, kind)
    offsets = pa.array(np.cumsum([0, *map(len, cells)]), pa.int32())
    arrays = [pa.array(cell, kind.value_type) for cell in cells]
    values = pa.concat_arrays(arrays) if arrays else pa.array([], kind.value_type)
    return pa.ListArray.from_arrays(offsets, values, type=kind)


def _concatenate(table: pa.Table) -> VoteColumns:
    names = ("ids", "published_us", "ranks")
    return VoteColumns(*(pc.list_flatten(table.column(name).combine_chunks()) for name in names))


def _cells(table: pa.Table, name: str) -> list[bytes]:
    return list(table.column(name).to_pylist())
