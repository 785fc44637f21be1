"""Channels in states that only a dispatcher brings about."""

from tidings.store import Store
from tidings.store.channels import FailedDelivery
from tidings.store.outbox import PageProgress


def fail(store: Store, key: str, failure: FailedDelivery, disabled: str | None = None) -> None:
    """Note that a channel has not taken a delivery, as a dispatcher would."""
    assert store.outbox.lease(key, "test", now_us=0, until_us=1)
    progress = PageProgress(
        failure.number, 0, failed=[failure], failures=1, reason=failure.reason, disabled=disabled
    )
    store.outbox.note(key, "test", progress)
    store.outbox.release(key, "test")
