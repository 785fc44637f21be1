"""The pipeline on Spark: notifications, and steps that say how far it is."""

from pathlib import Path

import pytest
from tests.service.running import eventually

from tidings import Event, Subscription
from tidings.app.serve.spark_pipeline import SparkSteps
from tidings.app.serve.supervise import Supervised
from tidings.service.durable_engine import DurableEngine
from tidings.store import NewPublication, open_store


@pytest.mark.spark
@pytest.mark.slow
def test_publications_are_delivered_and_followed(tmp_path: Path) -> None:
    address = str(tmp_path / "t.db")
    with open_store(address) as store:
        store.catalogue.put({"id": "ada", "policy": {"k": 2}})
        store.catalogue.put(Subscription("s1", "ada", where="n = 1"))
        store.publications.accept([NewPublication(Event("e1", {"n": 1}, 1))], 0)
        command = ["serve", address, "--only", "pipeline", "--with-parent", "--engine", "spark"]
        pipeline = Supervised(command)
        try:
            eventually(lambda: store.notifications.get("ada", "e1"), patience_s=300)
            version = store.catalogue.put(Subscription("s2", "ada", where="n = 2"))
            eventually(lambda: store.log.last().version == version, patience_s=300)
            store.publications.accept([NewPublication(Event("e2", {"n": 2}, 2))], 0)
            eventually(lambda: store.notifications.get("ada", "e2"), patience_s=300)
            eventually(lambda: store.log.last().upto == 2, patience_s=300)
        finally:
            pipeline.stop()
        follower = DurableEngine(store)
        follower.catch_up()
        assert {each.event for each in follower.engine.feed("ada")} == {"e1", "e2"}


def test_a_step_is_written_when_something_is_new(tmp_path: Path) -> None:
    with open_store(tmp_path / "t.db") as store:
        steps = SparkSteps(store)
        for version, upto in ((None, 3), (2, None), (2, 3), (1, 1), (2, 5)):
            steps.note(version, upto)
        written = [(step.number, step.version, step.upto) for step in store.log.after(0)]
        assert written == [(1, 0, 3), (2, 2, 3), (3, 2, 5)]
