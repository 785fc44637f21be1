"""Choices by Spark equal those of one machine; core-sets are as far apart as documented."""

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
ROWS = st.lists(
    st.tuples(VALUES, VALUES, st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 2)),
    min_size=1,
    max_size=14,
)
Ranked = tuple[list[Event], list[float]]


def ranked_events(rows: list[tuple[str, str, float, int]]) -> Ranked:
    """Few values, ranks and times, so that all kinds of ties are common."""
    events = [
        Event(f"e{i * 7 % 15:02d}", {"a": a, "b": b}, at) for i, (a, b, _, at) in enumerate(rows)
    ]
    return events, [rank for _, _, rank, _ in rows]


def frame(spark: SparkSession, ranked: Ranked, **groups: list[Any]) -> DataFrame:
    events, ranks = ranked
    table = events_to_table(events).append_column("rank", pa.array(ranks, pa.float64()))
    for name, column in groups.items():
        table = table.append_column(name, pa.array(column))
    return spark.createDataFrame(table)


def chosen(answer: DataFrame) -> list[str]:
    rows = answer.orderBy("position").collect()
    assert [row.position for row in rows] == list(range(1, len(rows) + 1))
    return [row.id for row in rows]


def on_one_machine(ranked: Ranked, k: int, form: Any) -> list[str]:
    return [event.id for event in select(*ranked, k, form)]


def some_of(ranked: Ranked, rows: list[int]) -> Ranked:
    return [ranked[0][row] for row in rows], [ranked[1][row] for row in rows]


@settings(max_examples=3)
@given(st.lists(ROWS, min_size=1, max_size=20), st.integers(1, 10))
def test_lsh_chooses_as_one_machine_does(spark: SparkSession, many: Any, k: int) -> None:
    """Many groups at once, and one of them without a group column."""
    groups = [ranked_events(rows) for rows in many]
    together = (
        [event for events, _ in groups for event in events],
        [rank for _, ranks in groups for rank in ranks],
    )
    numbers = [number for number, (events, _) in enumerate(groups) for _ in events]
    frames = frame(spark, together, number=numbers).repartition(3)
    rows = ts.diversify(frames, k, LSH, by="number").orderBy("number", "position").collect()
    for number, group in enumerate(groups):
        ids = [row.id for row in rows if row.number == number]
        assert ids == on_one_machine(group, k, LSH)
    first = frames.where("number = 0").drop("number")
    assert chosen(ts.diversify(first, k, LSH)) == on_one_machine(groups[0], k, LSH)


@pytest.mark.parametrize("form", [LSH, MAXMIN, "maxdivrel", "none"])
def test_each_group_has_its_own_choice(spark: SparkSession, form: Any) -> None:
    """One group has fewer than k candidates; a group may be a number and a name, or neither."""
    chance = np.random.default_rng(5)
    names = np.array(["p", "q", "r"])[chance.integers(0, 3, 60)]
    names[names == "r"] = np.where(np.cumsum(names == "r")[names == "r"] < 4, "r", "p")
    ranked = random_events(60, seed=3)
    frames = frame(spark, ranked, owner=names.tolist(), topic=(np.arange(60) % 2).tolist())
    rows = ts.diversify(frames, 5, form, by=["owner", "topic"]).collect()
    for owner in "pqr":
        for topic in (0, 1):
            own = [i for i in range(60) if names[i] == owner and i % 2 == topic]
            picked = sorted((row.position, row.id) for row in rows if row[:2] == (owner, topic))
            expected = on_one_machine(some_of(ranked, own), 5, form)
            assert [event_id for _, event_id in picked] == expected


def random_events(size: int, seed: int, values: int = 4) -> Ranked:
    chance = np.random.default_rng(seed)
    cells = chance.integers(0, values, (size, 6)).tolist()
    events = [
        Event(f"e{i:06d}", {f"a{j}": f"v{cell}" for j, cell in enumerate(row)}, i % 50)
        for i, row in enumerate(cells)
    ]
    return events, chance.integers(0, 200, size).astype(float).tolist()


def test_a_hundred_thousand_candidates(spark: SparkSession) -> None:
    ranked = random_events(100_000, seed=1, values=9)
    form = {"name": "maxdivrel-lsh", "tables": 5, "rows": 3}
    rows = ts.diversify(frame(spark, ranked).repartition(4), 50, form)
    assert chosen(rows) == on_one_machine(ranked, 50, form)


