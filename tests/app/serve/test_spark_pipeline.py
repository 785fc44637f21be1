"""The pipeline on Spark: notifications, and steps that say how far it is."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.running import eventually

from tidings import Event, Subscription
from tidings.app.serve import spark_pipeline
from tidings.app.serve.config import ServeConfig
from tidings.app.serve.spark_pipeline import SparkClock, SparkSteps, run_spark_pipeline
from tidings.app.serve.supervise import Supervised
from tidings.channels.kafka import KafkaTransport
from tidings.channels.transport import DeclaredChannel
from tidings.service.durable_engine import DurableEngine
from tidings.service.pipeline import PATIENCE_US
from tidings.service.settings import ServiceSettings
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
            window = {"name": "periodic", "length": "1s"}
            store.catalogue.put({"id": "bob", "policy": {"k": 1, "window": window}})
            version = store.catalogue.put(Subscription("s3", "bob", where="n = 3"))
            eventually(lambda: store.log.last().version == version, patience_s=300)
            now = time.time()
            store.publications.accept([NewPublication(Event("e3", {"n": 3}, now))], 0)
            # Nothing is published after it: the clock ends its period.
            eventually(lambda: store.notifications.get("bob", "e3"), patience_s=300)
            eventually(lambda: (store.log.last().clock_us or 0) >= now * 10**6, patience_s=300)
            newest = store.log.index_versions()[0]
            assert (newest.source, newest.parts) == (version, 1)
        finally:
            pipeline.stop()
        follower = DurableEngine(store)
        follower.catch_up()
        assert {each.event for each in follower.engine.feed("ada")} == {"e1", "e2"}


@pytest.mark.slow
def test_a_tenant_on_spark_has_its_own_store_and_state(
    spark: object, postgres_address: str, tmp_path: Path
) -> None:
    del spark  # it marks the test
    config = tmp_path / "service.toml"
    folder, tenants = 'folder = "state"', 'spark_tenants = ["acme"]'
    config.write_text(f'[service]\nstore = "{postgres_address}"\n{folder}\n{tenants}\n')
    with open_store(postgres_address) as main, open_store(postgres_address, tenant="acme") as acme:
        for store in (main, acme):
            store.catalogue.put(Subscription("s1", "ada", where="n = 1"))
            store.publications.accept([NewPublication(Event("e1", {"n": 1}, 1))], 0)
        command = ["serve", str(config), "--only", "pipeline", "--with-parent"]
        pipeline = Supervised([*command, "--engine", "spark", "--tenant", "acme"])
        try:
            eventually(lambda: acme.notifications.get("ada", "e1"), patience_s=300)
            eventually(lambda: acme.log.last().upto == 1, patience_s=300)
        finally:
            pipeline.stop()
        assert main.notifications.inbox("ada").last == main.log.last().number == 0
    assert (tmp_path / "state.acme" / "tidings.json").exists()
    assert not (tmp_path / "state").exists()


def test_a_time_is_written_if_some_policy_needs_it_and_nothing_waits(tmp_path: Path) -> None:
    with open_store(tmp_path / "t.db") as store:
        clock, steps = SparkClock(store), SparkSteps(store)
        store.catalogue.put({"id": "ada", "policy": {"k": 2}})
        assert not clock.write_time(10**7), "no policy depends on time"
        rule = {"name": "quota", "n": 1}
        store.catalogue.put({"id": "bob", "policy": {"k": 2, "rules": [rule]}})
        assert clock.write_time(10**7)
        assert store.log.tick_us(1) == 10**7 - PATIENCE_US
        assert not clock.write_time(10**7), "it has not moved"
        store.publications.accept([NewPublication(Event("e1", {"n": 1}, 1))], 0)
        assert not clock.write_time(2 * 10**7), "a publication waits"
        steps.note(upto=1)
        assert clock.write_time(2 * 10**7)
        steps.note(clock_us=store.log.tick_us(2))
        assert store.log.last().clock_us == 2 * 10**7 - PATIENCE_US
        store.catalogue.remove("subscriber", "bob")
        assert not clock.write_time(3 * 10**7)


def test_a_step_is_written_when_something_is_new(tmp_path: Path) -> None:
    with open_store(tmp_path / "t.db") as store:
        steps = SparkSteps(store)
        for version, upto in ((None, 3), (2, None), (2, 3), (1, 1), (2, 5)):
            steps.note(version, upto)
        written = [(step.number, step.version, step.upto) for step in store.log.after(0)]
        assert written == [(1, 0, 3), (2, 2, 3), (3, 2, 5)]


def test_a_query_begins_when_the_channels_of_the_config_are_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = list[str]()

    def run_nothing(*_: Any) -> Iterator[Any]:
        with open_store(tmp_path / "t.db") as store:
            found.extend(channel.id for channel in store.channels.find())
        return iter(())

    monkeypatch.setattr(spark_pipeline, "run_spark", run_nothing)
    topic = DeclaredChannel("kafka", "topic", KafkaTransport("kafka.example:9092", "films"))
    settings = ServiceSettings(queues=(topic,))
    run_spark_pipeline(ServeConfig(f"sqlite:///{tmp_path / 't.db'}", settings=settings))
    assert found == ["topic"]
