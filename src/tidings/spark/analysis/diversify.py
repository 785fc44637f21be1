"""Diversification of very many candidates by Spark, with the answers of one machine.

Candidates are publications with a column `rank`. All other columns except those of `by` are
attributes. The columns `by` divide the candidates into groups; each group has its own choice.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import NumericType, StructType

from tidings.compiled.array_types import Int64s, UInt64s
from tidings.diversify import DIVERSIFIERS, Candidate, Diversifier
from tidings.diversify.greedy import MaxAvg, MaxMin, MaxSum
from tidings.diversify.hashed_distances import has_kernel
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.errors import InvalidForm, InvalidPolicy, shown
from tidings.formats.arrow import ReadEvents
from tidings.model import named_parts, validate
from tidings.model.dead_letter import BadRecord
from tidings.spark.publications import check_frame, readable

# The votes of LSH among very many candidates, in packed rows: Arrow in, Arrow out.
#
# Every bucket of every table votes for its best candidate (TKS 5.2.5.2). Bucket keys are hashed
# into a few slices, and so are candidates, so that the work takes two shuffles:
#
#     record batch --BALLOTS--> slice of keys --COUNTS--> slice of candidates --BEST--> top k
#                               winner of each key        sum of the votes
#
# Each record batch sends one row to each slice of keys, with all its candidates and the keys for
# which they are its best. A slice finds the winner of each of its keys and sends one row to each
# slice of candidates; there the votes are summed and the k best are kept. One row per key and
# candidate would cost ten times as much.

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
    chosen = votes > 0
    if number == 0:
        chosen[best[:k]] = True
    slices = candidates.slices()
    for slice_number in np.unique(slices[chosen]).tolist():
        places = np.flatnonzero(chosen & (slices == slice_number))
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


RANK: Final = "rank"
CHOSEN: Final = pa.schema(
    {
        "id": pa.string(),
        "published_at": pa.timestamp("us", "UTC"),
        "rank": pa.float64(),
        "position": pa.int64(),
    }
)
Batches = Iterable[pa.RecordBatch]


def diversify(
    candidates: DataFrame,
    k: int,
    diversifier: object = "maxdivrel-lsh",
    by: str | Sequence[str] = (),
) -> DataFrame:
    """Return the k chosen of each group: its columns, id, published_at, rank and position.

    The answer is exactly that of the diversifier on one machine. `maxdivrel-lsh` is distributed
    over all cores: signatures where the candidates are, a shuffle by bucket and one by winner, both
    in packed rows, so that one group may have millions. Any other diversifier chooses from a group
    in one task, whose memory must hold it.
    """
    candidates, reader = _open_candidates(candidates, by)
    part = _read_diversifier(diversifier)
    validate.count("k", k)
    if type(part) is MaxDivRelLsh and has_kernel(part.distance):
        return _choose_by_votes(reader, candidates, part, k)
    return _choose_in_groups(reader, candidates, part, k)


def diversify_approximately(
    candidates: DataFrame, k: int, diversifier: object = "maxmin", by: str | Sequence[str] = ()
) -> DataFrame:
    """Choose from core-sets: NOT the answer of one machine, but for groups of any size.

    Each partition keeps k candidates of each group that lie far apart: greedily, always the one
    whose smallest pair weight to those kept is largest. The diversifier then chooses from all that
    the partitions kept. For `maxmin` and a distance with the triangle inequality (Jaccard; overlap
    among events of the same attributes), the best k of these have at least a third of the smallest
    weight of the best k of all: either a partition kept k that lie that far apart, or every
    candidate is within a third of the best of one that was kept. Growing from the best pair at most
    halves this again, so the answer has at least a sixth. For `maxsum` and `maxavg` no bound is
    stated. The answer depends on how the candidates are partitioned.
    """
    candidates, reader = _open_candidates(candidates, by)
    part = _read_diversifier(diversifier)
    validate.count("k", k)
    if not isinstance(part, MaxMin | MaxSum | MaxAvg):
        raise InvalidPolicy(f"core-sets are for maxmin, maxsum and maxavg, not {part.name}")
    farthest = MaxMin(part.sigma, part.distance)
    winners = candidates.mapInArrow(
        lambda batches: core_sets(reader, farthest, k, batches), reader.schema
    )
    return _choose_in_groups(reader, winners, part, k)


@dataclass(frozen=True)
class CandidateReader:
    """Reads the rows of candidates, in any task."""

    schema: StructType
    by: tuple[str, ...]
    read: ReadEvents

    def with_groups(self, columns: pa.Schema) -> StructType:
        """Return the group columns, followed by others."""
        groups = [self.schema[name] for name in self.by]
        return StructType([*groups, *from_arrow_schema(columns).fields])

    def candidates(self, batch: pa.RecordBatch | pa.Table) -> list[Candidate]:
        """Read rows; one that cannot be read stops the job with an error that quotes it."""
        ranks = batch.column(RANK).to_pylist()
        events = self.read(batch.drop_columns([RANK, *self.by]))
        return [_candidate(event, rank) for event, rank in zip(events, ranks, strict=True)]

    def rows_by_group(self, batch: pa.RecordBatch | pa.Table) -> dict[tuple[Any, ...], list[int]]:
        """Return the row numbers of each group."""
        if not self.by:
            return {(): list(range(batch.num_rows))} if batch.num_rows else {}
        groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        columns = (batch.column(name).to_pylist() for name in self.by)
        for row, group in enumerate(zip(*columns, strict=True)):
            groups[group].append(row)
        return groups

    def add_group_cells(
        self, group_table: pa.Table, rows: Iterable[Any], schema: pa.Schema
    ) -> pa.Table:
        """Return rows as a table, with the group columns of a table of one group."""
        group = {name: group_table.column(name)[0].as_py() for name in self.by}
        return pack_rows((group | row for row in rows), schema)

    def add_group_columns(
        self, group_table: pa.Table, table: pa.Table, schema: pa.Schema
    ) -> pa.Table:
        """Return a table with the group columns of a table of one group."""
        group = [pa.repeat(group_table.column(name)[0], len(table)) for name in self.by]
        return pa.Table.from_arrays([*group, *table.columns], names=schema.names).cast(schema)


def _read_diversifier(diversifier: object) -> Diversifier:
    return named_parts.read(DIVERSIFIERS, "diversifier", diversifier)


def _open_candidates(
    candidates: DataFrame, by: str | Sequence[str]
) -> tuple[DataFrame, CandidateReader]:
    groups = (by,) if isinstance(by, str) else by
    if not isinstance(groups, tuple | list) or not all(isinstance(name, str) for name in groups):
        raise InvalidForm(f"by must be the name of a column or a list of names, not {shown(by)}")
    check_frame("candidates", candidates, (RANK, *groups))
    rows, read = readable(candidates, RANK, *groups)
    kind = rows.schema[RANK].dataType
    if not isinstance(kind, NumericType):
        raise InvalidForm(f"column {RANK} holds {kind.simpleString()}; a rank is a number")
    return rows, CandidateReader(rows.schema, tuple(groups), read)


def _candidate(event: Any, rank: Any) -> Candidate:
    if isinstance(event, BadRecord):
        raise InvalidForm(f"a candidate cannot be used: {event.reason}: {event.record}")
    rank = validate.number(f"the rank of {event.id}", rank, InvalidForm, high=float("inf"))
    return Candidate(event, rank, rank)


def _choose_by_votes(
    reader: CandidateReader, candidates: DataFrame, part: MaxDivRelLsh, k: int
) -> DataFrame:
    """Let buckets vote for their winners, and order winners by votes (TKS 5.2.5.2)."""
    schemas = [reader.with_groups(columns) for columns in (BALLOTS, COUNTS, BEST)]
    arrow = [to_arrow_schema(schema, timezone="UTC") for schema in schemas]
    slices = (*reader.by, SLICE)
    ballots = candidates.mapInArrow(
        lambda batches: cast_ballots(reader, part, arrow[0], batches), schemas[0]
    )
    counts = ballots.groupBy(*slices).applyInArrow(
        lambda table: reader.add_group_cells(table, count_rows(table, k), arrow[1]), schemas[1]
    )
    votes = counts.groupBy(*slices).applyInArrow(
        lambda table: reader.add_group_columns(table, sum_votes(table, k), arrow[2]), schemas[2]
    )
    return _top(reader, votes, k)


def _top(reader: CandidateReader, votes: DataFrame, k: int) -> DataFrame:
    """Return the top k by votes, then by rank; with fewer than k candidates all, by rank alone."""
    group = Window.partitionBy(*reader.by)
    few = f.col("tidings_candidates") < k
    counted = f.when(few, 0).otherwise(f.col("votes"))
    best = (counted.desc(), f.col("rank").desc(), f.col("published_us").desc(), f.col("id"))
    sized = votes.withColumn("tidings_candidates", f.max("size").over(group))
    winners = sized.where(few | (f.col("votes") > 0))
    placed = winners.withColumn("position", f.row_number().over(group.orderBy(*best)).cast("long"))
    return placed.where(f.col("position") <= k).select(
        *reader.by,
        "id",
        f.timestamp_micros("published_us").alias("published_at"),
        "rank",
        "position",
    )


def cast_ballots(
    reader: CandidateReader, part: MaxDivRelLsh, schema: pa.Schema, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that each record batch sends to the slices of keys."""
    for batch in batches:
        candidates = reader.candidates(batch)
        keys = part.bands([candidate.event for candidate in candidates])
        columns = VoteColumns(
            pa.array([candidate.event.id for candidate in candidates], pa.string()),
            pa.array([candidate.event.published_us for candidate in candidates], pa.int64()),
            # Adding 0.0 turns a negative zero into 0.0: slices hash the bits of ranks.
            pa.array([candidate.rank + 0.0 for candidate in candidates], pa.float64()),
        )
        for group, row_numbers in reader.rows_by_group(batch).items():
            rows = np.array(row_numbers, np.int64)
            cells = dict(zip(reader.by, group, strict=True))
            ballots = (cells | row for row in ballot_rows(columns.take(rows), keys[rows]))
            yield from pack_rows(ballots, schema).to_batches()


