"""Tenants keep their engines near the pipeline, and its log short."""

from pathlib import Path

import pytest
from tests.service.running import eventually

from tidings.model.records import Event
from tidings.service import tenant as tenants
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
