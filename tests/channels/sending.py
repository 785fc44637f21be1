"""A dispatcher at work in tests, and deliveries for it."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from tests.service.running import PATIENCE_S
from tests.store.appender import delivery

from tidings.channels import Dispatcher, OpenSender
from tidings.channels.registry import declare, openers
from tidings.channels.transport import DeclaredChannel, Transport
from tidings.store import Store
from tidings.store.channels import ALL, Channel


def declared(kind: str, transport: Transport, name: str = "out") -> DeclaredChannel:
    """Return a channel that a config declares, which begins with all that is in the store."""
    return DeclaredChannel(kind, name, transport, start=ALL)


def deliver(store: Store, batch: int, *events: str, to: Sequence[str] = ("ada", "bob")) -> None:
    """Deliver events to subscribers in turn."""
    store.notifications.append(
        "q", batch, [delivery(to[n % len(to)], event) for n, event in enumerate(events)]
    )


@contextmanager
def sending(
    store: Store, senders: Mapping[str, OpenSender], clock: Callable[[], float] = time.time
) -> Iterator[None]:
    """Run a dispatcher in a thread."""
    dispatcher, stop = Dispatcher(store, senders, clock), threading.Event()
    thread = threading.Thread(target=dispatcher.run, args=(stop,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def send_all(store: Store, *channels: DeclaredChannel, patience_s: float = 20) -> None:
    """Send what waits, for as long as channels fail."""
    declare(store, channels, 0)
    Dispatcher(store, openers(channels)).run(threading.Event(), drain_s=patience_s)


def channel_of(store: Store, name: str = "out") -> Channel:
    """Return a channel by its id."""
    return store.channels.find(name)[0]
