"""Costs are found again in runs that were computed from them; one real run has all figures."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tidings import Policy, Sliding
from tidings.lab.capacity import model
from tidings.lab.capacity.calibrate import (
    CASES,
    COUNTED,
    Case,
    Measurement,
    calibration_of,
    fit,
    measure,
)
from tidings.lab.capacity.model import Demand, doublings, held_events, trigger_seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_of(case: Case) -> Measurement:
    held, ids = 3.0 * (case.fill or case.events) * case.matches, 24.0 * case.events
    stored = case.subscribers * 40 + held * 20 + held_events(held, case.matches, case.reached) * 50
    stored += ids
    growth = case.offered * doublings(case.subscriptions)
    seconds = 0.4 + case.events * 30e-6 + case.offered * 10e-6 + growth * 1e-6 + stored * 1e-8
    seconds += case.events * case.reached * 3e-6
    return Measurement(
        case,
        seconds,
        seconds / 2,
        case.subscriptions * 50e-6,
        160 * case.subscriptions,
        stored,
        held,
        ids,
    )


def test_costs_are_found_again() -> None:
    costs = fit([run_of(case) for case in CASES])
    assert costs.trigger_s == pytest.approx(0.4, rel=1e-3)
    assert costs.event_us == pytest.approx(30, rel=1e-3)
    assert costs.bucket_us == pytest.approx(3, rel=1e-3)
    assert costs.match_us == pytest.approx(10, rel=1e-3)
    assert costs.growth_us == pytest.approx(1, rel=1e-3)
    assert costs.state_byte_us == pytest.approx(0.01, rel=1e-2)
    assert (costs.subscriber_bytes, costs.held_bytes) == pytest.approx((40, 20), rel=1e-3)
    assert costs.event_bytes == pytest.approx(50, rel=1e-3)
    assert (costs.build_us, costs.index_bytes) == pytest.approx((50, 160))


def test_no_cost_of_the_model_depends_on_another_one() -> None:
    """An error of 2 % in any one run moves the plan for a much larger demand by 25 % at most."""
    runs = [run_of(case) for case in CASES]
    demand = Demand(100_000_000, 10_000_000, 5_000, 200, Policy(window=Sliding(100)), trigger_s=60)
    exact = trigger_seconds(fit(runs), demand)
    for number, run in enumerate(runs):
        wrong = replace(run, processor_s=1.02 * run.processor_s)
        moved = fit([*runs[:number], wrong, *runs[number + 1 :]])
        assert trigger_seconds(moved, demand) == pytest.approx(exact, rel=0.25)


def test_other_costs_are_fitted_to_single_triggers() -> None:
    runs = [
        replace(run, triggers=(run.processor_s, 1.1 * run.processor_s))
        for run in map(run_of, CASES)
    ]
    calibration = calibration_of(runs)
    assert calibration.costs == fit(runs)
    matches = [costs.match_us for costs in calibration.others]
    assert min(matches) < max(matches)
    assert calibration == calibration_of(runs)


@pytest.mark.parametrize(("others_s", "overlap"), [(0.0, 0.25), (4.0, 0.5), (7.0, 1.0)])
def test_cores_that_others_use_are_not_idle(others_s: float, overlap: float) -> None:
    """Two processor seconds in four seconds of two cores, of which others take some."""
    run = run_of(CASES[0])
    busy = replace(run, processor_s=2.0, wall_s=4.0, cores=2, others_s=others_s)
    assert busy.overlap == overlap
    longest = [replace(run_of(case), processor_s=1.0) for case in CASES[1:]]
    assert fit([busy, *longest]).overlap == overlap


def test_costs_are_never_negative() -> None:
    noisy = [
        Measurement(case, 1.0 + 0.1 * (number % 2), 1.0, 1.0, 1, 1.0, 1.0, 2.0)
        for number, case in enumerate(CASES)
    ]
    assert min(fit(noisy).to_dict().values()) >= 0


@pytest.mark.spark
def test_the_model_knows_how_much_a_bucket_remembers() -> None:
    from tidings.spark.state_stage import bucket  # noqa: PLC0415 - it loads Spark

    memory = bucket.IdMemory(1)
    memory.add(bucket.hash_ids(["a"]), np.zeros(1, np.int64))
    assert sum(column.nbytes for column in memory.columns().values()) == model.ID_BYTES
    assert bucket.CAPACITY == model.CAPACITY


@pytest.mark.spark
def test_a_run_measures_time_and_bytes(spark: "SparkSession") -> None:
    run = measure(Case(600, 200, 5.0, 40), Policy(k=3, window=Sliding(10)))
    assert run.processor_s > 0
    assert run.wall_s > 0
    assert run.build_s > 0
    assert run.index_bytes > 600 * 20
    assert run.state_bytes > run.id_bytes > 0
    assert 0 < run.held <= 200 * 10
    assert len(run.triggers) == COUNTED
    assert 0 < run.overlap <= 1
    assert run.cores == spark.sparkContext.defaultParallelism