def _choose_in_groups(
    reader: CandidateReader, candidates: DataFrame, part: Diversifier, k: int
) -> DataFrame:
    """Choose from each group in one task."""
    schema = reader.with_groups(CHOSEN)
    arrow = to_arrow_schema(schema, timezone="UTC")
    return candidates.groupBy(*reader.by).applyInArrow(
        lambda table: choose_group(reader, part, k, arrow, table), schema
    )


def choose_group(
    reader: CandidateReader, part: Diversifier, k: int, schema: pa.Schema, table: pa.Table
) -> pa.Table:
    """Choose from one group, Arrow in and Arrow out."""
    candidates = reader.candidates(table)
    rows = [
        {
            "id": candidates[i].event.id,
            "published_at": candidates[i].event.published_us,
            "rank": candidates[i].rank,
            "position": position,
        }
        for position, i in enumerate(part.choose(candidates, k), start=1)
    ]
    return reader.add_group_cells(table, rows, schema)


def core_sets(
    reader: CandidateReader, farthest: MaxMin, k: int, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """Yield, of each group in a partition, k rows that lie far apart."""
    partition = list(batches)
    if not partition:
        return
    table = pa.Table.from_batches(partition)
    candidates = reader.candidates(table)
    for rows in reader.rows_by_group(table).values():
        core = [rows[i] for i in farthest.choose([candidates[row] for row in rows], k)]
        yield from table.take(core).combine_chunks().to_batches()
