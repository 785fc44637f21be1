"""Diversification of very many candidates by Spark, with the answers of one machine.

Candidates are publications with a column `rank`. All other columns except those of `by` are
attributes. The columns `by` divide the candidates into groups; each group has its own choice.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import NumericType, StructType

from tidings.diversify import DIVERSIFIERS, Candidate, Diversifier
from tidings.diversify.dispersion import MaxAvg, MaxMin, MaxSum
from tidings.diversify.event_tokens import has_kernel
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.errors import InvalidForm, InvalidPolicy, shown
from tidings.formats.arrow import ReadEvents
from tidings.model import named_parts, validate
from tidings.model.dead_letter import BadRecord
from tidings.spark.analysis.lsh_votes import (
    BALLOTS,
    BEST,
    COUNTS,
    SLICE,
    VoteColumns,
    ballot_rows,
    count_rows,
    pack_rows,
    sum_votes,
)
from tidings.spark.publications import check_frame, readable

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
    kept = candidates.mapInArrow(
        lambda batches: core_sets(reader, farthest, k, batches), reader.schema
    )
    return _choose_in_groups(reader, kept, part, k)


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
        kept = [rows[i] for i in farthest.choose([candidates[row] for row in rows], k)]
        yield from table.take(kept).combine_chunks().to_batches()
