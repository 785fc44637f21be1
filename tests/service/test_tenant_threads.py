"""Pipelines of all tenants, also beside one that runs on Spark."""

import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.service.running import eventually

from tidings import Event, Subscription
from tidings.channels.address_book import EntryDraft, declare_entries, put_entry
from tidings.channels.kafka import KafkaTransport
from tidings.channels.person_channel import PersonChannel
from tidings.channels.transport import DeclaredChannel
from tidings.service import tenant_threads
from tidings.service.settings import ServiceSettings
from tidings.service.tenant_threads import declare_channels, run_pipelines, start_beside_spark
from tidings.store import NewPublication, Store, open_store

CHAT = EntryDraft("ada", "chat", PersonChannel("slack", "https://chat.example/hook"), verified=True)
TOPIC = DeclaredChannel("kafka", "topic", KafkaTransport("kafka.example:9092", "films"))


def publish(store: Store) -> None:
    store.catalogue.put(Subscription("s1", "ada", where="n = 1"))
    store.publications.accept([NewPublication(Event("e1", {"n": 1}, 1))], 0)


def test_beside_spark_the_tenants_that_are_not_on_it_are_served(address: str) -> None:
    stop = threading.Event()
    with open_store(address) as main, open_store(address, tenant="acme") as acme:
        main.tokens.create("publisher", 0, tenant="acme")
        main.tokens.create("publisher", 0, tenant="large")
        with open_store(address, tenant="large") as large:
            for store in (main, large, acme):
                publish(store)
            thread = start_beside_spark(address, ServiceSettings(), stop, ["default", "large"])
            eventually(lambda: acme.notifications.get("ada", "e1"))
            stop.set()
            thread.join(60)
            assert main.log.last().number == large.log.last().number == 0


def test_a_pipeline_begins_when_the_channels_of_the_config_are_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that takes: a channel gets what is delivered after it was entered."""
    address, begun, stop = str(tmp_path / "t.db"), threading.Event(), threading.Event()
    found = list[str]()

    class Pipeline:
        def __init__(self, store: Store, *_: Any, **__: Any) -> None:
            found.extend(channel.id for channel in store.channels.find())
            begun.set()

        def run(self, stop: threading.Event) -> None:
            stop.wait()

    def declare_late(*arguments: Any) -> Any:
        begun.wait(0.5)
        return declare_entries(*arguments)

    monkeypatch.setattr(tenant_threads, "Pipeline", Pipeline)
    monkeypatch.setattr(tenant_threads, "declare_entries", declare_late)
    settings = ServiceSettings(queues=(TOPIC,), entries=(CHAT,))
    thread = threading.Thread(target=run_pipelines, args=(address, settings, stop))
    thread.start()
    assert begun.wait(60)
    stop.set()
    thread.join(60)
    assert found == ["chat", "topic"]


def test_a_channel_that_does_not_fit_what_is_stored_stops_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mail = PersonChannel("mail", "ada@films.example")
    settings = ServiceSettings(queues=(TOPIC,), entries=(CHAT, CHAT._replace(id="other")))
    with open_store(tmp_path / "t.db") as store, caplog.at_level(logging.ERROR):
        put_entry(store, EntryDraft("ada", "chat", mail), 0)
        declare_channels(store, "default", settings)
        found = {channel.id: channel.kind for channel in store.channels.find()}
    assert found == {"chat": "mail", "other": "slack", "topic": "kafka"}
    assert "channel chat of 'ada' is not entered" in caplog.text


def test_a_tenant_has_its_own_queues_and_only_the_default_one_people(tmp_path: Path) -> None:
    own = DeclaredChannel("kafka", "own", TOPIC.transport, tenant="acme")
    settings = ServiceSettings(queues=(TOPIC, own), entries=(CHAT,))
    with open_store(tmp_path / "t.db") as main, open_store(tmp_path / "a.db") as acme:
        for _ in range(2):  # a restart changes nothing
            declare_channels(main, "default", settings)
            declare_channels(acme, "acme", settings)
            assert [channel.id for channel in main.channels.find()] == ["chat", "topic"]
            assert [channel.id for channel in acme.channels.find()] == ["own"]
