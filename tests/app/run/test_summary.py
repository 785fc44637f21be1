"""Totals of a run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tidings.app.run.summary import BatchSummary, RunSummary

BATCHES = [
    BatchSummary(0, 10, 3, delivered={"bob": 1, "ann": 2}, quality={"share": 0.5}),
    BatchSummary(1, 5, 1, late=2, dead=1, delivered={"ann": 1}, quality={"share": 0.25}),
]


def plan() -> Any:
    config = SimpleNamespace(engine="local", sink=SimpleNamespace(label=str(Path("out"))))
    return SimpleNamespace(config=config, refused=["one"])


def test_totals_are_sums_and_quality_is_that_of_the_last_batch():
    summary = RunSummary.of(plan(), BATCHES, seconds=1.23456)
    assert summary.last is BATCHES[-1]
    assert summary.to_dict() == {
        "engine": "local",
        "batches": 2,
        "events": 15,
        "deliveries": 4,
        "subscribers": {"ann": 3, "bob": 1},
        "late": 2,
        "dead_letters": 1,
        "quality": {"share": 0.25},
        "refused": 1,
        "seconds": 1.235,
        "sink": "out",
    }


def test_a_run_without_batches_has_no_quality():
    summary = RunSummary(plan())
    assert (summary.batches, summary.last, summary.quality) == (0, None, {})


def test_the_form_of_a_batch_has_its_measures_but_no_names():
    form = BatchSummary(3, 1, 1, delivered={"ann": 1}, measures={"lag_seconds": 2.0}).to_dict()
    assert form["lag_seconds"] == 2.0
    assert "delivered" not in form
