"""Which k of very many candidates, on all cores: the choices of one machine, found by Spark.

Candidates are publications with a column `rank`. Every other column but those of `by` is an
attribute. `by` names columns that part them into groups, each of which is chosen from on its own.
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
from pyspark.sql.types import StructType

from tidings.diversify import DIVERSIFIERS, Candidate, Diversifier
from tidings.diversify.dispersion import MaxAvg, MaxMin, MaxSum
from tidings.diversify.event_tokens import has_kernel
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.errors import InvalidForm, InvalidPolicy, shown
from tidings.formats.arrow import ReadEvents
from tidings.formats.arrow_by_row import BadRecord
from tidings.model import named_parts, validate
from tidings.spark.analysis.lsh_votes import (
    BALLOTS,
    BEST,
    COUNTS,
    SLICE,
    Who,
    ballots,
    counted,
    packed,
    summed,
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
    """Give the k chosen of each group: its columns, id, published_at, rank and position.

    Exactly what the diversifier chooses on one machine. `maxdivrel-lsh` is spread over all cores:
    signatures where the candidates are, a shuffle by bucket and one by winner, both in packed rows,
    so that one group may have millions. Any other looks at a group in one task, which must hold it.
    """
    (candidates, crowd), part = _read(candidates, by), _diversifier(diversifier)
    validate.count("k", k)
    if type(part) is MaxDivRelLsh and has_kernel(part.distance):
        return _elected(crowd, candidates, part, k)
    return _chosen(crowd, candidates, part, k)


def diversify_approximately(
    candidates: DataFrame, k: int, diversifier: object = "maxmin", by: str | Sequence[str] = ()
) -> DataFrame:
    """Choose from core-sets: NOT what one machine would choose, but from groups of any size.

    Each partition keeps, of each group, k candidates that lie far apart: greedily, always the one
    whose smallest pair weight to those kept is largest. The diversifier then chooses from what all
    partitions kept. For `maxmin` and a distance with the triangle inequality (Jaccard; overlap
    among events of the same attributes), the best k of what was kept have at least a third of the
    smallest weight of the best k of all: either a partition kept k that lie that far apart, or
    every candidate has one that was kept within a third of the best. Growing from the best pair at
    most halves it again, so the answer has a sixth at least. For `maxsum` and `maxavg` no bound is
    stated. The answer depends on how the candidates are partitioned.
    """
    (candidates, crowd), part = _read(candidates, by), _diversifier(diversifier)
    validate.count("k", k)
    if not isinstance(part, MaxMin | MaxSum | MaxAvg):
        raise InvalidPolicy(f"core-sets are for maxmin, maxsum and maxavg, not {part.name}")
    far = MaxMin(part.sigma, part.distance)
    kept = candidates.mapInArrow(lambda batches: core_sets(crowd, far, k, batches), crowd.schema)
    return _chosen(crowd, kept, part, k)


@dataclass(frozen=True)
class Crowd:
    """How the rows of candidates are read, wherever they are."""

    schema: StructType
    by: tuple[str, ...]
    read: ReadEvents

    def with_groups(self, columns: pa.Schema) -> StructType:
        """Give the columns of the groups, and others behind them."""
        groups = [self.schema[name] for name in self.by]
        return StructType([*groups, *from_arrow_schema(columns).fields])

    def candidates(self, batch: pa.RecordBatch | pa.Table) -> list[Candidate]:
        """Read rows; one that cannot be read stops the job and is named."""
        ranks = batch.column(RANK).to_pylist()
        events = self.read(batch.drop_columns([RANK, *self.by]))
        return [_candidate(each, rank) for each, rank in zip(events, ranks, strict=True)]


def _diversifier(given: object) -> Diversifier:
    return named_parts.read(DIVERSIFIERS, "diversifier", given)


def _read(candidates: DataFrame, by: str | Sequence[str]) -> tuple[DataFrame, Crowd]:
    groups = (by,) if isinstance(by, str) else by
    if not isinstance(groups, tuple | list) or not all(isinstance(name, str) for name in groups):
        raise InvalidForm(f"by is the name of a column or a list of names, not {shown(by)}")
    check_frame("candidates", candidates, (RANK, *groups))
    rows, read = readable(candidates, RANK, *groups)
    return rows, Crowd(rows.schema, tuple(groups), read)


def _candidate(found: Any, rank: Any) -> Candidate:
    if isinstance(found, BadRecord):
        raise InvalidForm(f"a candidate cannot be used: {found.reason}: {found.record}")
    rank = validate.number(f"the rank of {found.id}", rank, InvalidForm, high=float("inf"))
    return Candidate(found, rank, rank)


def _elected(crowd: Crowd, candidates: DataFrame, part: MaxDivRelLsh, k: int) -> DataFrame:
    """Let buckets elect their winners, and winners be ordered by votes (TKS 5.2.5.2)."""
    sent, told, best = map(crowd.with_groups, (BALLOTS, COUNTS, BEST))
    arrows = [to_arrow_schema(each, timezone="UTC") for each in (sent, told, best)]
    slices = (*crowd.by, SLICE)
    ballots = candidates.mapInArrow(lambda rows: sign(crowd, part, arrows[0], rows), sent)
    counts = ballots.groupBy(*slices).applyInArrow(
        lambda table: _rows(crowd, table, counted(table, k), arrows[1]), told
    )
    votes = counts.groupBy(*slices).applyInArrow(
        lambda table: _columns(crowd, table, summed(table, k), arrows[2]), best
    )
    return _top(crowd, votes, k)


def _top(crowd: Crowd, votes: DataFrame, k: int) -> DataFrame:
    """Take k by votes, then by rank; of fewer than k candidates all, by rank alone."""
    group = Window.partitionBy(*crowd.by)
    everybody = f.max("size").over(group)
    counted = f.when(f.col("many") < k, 0).otherwise(f.col("votes"))
    best = (counted.desc(), f.col("rank").desc(), f.col("published_us").desc(), f.col("id"))
    real = votes.withColumn("many", everybody).where((f.col("many") < k) | (f.col("votes") > 0))
    placed = real.withColumn("position", f.row_number().over(group.orderBy(*best)).cast("long"))
    return placed.where(f.col("position") <= k).select(
        *crowd.by,
        "id",
        f.timestamp_micros("published_us").alias("published_at"),
        "rank",
        "position",
    )


def sign(
    crowd: Crowd, part: MaxDivRelLsh, schema: pa.Schema, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """Give the rows that a record batch sends to each slice of the keys, Arrow in and Arrow out."""
    for batch in batches:
        found = crowd.candidates(batch)
        keys = part.bands([each.event for each in found])
        who = Who(
            pa.array([each.event.id for each in found], pa.string()),
            pa.array([each.event.published_us for each in found], pa.int64()),
            pa.array([each.rank + 0.0 for each in found], pa.float64()),  # no negative zero
        )
        for group, rows in _groups(crowd, batch).items():
            mine = np.array(rows, np.int64)
            cells = dict(zip(crowd.by, group, strict=True))
            sent = (cells | row for row in ballots(who.take(mine), keys[mine]))
            yield from packed(sent, schema).to_batches()


def _groups(crowd: Crowd, batch: pa.RecordBatch | pa.Table) -> dict[tuple[Any, ...], list[int]]:
    """Give the places of the rows of each group."""
    if not crowd.by:
        return {(): list(range(batch.num_rows))} if batch.num_rows else {}
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    keys = (batch.column(name).to_pylist() for name in crowd.by)
    for place, group in enumerate(zip(*keys, strict=True)):
        groups[group].append(place)
    return groups


def _rows(crowd: Crowd, table: pa.Table, rows: Iterable[Any], schema: pa.Schema) -> pa.Table:
    """Give rows with the columns of the group that a table is of."""
    group = {name: table.column(name)[0].as_py() for name in crowd.by}
    return packed((group | row for row in rows), schema)


def _columns(crowd: Crowd, table: pa.Table, found: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give a table with the columns of the group that another one is of."""
    group = [pa.repeat(table.column(name)[0], len(found)) for name in crowd.by]
    return pa.Table.from_arrays([*group, *found.columns], names=schema.names).cast(schema)


