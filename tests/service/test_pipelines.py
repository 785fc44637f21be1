"""Pipelines of all tenants, also beside one that runs on Spark."""

import threading

from tests.service.running import eventually

from tidings import Event, Subscription
from tidings.service.pipelines import start_beside_spark
from tidings.service.settings import ServiceSettings
from tidings.store import NewPublication, Store, open_store


def publish(store: Store) -> None:
    store.catalogue.put(Subscription("s1", "ada", where="n = 1"))
    store.publications.accept([NewPublication(Event("e1", {"n": 1}, 1))], 0)


def test_beside_spark_all_tenants_but_the_default_one_are_served(address: str) -> None:
    stop = threading.Event()
    with open_store(address) as main, open_store(address, tenant="acme") as acme:
        main.tokens.create("publisher", 0, tenant="acme")
        publish(main)
        publish(acme)
        thread = start_beside_spark(address, ServiceSettings(), stop)
        eventually(lambda: acme.notifications.get("ada", "e1"))
        stop.set()
        thread.join(60)
        assert main.log.last().number == 0
