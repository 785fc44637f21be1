"""The channels of a run: its deliveries are sent while it goes on, and the rest at its end."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event as Flag
from threading import Thread
from typing import Any, Final

from tidings.app.config import Config
from tidings.channels import Dispatcher
from tidings.channels.registry import declare, openers
from tidings.channels.transport import DeclaredChannel
from tidings.model.values import SECOND_US
from tidings.store import Store, open_store
from tidings.store.channels import Channel

DRAIN_S: Final = 15.0
"""How long a channel that fails is tried again at the end of a run.

It is longer than the reservation of a dispatcher that was killed."""


@dataclass(frozen=True)
class ChannelReport:
    """What a channel has sent during a run, and what it has not; with the reason if it fails."""

    id: str
    kind: str
    target: str
    sent: int
    waiting: int
    given_up: int
    reason: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return vars(self).copy()


class RunChannels:
    """The channels of a run, and their dispatcher in a thread."""

    def __init__(self, store: Store, declared: Sequence[DeclaredChannel]) -> None:
        self._store, self._declared = store, declared
        declare(store, declared, time.time_ns() * SECOND_US // 10**9)
        self._sent_before = {each.id: self._state(each).sent for each in declared}
        self.reports: list[ChannelReport] = []
        self._stop = Flag()
        self._thread = Thread(
            target=self._dispatcher().run, args=(self._stop,), name="channels", daemon=True
        )
        self._thread.start()

    def drain(self) -> None:
        """Send the rest, and report; a channel that fails is left to the next run."""
        self.stop()
        self._dispatcher().run(Flag(), DRAIN_S)
        self.reports = [self._report(each, self._state(each)) for each in self._declared]

    def stop(self) -> None:
        """Stop after what is being sent."""
        self._stop.set()
        self._thread.join()

    def _dispatcher(self) -> Dispatcher:
        return Dispatcher(self._store, openers(self._declared))

    def _state(self, declared: DeclaredChannel) -> Channel:
        found = self._store.channels.find(declared.id, kind=declared.kind)
        return found[0]

    def _report(self, declared: DeclaredChannel, channel: Channel) -> ChannelReport:
        backlog = self._store.channels.backlog(channel.key)
        return ChannelReport(
            channel.id,
            channel.kind,
            declared.transport.label,
            channel.sent - self._sent_before[channel.id],
            backlog.waiting + backlog.retrying,
            backlog.given_up,
            channel.disabled or channel.reason,
        )


@contextmanager
def sending(config: Config) -> Iterator[RunChannels | None]:
    """Send to the channels of a config while something else writes deliveries; then the rest.

    After an error only what is being sent is finished: the outbox keeps the rest.
    """
    if not config.channels:
        yield None
        return
    with open_store(config.outbox.url) as store:
        channels = RunChannels(store, config.channels)
        try:
            yield channels
        except BaseException:
            channels.stop()
            raise
        channels.drain()
