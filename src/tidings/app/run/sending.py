"""The channels of a run: deliveries are sent while it runs, and the rest when it ends."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event as Flag
from threading import Thread
from typing import Any, Final

from tidings.app.config import Config
from tidings.channels import Dispatcher
from tidings.channels.address_book import declare_entries, shown_address
from tidings.channels.person_senders import person_openers
from tidings.channels.registry import declare, openers
from tidings.errors import StoreError
from tidings.model.values import SECOND_US
from tidings.store import Store, open_store
from tidings.store.address import DEFAULT_TENANT
from tidings.store.channels import Channel, next_time

DRAIN_S: Final = 15.0
"""How long a failing channel is retried at the end of a run. This is longer than the reservation of
a dispatcher that was killed."""


@dataclass(frozen=True)
class ChannelReport:
    """The progress of a channel during a run: how much is sent and waiting, and why it fails.

    `next_at` is when the rest is due, if that is later: after a failure, or in a digest. The newest
    message that was given up has the `given_up_reason`.
    """

    id: str
    kind: str
    target: str
    sent: int
    waiting: int
    given_up: int
    reason: str | None
    next_at: str | None = None
    given_up_reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return vars(self).copy()


class RunChannels:
    """The channels of a run, and their dispatcher in a thread."""

    def __init__(self, store: Store, config: Config) -> None:
        self._store, self._config = store, config
        self._targets = dict(_declare_all(store, config))
        self._sent_before = {key: self._state(key).sent for key in self._targets}
        self.reports: list[ChannelReport] = []
        self._stop = Flag()
        self._thread = Thread(
            target=self._dispatcher().run, args=(self._stop,), name="channels", daemon=True
        )
        self._thread.start()

    def drain(self, stop: Flag | None = None) -> None:
        """Send the rest, and report; failing channels are left to the next run."""
        self.stop()
        self._dispatcher().run(stop or Flag(), DRAIN_S)
        self.reports = [self._report(self._state(key)) for key in self._targets]

    def stop(self) -> None:
        """Stop once the messages being sent are done."""
        self._stop.set()
        self._thread.join()

    def _dispatcher(self) -> Dispatcher:
        senders = openers(self._config.channels)
        if self._config.people is not None:
            senders |= person_openers(self._store, DEFAULT_TENANT, self._config.people.settings)
        return Dispatcher(self._store, senders)

    def _state(self, key: str) -> Channel:
        channel = self._store.channels.get(key)
        if channel is None:
            raise StoreError("a channel of this run was removed during the run")
        return channel

    def _report(self, channel: Channel) -> ChannelReport:
        backlog = self._store.channels.backlog(channel.key)
        return ChannelReport(
            channel.id,
            channel.kind,
            self._targets[channel.key],
            channel.sent - self._sent_before[channel.key],
            backlog.waiting + backlog.retrying,
            backlog.given_up,
            channel.disabled or channel.reason,
            next_time(channel),
            self._store.channels.given_up_reason(channel.key),
        )


def _declare_all(store: Store, config: Config) -> Iterator[tuple[str, str]]:
    """Declare the channels and the people of a config; yield the key and the target of each."""
    now_us = time.time_ns() * SECOND_US // 10**9
    declare(store, config.channels, now_us)
    for declared in config.channels:
        yield store.channels.find(declared.id, kind=declared.kind)[0].key, declared.transport.label
    if config.people is not None:
        for channel in declare_entries(store, config.people.entries, now_us):
            yield channel.key, shown_address(channel)


@contextmanager
def sending(config: Config, stop: Flag | None = None) -> Iterator[RunChannels | None]:
    """Send to the channels of a config while the body writes deliveries, and then the rest.

    If the flag is set, the rest is left to the next run. After an error, only messages that are
    being sent are finished; the outbox keeps the rest.
    """
    if not config.sends:
        yield None
        return
    with open_store(config.outbox.url) as store:
        channels = RunChannels(store, config)
        try:
            yield channels
        except BaseException:
            channels.stop()
            raise
        channels.drain(stop)
