"""Choices by Spark: exactly those of one machine; core-sets as far apart as they promise."""

from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import tidings.spark as ts
from tidings import Event
from tidings.diversify import select
from tidings.diversify.distance import Jaccard
from tidings.errors import InvalidForm, InvalidPolicy
from tidings.formats.arrow import events_to_table

pytestmark = pytest.mark.spark
LSH = {"name": "maxdivrel-lsh", "tables": 4, "rows": 2}
MAXMIN = {"name": "maxmin", "sigma": 0.3, "distance": "jaccard"}

VALUES = st.sampled_from(["x", "y", "z"])
CROWDS = st.lists(
    st.tuples(VALUES, VALUES, st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 2)),
    min_size=1,
    max_size=14,
)
Crowd = tuple[list[Event], list[float]]


def crowd(rows: list[tuple[str, str, float, int]]) -> Crowd:
    """Few values, ranks and times, so that all kinds of ties are common."""
    events = [
        Event(f"e{i * 7 % 15:02d}", {"a": a, "b": b}, at) for i, (a, b, _, at) in enumerate(rows)
    ]
    return events, [rank for _, _, rank, _ in rows]


def frame(spark: SparkSession, found: Crowd, **groups: list[Any]) -> DataFrame:
    table = events_to_table(found[0]).append_column("rank", pa.array(found[1], pa.float64()))
    for name, column in groups.items():
        table = table.append_column(name, pa.array(column))
    return spark.createDataFrame(table)


def chosen(found: DataFrame) -> list[str]:
    rows = found.orderBy("position").collect()
    assert [row.position for row in rows] == list(range(1, len(rows) + 1))
    return [row.id for row in rows]


def alone(found: Crowd, k: int, form: Any) -> list[str]:
    return [each.id for each in select(*found, k, form)]


@settings(max_examples=3)
@given(st.lists(CROWDS, min_size=1, max_size=20), st.integers(1, 10))
def test_lsh_elects_what_one_machine_elects(spark: SparkSession, many: Any, k: int) -> None:
    """Many crowds at once, as groups; one of them alone."""
    crowds = [crowd(rows) for rows in many]
    whole = (
        [each for found, _ in crowds for each in found],
        [r for _, ranks in crowds for r in ranks],
    )
    numbers = [number for number, (found, _) in enumerate(crowds) for _ in found]
    frames = frame(spark, whole, crowd=numbers).repartition(3)
    rows = ts.diversify(frames, k, LSH, by="crowd").orderBy("crowd", "position").collect()
    for number, found in enumerate(crowds):
        assert [row.id for row in rows if row.crowd == number] == alone(found, k, LSH)
    one = frames.where("crowd = 0").drop("crowd")
    assert chosen(ts.diversify(one, k, LSH)) == alone(crowds[0], k, LSH)


@pytest.mark.parametrize("form", [LSH, MAXMIN, "maxdivrel", "none"])
def test_groups_are_chosen_from_on_their_own(spark: SparkSession, form: Any) -> None:
    """One group has fewer than k candidates; a group may be a number and a name, or neither."""
    chance = np.random.default_rng(5)
    names = np.array(["p", "q", "r"])[chance.integers(0, 3, 60)]
    names[names == "r"] = np.where(np.cumsum(names == "r")[names == "r"] < 4, "r", "p")
    found = crowd_of(60, seed=3)
    frames = frame(spark, found, owner=names.tolist(), topic=(np.arange(60) % 2).tolist())
    rows = ts.diversify(frames, 5, form, by=["owner", "topic"]).collect()
    for owner in "pqr":
        for topic in (0, 1):
            own = [i for i in range(60) if names[i] == owner and i % 2 == topic]
            mine = sorted((row.position, row.id) for row in rows if row[:2] == (owner, topic))
            expected = alone(([found[0][i] for i in own], [found[1][i] for i in own]), 5, form)
            assert [name for _, name in mine] == expected