def test_chosen_events_keep_their_time_and_rank(spark: SparkSession) -> None:
    ranked = ranked_events([("x", "y", 0.5, 2)])
    by_votes = ts.diversify(frame(spark, ranked), 2, LSH)
    by_rank = ts.diversify(frame(spark, ranked), 2, "none")
    for rows in (by_votes, by_rank):
        (row,) = rows.withColumn("us", f.unix_micros("published_at")).collect()
        assert (row.us, row["rank"]) == (2_000_000, 0.5)
    assert by_votes.columns == by_rank.columns == ["id", "published_at", "rank", "position"]


@pytest.mark.parametrize("seed", range(3))
def test_core_sets_reach_a_sixth_of_the_best_distance(spark: SparkSession, seed: int) -> None:
    ranked = random_events(12, seed)
    form = {**MAXMIN, "sigma": 0.0}
    rows = ts.diversify_approximately(frame(spark, ranked).repartition(3), 3, form)
    by_id = {event.id: event for event in ranked[0]}
    best = max(smallest_distance([*three]) for three in combinations(ranked[0], 3))
    assert smallest_distance([by_id[event_id] for event_id in chosen(rows)]) >= best / 6
    whole = ts.diversify_approximately(frame(spark, ranked).coalesce(1), 3, form)
    assert set(chosen(whole)) <= by_id.keys()


def smallest_distance(events: list[Event]) -> float:
    return min(Jaccard().between(one, other) for one, other in combinations(events, 2))


def test_core_sets_of_one_partition_and_of_groups(spark: SparkSession) -> None:
    """With all in one partition, choosing from the core-set of maxmin is choosing from all."""
    ranked = random_events(30, seed=9)
    owners = ["p" if i % 3 else "q" for i in range(30)]
    frames = frame(spark, ranked, owner=owners).coalesce(1)
    rows = ts.diversify_approximately(frames, 4, MAXMIN, by="owner").collect()
    for owner in "pq":
        own = [i for i in range(30) if owners[i] == owner]
        ordered = sorted(rows, key=lambda row: row.position)
        picked = [row.id for row in ordered if row[0] == owner]
        assert picked == on_one_machine(some_of(ranked, own), 4, MAXMIN)


def test_empty_frames_and_empty_partitions_choose_nothing(spark: SparkSession) -> None:
    frames = frame(spark, ranked_events([("x", "y", 0.5, 2), ("x", "z", 0.5, 1)]))
    for choose in (ts.diversify, ts.diversify_approximately):
        assert choose(frames.where("rank > 1"), 2, MAXMIN).collect() == []
        assert len(choose(frames.repartition(5), 2, MAXMIN).collect()) == 2
    assert ts.diversify(frames.where("rank > 1"), 2, LSH).collect() == []


def test_wrong_arguments_are_refused(spark: SparkSession) -> None:
    frames = frame(spark, ranked_events([("x", "y", 0.5, 2)]))
    with pytest.raises(InvalidForm, match=r"lack the columns \['owner'\]"):
        ts.diversify(frames, 2, by="owner")
    with pytest.raises(InvalidForm, match="rank"):
        ts.diversify(frames.drop("rank"), 2)
    with pytest.raises(InvalidPolicy, match="core-sets"):
        ts.diversify_approximately(frames, 2, "maxdivrel")
    with pytest.raises(Exception, match="the rank of e00"):
        ts.diversify(frames.withColumn("rank", f.lit(-1.0)), 2, LSH).collect()


def test_decimals_are_the_numbers_that_they_are(spark: SparkSession) -> None:
    ranked = ranked_events([("x", "y", rank, 0) for rank in (0.5, 1.0, 0.0, 0.5)])
    frames = frame(spark, ranked, price=[0.1, 0.2, 0.3, 0.1])
    decimals = frames.withColumns(
        {name: f.col(name).cast("decimal(10, 4)") for name in ("rank", "price")}
    )
    rows, expected = (ts.diversify(each, 3, MAXMIN).collect() for each in (decimals, frames))
    assert rows == expected
    assert len(rows) == 3