def _chosen(crowd: Crowd, candidates: DataFrame, part: Diversifier, k: int) -> DataFrame:
    """Choose from each group in one task."""
    schema = crowd.with_groups(CHOSEN)
    arrow = to_arrow_schema(schema, timezone="UTC")
    return candidates.groupBy(*crowd.by).applyInArrow(
        lambda table: choose_group(crowd, part, k, arrow, table), schema
    )


def choose_group(
    crowd: Crowd, part: Diversifier, k: int, schema: pa.Schema, table: pa.Table
) -> pa.Table:
    """Choose from one group, Arrow in and Arrow out."""
    found = crowd.candidates(table)
    rows = [
        {
            "id": found[i].event.id,
            "published_at": found[i].event.published_us,
            "rank": found[i].rank,
            "position": place,
        }
        for place, i in enumerate(part.choose(found, k), start=1)
    ]
    return _rows(crowd, table, rows, schema)


def core_sets(crowd: Crowd, far: MaxMin, k: int, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Give, of each group in a partition, k rows that lie far apart."""
    parted = list(batches)
    if not parted:
        return
    whole = pa.Table.from_batches(parted)
    found = crowd.candidates(whole)
    for rows in _groups(crowd, whole).values():
        kept = [rows[i] for i in far.choose([found[row] for row in rows], k)]
        yield from whole.take(kept).combine_chunks().to_batches()