def crowd_of(size: int, seed: int, values: int = 4) -> Crowd:
    chance = np.random.default_rng(seed)
    cells = chance.integers(0, values, (size, 6)).tolist()
    events = [
        Event(f"e{i:06d}", {f"a{j}": f"v{cell}" for j, cell in enumerate(row)}, i % 50)
        for i, row in enumerate(cells)
    ]
    return events, chance.integers(0, 200, size).astype(float).tolist()


def test_a_hundred_thousand_candidates(spark: SparkSession) -> None:
    found = crowd_of(100_000, seed=1, values=9)
    form = {"name": "maxdivrel-lsh", "tables": 5, "rows": 3}
    rows = ts.diversify(frame(spark, found).repartition(4), 50, form)
    assert chosen(rows) == alone(found, 50, form)


def test_what_is_chosen_keeps_its_time_and_rank(spark: SparkSession) -> None:
    found = crowd([("x", "y", 0.5, 2)])
    by_lsh = ts.diversify(frame(spark, found), 2, LSH)
    plainly = ts.diversify(frame(spark, found), 2, "none")
    for rows in (by_lsh, plainly):
        (row,) = rows.withColumn("us", f.unix_micros("published_at")).collect()
        assert (row.us, row["rank"]) == (2_000_000, 0.5)
    assert by_lsh.columns == plainly.columns == ["id", "published_at", "rank", "position"]


@pytest.mark.parametrize("seed", range(3))
def test_core_sets_keep_what_they_promise(spark: SparkSession, seed: int) -> None:
    found = crowd_of(12, seed)
    form = {**MAXMIN, "sigma": 0.0}
    rows = ts.diversify_approximately(frame(spark, found).repartition(3), 3, form)
    by_id = {each.id: each for each in found[0]}
    best = max(least([*three]) for three in combinations(found[0], 3))
    assert least([by_id[name] for name in chosen(rows)]) >= best / 6
    whole = ts.diversify_approximately(frame(spark, found).coalesce(1), 3, form)
    assert set(chosen(whole)) <= by_id.keys()


def least(events: list[Event]) -> float:
    return min(Jaccard().between(one, other) for one, other in combinations(events, 2))


def test_core_sets_of_one_partition_and_of_groups(spark: SparkSession) -> None:
    """With all in one partition, choosing from the core-set of maxmin is choosing from all."""
    found = crowd_of(30, seed=9)
    owners = ["p" if i % 3 else "q" for i in range(30)]
    frames = frame(spark, found, owner=owners).coalesce(1)
    rows = ts.diversify_approximately(frames, 4, MAXMIN, by="owner").collect()
    for owner in "pq":
        own = [i for i in range(30) if owners[i] == owner]
        mine = [row.id for row in sorted(rows, key=lambda row: row.position) if row[0] == owner]
        assert mine == alone(([found[0][i] for i in own], [found[1][i] for i in own]), 4, MAXMIN)


def test_of_nobody_nobody_is_chosen(spark: SparkSession) -> None:
    """Neither from no candidates, nor from partitions without any."""
    frames = frame(spark, crowd([("x", "y", 0.5, 2), ("x", "z", 0.5, 1)]))
    for choose in (ts.diversify, ts.diversify_approximately):
        assert choose(frames.where("rank > 1"), 2, MAXMIN).collect() == []
        assert len(choose(frames.repartition(5), 2, MAXMIN).collect()) == 2
    assert ts.diversify(frames.where("rank > 1"), 2, LSH).collect() == []


def test_what_is_wrong_is_said(spark: SparkSession) -> None:
    frames = frame(spark, crowd([("x", "y", 0.5, 2)]))
    with pytest.raises(InvalidForm, match=r"lack the columns \['owner'\]"):
        ts.diversify(frames, 2, by="owner")
    with pytest.raises(InvalidForm, match="rank"):
        ts.diversify(frames.drop("rank"), 2)
    with pytest.raises(InvalidPolicy, match="core-sets"):
        ts.diversify_approximately(frames, 2, "maxdivrel")
    with pytest.raises(Exception, match="the rank of e00"):
        ts.diversify(frames.withColumn("rank", f.lit(-1.0)), 2, LSH).collect()
