"""Tenants keep their engines near the pipeline, and its log short."""

from pathlib import Path
from threading import Event as Flag

import pytest
from tests.service.running import PATIENCE_S, client_of, eventually, pipeline_at, server_at

from tidings.model.records import Event
from tidings.service import tenant as tenants
from tidings.service.durable_engine import DurableEngine
from tidings.service.settings import ServiceSettings
from tidings.service.tenant import Tenant
from tidings.store import EngineStep, NewPublication, open_store
from tidings.store.append_batch import BatchAppend


def test_a_long_log_gets_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipeline on Spark writes steps, but its state is elsewhere."""
    monkeypatch.setattr(tenants, "_MANY_STEPS", 3)
    address = tmp_path / "tidings.db"
    tenant = Tenant("default", open_store(address), ServiceSettings())
    with open_store(address) as store:
        for number in range(1, 6):
            store.publications.accept([NewPublication(Event(f"e{number}", {}, number))], number)
            step = EngineStep(number, None, 0, number)
            assert store.log.append(step, BatchAppend.of("spark", number, [], late=[], dead=[]))
        eventually(lambda: store.log.checkpoint() is not None)
    tenant.close()
    with open_store(address) as store:
        checkpoint = store.log.checkpoint()
        assert checkpoint is not None
        assert checkpoint.step.number > 3


def test_live_streams_do_not_wait_for_steps_that_are_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, go, catch_up = str(tmp_path / "t.db"), Flag(), DurableEngine.catch_up

    def catch_up_slowly(self: DurableEngine) -> bool:
        assert go.wait(PATIENCE_S)
        return catch_up(self)

    with pipeline_at(address):  # which has caught up
        monkeypatch.setattr(tenants, "_START_S", 0.01)
        monkeypatch.setattr(DurableEngine, "catch_up", catch_up_slowly)
        with server_at(address) as server, client_of(server) as client:
            applied = {"wait": "applied"}
            client.put("/v1/subscribers/ada", json={})
            form = {"subscriber": "ada", "where": "true"}
            assert client.put("/v1/subscriptions/s1", json=form, params=applied).json()["applied"]
            client.post("/v1/events", json={"id": "e1", "attributes": {}})
            with client.sse("/v1/notifications/ada/stream") as source:
                assert '"event":"e1"' in next(event.data for event in source if event.data)
            refused = client.get("/v1/feeds/ada")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
            go.set()
            eventually(lambda: client.get("/v1/feeds/ada").status_code == 200)
