"""The votes of LSH among very many candidates, in packed rows: Arrow in, Arrow out.

Every bucket of every table votes for its best candidate (TKS 5.2.5.2). A bucket is in one of a few
slices, by its key, and so is a candidate. Each record batch sends one row to each slice, with all
its candidates and the keys for which they are its best; a slice finds the winners of its keys and
sends one row to each slice of candidates; there votes are summed and the k best are kept. A row for
each key and candidate would cost ten times as much.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import Int64s, UInt64s

SLICE: Final = "tidings_slice"
SLICES: Final = 8
"""So many tasks share the keys, and then the candidates."""

_WHO: Final = {
    SLICE: pa.int32(),
    "ids": pa.list_(pa.string()),
    "published_us": pa.list_(pa.int64()),
    "ranks": pa.list_(pa.float64()),
}
BALLOTS: Final = pa.schema(_WHO | {"keys": pa.binary(), "owners": pa.binary()})
COUNTS: Final = pa.schema(_WHO | {"votes": pa.list_(pa.int64()), "size": pa.int64()})
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


class Who(NamedTuple):
    """Candidates in columns."""

    ids: pa.Array
    us: pa.Array
    ranks: pa.Array

    def take(self, places: Int64s) -> "Who":
        """Give some of them."""
        return Who(*(each.take(pa.array(places)) for each in self))

    def best_first(self) -> Int64s:
        """Give their places by rank, then newer, then smaller id."""
        columns = {"rank": self.ranks, "us": self.us, "id": self.ids}
        found = pc.sort_indices(pa.table(columns), sort_keys=_BEST_FIRST)
        return np.asarray(found.to_numpy(), np.int64)

    def slices(self) -> Int64s:
        """Give the slice of each, the same wherever it is met."""
        us = np.asarray(self.us.to_numpy(), np.int64).view(np.uint64)
        mixed = (us ^ np.asarray(self.ranks.to_numpy(), np.float64).view(np.uint64)) * _MIX
        return np.asarray((mixed >> np.uint64(32)) % np.uint64(SLICES), np.int64)

    def row(self) -> dict[str, Any]:
        """Give them as lists of a row."""
        return {"ids": self.ids, "published_us": self.us, "ranks": self.ranks}


def ballots(who: Who, keys: UInt64s) -> Iterator[dict[str, Any]]:
    """Give the rows of some candidates, of which each has a row of keys.

    Slice 0 hears of all of them, whether it has a key of theirs or not.
    """
    best = who.best_first()
    told, mine = who.take(best), keys[best]
    unique, first = np.unique(mine.ravel(), return_index=True)
    owners = (first // mine.shape[1]).astype(np.int32)  # the first that has a key is its best
    slices = unique % np.uint64(SLICES)
    for number in range(SLICES):
        here = slices == number
        if number == 0 or here.any():
            cut = {"keys": unique[here].tobytes(), "owners": owners[here].tobytes()}
            yield {SLICE: number, **told.row(), **cut}


def counted(table: pa.Table, k: int) -> Iterator[dict[str, Any]]:
    """Count the votes of one slice of keys; give a row for each slice of candidates.

    From slice 0, which has heard of all candidates, comes how many they are, and the k best of
    them even if they have no vote.
    """
    who = _together(table)
    number, size = table.column(SLICE)[0].as_py(), len(who.ids)
    lists = table.column("ids").combine_chunks()
    firsts = np.cumsum([0, *pc.list_value_length(lists).to_pylist()])[:-1]
    keys = np.concatenate([np.frombuffer(each, np.uint64) for each in _cells(table, "keys")])
    parts = zip(_cells(table, "owners"), firsts, strict=True)
    owners = np.concatenate([np.frombuffer(each, np.int32) + at for each, at in parts])
    best = who.best_first()
    place = np.empty(size, np.int64)
    place[best] = np.arange(size)
    order = np.lexsort((place[owners], keys))
    won = np.flatnonzero(np.diff(keys[order], prepend=~keys[order[:1]]))
    votes = np.bincount(owners[order][won], minlength=size)
    kept = votes > 0
    if number == 0:
        kept[best[:k]] = True
    slices = who.slices()
    for each in np.unique(slices[kept]).tolist():
        some = np.flatnonzero(kept & (slices == each))
        told = {"votes": votes[some], "size": 0 if number else size}
        yield {SLICE: each, **who.take(some).row(), **told}


def summed(table: pa.Table, k: int) -> pa.Table:
    """Sum the votes of one slice of candidates; give the k best, by votes and then as candidates.

    `size` is how many candidates there are in all, where that was heard.
    """
    who = _together(table)
    votes = pc.list_flatten(table.column("votes").combine_chunks())
    columns = {"id": who.ids, "published_us": who.us, "rank": who.ranks, "votes": votes}
    found = pa.table(columns).group_by(["id", "published_us", "rank"]).aggregate([("votes", "sum")])
    keys = [("votes_sum", "descending"), ("rank", "descending"), ("published_us", "descending")]
    best = pc.sort_indices(found, sort_keys=[*keys, ("id", "ascending")])[:k]
    few = found.take(best).rename_columns(["id", "published_us", "rank", "votes"])
    size = pc.max(table.column("size")).as_py()
    return few.append_column("size", pa.array([size] * len(few), pa.int64()))


def packed(rows: Iterable[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Give rows as a table; their lists are arrays, and are not looked into."""
    given = list(rows)
    columns = [_column([row[field.name] for row in given], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _column(cells: list[Any], kind: pa.DataType) -> pa.Array:
    if not pa.types.is_list(kind):
        return pa.array(cells, kind)
    offsets = pa.array(np.cumsum([0, *map(len, cells)]), pa.int32())
    values = [pa.array(each, kind.value_type) for each in cells]
    whole = pa.concat_arrays(values) if values else pa.array([], kind.value_type)
    return pa.ListArray.from_arrays(offsets, whole, type=kind)


def _together(table: pa.Table) -> Who:
    names = ("ids", "published_us", "ranks")
    return Who(*(pc.list_flatten(table.column(name).combine_chunks()) for name in names))


def _cells(table: pa.Table, name: str) -> list[bytes]:
    return list(table.column(name).to_pylist())
