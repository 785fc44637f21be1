"""Pipelines of all tenants, also beside one that runs on Spark."""

import threading

from tests.service.running import eventually

from tidings import Event, Subscription
from tidings.service.settings import ServiceSettings
from tidings.service.tenant_threads import start_beside_spark
from tidings.store import NewPublication, Store, open_store


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
