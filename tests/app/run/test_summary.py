"""Totals of a run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tidings.app.run.summary import EARLY_LOOK, FIRST_LOOK, BatchSummary, FirstLook, RunSummary
from tidings.model.diagnosis import Diagnosis, Finding

BATCHES = [
    BatchSummary(0, 10, 3, delivered={"bob": 1, "ann": 2}, quality={"share": 0.5}),
    BatchSummary(1, 5, 1, late=2, dead=1, delivered={"ann": 1}, quality={"share": 0.25}),
]


def plan() -> Any:
    sink = SimpleNamespace(label=str(Path("out")))
    config = SimpleNamespace(engine="local", sink=sink, renamed={})
    folder = SimpleNamespace(notes=[])
    return SimpleNamespace(config=config, refused=["one"], folder=folder)


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
        "diagnosis": None,
        "refused": 1,
        "notes": [],
        "channels": [],
        "seconds": 1.235,
        "sink": "out",
    }


def test_a_first_look_reports_once_and_not_too_early():
    told: list[Diagnosis] = []
    look = FirstLook(told.append)
    finding = Finding("attribute", "dst", "dst = 1", "no event has the attribute dst", ("s1",), 1)
    typo = Diagnosis(2000, 1, (finding,), {"attribute": 1}, 1)
    look(FIRST_LOOK - 1, lambda: typo)
    assert told == []
    look(FIRST_LOOK, lambda: typo)
    look(FIRST_LOOK + 1, lambda: typo)
    assert [found.findings for found in told] == [(finding,)]
    look = FirstLook(told.append)
    value = Finding("value", "x", "x = 1", "no event has such a value", ("s1",), 1)
    look(FIRST_LOOK, lambda: Diagnosis(2000, 1, (value,), {"value": 1}, 1))
    assert len(told) == 1  # such a value may still come


def test_a_run_without_an_end_is_looked_at_earlier_and_again():
    told: list[Diagnosis] = []
    finding = Finding("attribute", "dst", "dst = 1", "no event has the attribute dst", ("s1",), 1)
    typo = Diagnosis(EARLY_LOOK, 1, (finding,), {"attribute": 1}, 1)
    look = FirstLook(told.append, endless=True)
    look(EARLY_LOOK - 1, lambda: typo)
    assert told == []
    look(EARLY_LOOK, lambda: typo)
    look(FIRST_LOOK, lambda: typo)
    assert told == [typo]
    look = FirstLook(told.append, endless=True)
    look(EARLY_LOOK, lambda: Diagnosis(EARLY_LOOK, 1))
    look(FIRST_LOOK - 1, lambda: typo)
    assert told == [typo]
    look(FIRST_LOOK, lambda: typo)
    assert told == [typo, typo]


def test_the_diagnosis_is_that_of_the_last_batch():
    found = Diagnosis(5, 3, (), {}, unmatched=1, tried=5, examples=("s1",))
    batch = BatchSummary(0, 5, 0, diagnose=lambda: found)
    summary = RunSummary.of(plan(), [*BATCHES, batch], seconds=1)
    assert summary.to_dict()["diagnosis"]["unmatched"] == 1


def test_a_run_without_batches_has_no_quality():
    summary = RunSummary(plan())
    assert (summary.batches, summary.last, summary.quality) == (0, None, {})


def test_the_form_of_a_batch_has_its_measures_but_no_names():
    form = BatchSummary(3, 1, 1, delivered={"ann": 1}, measures={"lag_seconds": 2.0}).to_dict()
    assert form["lag_seconds"] == 2.0
    assert "delivered" not in form
