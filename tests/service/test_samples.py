"""Samples over time, and what they say about the pipeline."""

from pathlib import Path

from tidings import Event
from tidings.service.metrics import TenantMetrics
from tidings.service.samples import EVERY_S, KEPT, Sampler
from tidings.store import EngineStep, open_store
from tidings.store.append_batch import BatchAppend
from tidings.store.publications import NewPublication


def test_samples_are_taken_every_few_seconds_and_the_last_are_kept(tmp_path: Path) -> None:
    now = [1_000.0]
    with open_store(tmp_path / "t.db") as store:
        sampler = Sampler(store, TenantMetrics(store), clock=lambda: now[0])
        assert sampler.to_dict()["times"] == []
        for number in range(KEPT + 2):
            sampler.take_if_due()
            sampler.take()
            now[0] = 1_000.0 + (number + 1) * EVERY_S
        form = sampler.to_dict()
    assert {len(column) for column in form.values()} == {KEPT}
    assert form["times"][0] == "1970-01-01T00:16:50Z"


def test_a_pipeline_that_takes_nothing_for_long_is_stalled(tmp_path: Path) -> None:
    now = [1_000.0]
    with open_store(tmp_path / "t.db") as store:
        sampler = Sampler(store, TenantMetrics(store), clock=lambda: now[0])
        assert sampler.pipeline_state(sampler.take()) == "idle"
        store.publications.accept([NewPublication(Event(n, {}, 0)) for n in "ab"], 990_000_000)
        assert sampler.pipeline_state(sampler.take()) == "working"
        now[0] += 20
        assert sampler.pipeline_state(sampler.take()) == "stalled"
        output = BatchAppend.of("local", 1, (), late=(), dead=())
        store.log.append(EngineStep(1, None, 0, upto=1), output)
        assert sampler.pipeline_state(sampler.take()) == "working"
        assert sampler.to_dict()["lag_s"] == [0.0, 30.0]
