"""Retention deletes what is old, and repeats nothing."""

import time

from tests.store.channel_states import fail

from tidings import Event, Subscription
from tidings.service.pipeline import Pipeline
from tidings.service.retention import Retention
from tidings.store import NewPublication, open_store
from tidings.store.channels import FailedDelivery

HOUR_S = 3_600  # seconds would depend on how busy the machine is


def test_what_is_old_is_deleted_and_not_repeated(address: str) -> None:
    with open_store(address) as store:
        store.catalogue.put({"id": "ada"}, Subscription("s1", "ada", where="true"))
        ages = {"a": 9 * HOUR_S, "b": HOUR_S}
        events = [NewPublication(Event(name, {}, time.time() - age)) for name, age in ages.items()]
        store.publications.accept(events, int((time.time() - 9 * HOUR_S) * 1e6))
        pipeline = Pipeline(store)
        while pipeline.run_once():
            pass
        pipeline.save()
        hook = store.webhooks.put("ada", "hook", "https://example.org", 0)
        for sequence in (1, 2):
            fail(store, hook.key, FailedDelivery(sequence, 9, None, "given up"))
        Retention(store, 5 * HOUR_S * 10**6).apply_if_due()
        assert [notification.event for notification in store.notifications.after("ada")] == ["b"]
        assert [failure.number for failure in store.channels.failures(hook.key)] == [2]
        assert {publication.form for publication in store.publications.after(0)} == {None}
        assert store.publications.accept(events, 0) == [False, False]
        retention = Retention(store, None)
        retention.apply_if_due()
        assert [notification.event for notification in store.notifications.after("ada")] == ["b"]
