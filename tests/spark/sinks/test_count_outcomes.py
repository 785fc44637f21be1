"""Outcomes of a batch, counted by Spark and read as objects."""

import pyarrow as pa
import pytest
from tests.spark.state_stage.outcome_rows import ROWS

from tidings import Delivery
from tidings.model.dead_letter import DeadLetter
from tidings.spark.sinks.count_outcomes import OutcomeCounts, count_outcomes, read_outcomes
from tidings.spark.state_stage.processor import OUTCOMES


def test_rows_become_objects_and_repeated_letters_one():
    found = read_outcomes(pa.Table.from_pylist(ROWS))
    assert [
        (delivery.subscriber, delivery.event, delivery.sequence) for delivery in found.deliveries
    ] == [
        ("ann", "e1", 1),
        ("ann", "e2", 2),
        ("bob", "e1", 1),
    ]
    assert found.deliveries[0] == Delivery(
        subscriber="ann",
        event="e1",
        rank=0.5,
        position=1,
        window={"name": "continuous"},
        matched=("s1",),
        sequence=1,
        delivered_us=1_794_700_800_000_000,
    )
    letter = DeadLetter({"id": "e9"}, "too bad")
    assert (dict(found.late), list(found.dead)) == ({"e0": letter, "e3": letter}, 3 * [letter])


@pytest.mark.spark
def test_counts_agree_with_the_objects(spark):
    outcomes = spark.createDataFrame([tuple(row.values()) for row in ROWS], OUTCOMES)
    accounts = [row for row in ROWS if row["kind"] == "account"]
    sums = {
        "ranks": sum(row["rank"] for row in ROWS if row["kind"] == "delivery"),
        "matches": sum(row["position"] for row in accounts),
        "scores": sum(row["position"] * row["rank"] for row in accounts),
        "held": 4,
        "released": 2,
        "dropped_by": {"pause": 1, "quota": 2},
    }
    assert count_outcomes(outcomes) == OutcomeCounts(3, 2, 3, {"ann": 2, "bob": 1}, **sums)
    assert count_outcomes(outcomes, by_name=False) == OutcomeCounts(3, 2, 3, **sums)
    assert count_outcomes(outcomes.where("false")) == OutcomeCounts()
