"""Few subscribers, subscriptions and deliveries, so that equal ids are common."""

from typing import Any

from hypothesis import strategies as st
from tests.store.appender import batch_of, delivery

from tidings.store import Store

USERS = ["u0", "u1", "u2"]
NAMES = ["a", "b", "ä\0", "ab"]
WHERES = ["genre = 'drama'", "year >= 2003", "title like 'it''s %'"]

names = st.sampled_from(NAMES)
ids = st.sampled_from(["s1", "s2", "s3", "\x1a0"])
subscribers = st.builds(lambda name, k: {"id": name, "policy": {"k": k}}, names, st.integers(1, 2))
subscriptions = st.builds(
    lambda name, owner, where: {"id": name, "subscriber": owner, "where": where},
    ids,
    names,
    st.sampled_from(WHERES),
)
records = st.one_of(subscribers, subscriptions)


def kind_of(form: dict[str, Any]) -> str:
    return "subscription" if "subscriber" in form else "subscriber"


deliveries = st.builds(
    delivery, names, st.sampled_from(["e1", "e2", "e3", "e\0"]), st.integers(0, 9)
)


def undisturbed(batches: int, size: int = 20) -> dict[str, list[tuple[int, str]]]:
    """Return the deliveries of batches by the definition: each event once, in order."""
    inboxes: dict[str, dict[str, None]] = {}
    for number in range(batches):
        for delivered in batch_of(number, size):
            inboxes.setdefault(delivered.subscriber, {}).setdefault(delivered.event)
    return {name: list(enumerate(events, start=1)) for name, events in inboxes.items()}


def delivered(store: Store, subscriber: str) -> list[tuple[int, str]]:
    """Return all notifications of a subscriber, in order."""
    return [(d.sequence, d.event) for d in store.notifications.after(subscriber, limit=10_000)]
