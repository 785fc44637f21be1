"""The dispatcher: sends the outbox of a store through its channels, at least once.

Each channel is served on its own, so one that is down delays only itself. Several dispatchers may
run over one store: a channel is reserved by one of them at a time, and the reservation of one that
dies expires after a few seconds.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from secrets import token_hex
from threading import Event as Flag
from traceback import format_tb
from typing import Final

from tidings.channels.group_commit import GroupCommit
from tidings.channels.progress import channel_failed, progress_of
from tidings.channels.sender import Message, OpenSender, Outcome, Sender, Status
from tidings.errors import StoreError, TidingsError, described, shown
from tidings.model.values import SECOND_US
from tidings.store import Store
from tidings.store.channels import Channel, Channels
from tidings.store.outbox import Outbox, OutboxEntry, PageProgress
from tidings.store.protocol import Transactions

_LOG: Final = logging.getLogger(__name__)
_TURN_S: Final = 20.0
"""How long one channel is served before others get their turn."""
_LEASE_S: Final = 10.0
_RENEW_EVERY_S: Final = 2.5
_AT_ONCE: Final = 64
_LISTED: Final = 1_000
"""Channels that one query of the store lists; the more there are, the longer it takes."""
_THREADS: Final = 2 * _AT_ONCE
"""Enough for channels that all wait for a receiver or a name server to leave some to others."""
_LOOK_EVERY_S: Final = 1.0
_PAUSES: Final = 3
"""The pause between queries of the store, as a multiple of the time that the last one took."""
_LONGEST_PAUSE_S: Final = 0.1
_GRACE_S: Final = 5.0
_PRUNED: Final = Outcome(Status.REFUSED, "the notification was pruned")


@dataclass
class SendRate:
    """A token bucket for the messages of one second."""

    rate: float | None
    tokens: float = 1.0
    filled_at: float = 0.0

    def most(self, count: int, now: float) -> int:
        """Return how many of `count` messages may be sent now."""
        if self.rate is None:
            return count
        gained = (now - self.filled_at) * self.rate
        self.tokens = min(max(1.0, self.rate), self.tokens + gained)
        self.filled_at = now
        return min(count, int(self.tokens))

    def take(self, count: int) -> None:
        """Count messages that were sent."""
        if self.rate is not None:
            self.tokens -= count

    @property
    def wait_s(self) -> float:
        """How long to wait until one more message may be sent."""
        return 0.0 if self.rate is None else max(0.0, (1.0 - self.tokens) / self.rate)


@dataclass
class OpenChannel:
    """A channel with its sender, as long as its settings stay the same."""

    settings: Mapping[str, object]
    sender: Sender
    limit: SendRate


class Dispatcher:
    """The sender of a tenant's channels, of the kinds that it has an opener for."""

    def __init__(
        self,
        store: Store,
        openers: Mapping[str, OpenSender],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._openers, self._clock = store, openers, clock
        self._owner = token_hex(8)
        self._commits = GroupCommit(store.database)
        self._open = dict[str, OpenChannel]()
        self._of_others = dict[str, Mapping[str, object]]()
        self._next = deque[str]()
        self._listed_at = 0.0
        self._tasks = dict[str, asyncio.Task[None]]()

    def run(self, stop: Flag, drain_s: float | None = None) -> None:
        """Send until the flag is set.

        With `drain_s`, end as soon as everything is sent; a channel that fails is tried for as
        many seconds.
        """
        asyncio.run(self._run(stop, drain_s))

    async def _run(self, stop: Flag, drain_s: float | None) -> None:
        threads = ThreadPoolExecutor(_THREADS, "channels")
        asyncio.get_running_loop().set_default_executor(threads)
        watch = self._store.database.watch()
        heartbeat = asyncio.create_task(self._renew())
        began = time.monotonic()
        try:
            while not stop.is_set():
                try:
                    looked_s = await self._start_due(stop)
                    if drain_s is not None and await self._is_drained(began + drain_s):
                        break
                    await asyncio.sleep(min(_LONGEST_PAUSE_S, _PAUSES * looked_s))
                    await asyncio.to_thread(watch.wait, _LOOK_EVERY_S)
                except StoreError as error:
                    _LOG.warning("channels wait for the store: %s", error)
                    await asyncio.to_thread(stop.wait, _LOOK_EVERY_S)
            if self._tasks:
                await asyncio.wait(self._tasks.values(), timeout=_GRACE_S)
        finally:
            self._next.clear()
            running = [heartbeat, *self._tasks.values()]
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await asyncio.gather(
                *(channel.sender.close() for channel in self._open.values()), return_exceptions=True
            )
            watch.close()

    async def _renew(self) -> None:
        """Keep the reservations of the channels that are being served."""
        while True:
            await asyncio.sleep(_RENEW_EVERY_S)
            if self._tasks:
                with suppress(StoreError):  # those that serve them report it
                    served = (self._owner, tuple(self._tasks), self._lease_end_us())
                    await asyncio.to_thread(self._store.outbox.renew, *served)

    async def _start_due(self, stop: Flag) -> float:
        """Serve channels that are due, as many as there is room for.

        Return how many seconds it took to look for them, if that was needed.
        """
        began = time.monotonic()
        if len(self._tasks) < _AT_ONCE and (
            not self._next or began - self._listed_at > _LOOK_EVERY_S
        ):
            due = await self._due(_LISTED)
            self._listed_at = time.monotonic()
            self._next = deque(channel.key for channel in due if channel.key not in self._tasks)
        self._start_next(stop)
        return time.monotonic() - began

    def _start_next(self, stop: Flag) -> None:
        while self._next and len(self._tasks) < _AT_ONCE and not stop.is_set():
            key = self._next.popleft()
            if key not in self._tasks:
                self._tasks[key] = asyncio.create_task(self._serve(key, stop))
                self._tasks[key].add_done_callback(lambda _, key=key: self._served(key, stop))  # type: ignore[misc]

    def _served(self, key: str, stop: Flag) -> None:
        del self._tasks[key]
        self._start_next(stop)

    async def _due(self, most: int) -> list[Channel]:
        """Return the first channels that have something to send, except those that others serve."""
        kinds, limit = tuple(self._openers), most + len(self._of_others)
        due = await asyncio.to_thread(self._store.outbox.due, kinds, self._now_us(), limit)
        return [channel for channel in due if self._of_others.get(channel.key) != channel.settings]

    async def _is_drained(self, deadline: float) -> bool:
        """Return whether nothing is left to send, or the rest has failed for too long."""
        if self._tasks or self._next:
            return False
        if await self._due(1):
            return False
        if time.monotonic() >= deadline:
            return True
        unfinished = self._store.outbox.unfinished
        return not await asyncio.to_thread(unfinished, tuple(self._openers), self._now_us())

    async def _serve(self, key: str, stop: Flag) -> None:
        """Send the due messages of one channel, until it backs off or its turn is over."""
        ends = time.monotonic() + _TURN_S
        lease = (key, self._owner, self._now_us(), self._lease_end_us())
        try:
            channel = await self._commits.write(lambda store: Outbox(store).lease(*lease))
            while channel is not None and time.monotonic() < ends and not stop.is_set():
                channel = await self._serve_page(channel)
            if channel is not None:
                await self._release(key)
        except StoreError as error:
            # Its reservation expires: until then, the store is not asked again.
            _LOG.warning("channel %s waits for the store: %s", key, error)

    async def _serve_page(self, channel: Channel) -> Channel | None:
        """Send one page; return the channel if it may have another one, or else release it."""
        try:
            opened = await self._opened(channel)
            if opened is None:
                await self._release(channel.key)
                return None
            limit = opened.limit.most(opened.sender.batch, time.monotonic())
            if not limit:
                await asyncio.sleep(min(opened.limit.wait_s, _LOOK_EVERY_S))
                return channel
            now_us = self._now_us()
            page = await self._commits.read(
                lambda store: Outbox(store).page(channel, now_us, limit)
            )
            if not page.entries and page.upto == channel.reached:
                await self._release(channel.key)
                return None
            opened.limit.take(len(page.entries))
            outcomes = await _send(opened.sender, page.entries)
        except StoreError:
            raise
        except TidingsError as error:
            failed = channel_failed(channel, described(error), self._now_us())
            return await self._note(channel, failed)
        except Exception as error:  # noqa: BLE001 - a sender must not stop those of other channels
            # Where, but not what it says, which may be a secret.
            _LOG.debug("channel %s\n%s", channel.id, "".join(format_tb(error.__traceback__)))
            reason = f"unexpected {type(error).__name__}"
            return await self._note(channel, channel_failed(channel, reason, self._now_us()))
        in_order = opened.sender.in_order
        progress = progress_of(channel, page, outcomes, in_order=in_order, now_us=self._now_us())
        # One that is not full is the last, unless it holds what is sent again.
        is_last = page.upto > channel.reached and len(page.entries) < limit
        return await self._note(channel, progress, is_last=is_last)

    async def _opened(self, channel: Channel) -> OpenChannel | None:
        """Return the sender of a channel, opened again if its settings have changed."""
        opened = self._open.get(channel.key)
        if opened is not None and opened.settings == channel.settings:
            return opened
        if opened is not None:
            del self._open[channel.key]
            await opened.sender.close()
        sender = await asyncio.to_thread(self._openers[channel.kind], channel)
        if sender is None:
            self._of_others[channel.key] = channel.settings
            return None
        opened = OpenChannel(channel.settings, sender, SendRate(sender.rate))
        self._open[channel.key] = opened
        return opened

    async def _note(
        self, channel: Channel, progress: PageProgress, *, is_last: bool = False
    ) -> Channel | None:
        """Record the outcome of a page; return the channel if it continues, or else release it."""
        _log(channel, progress)

        def note(store: Transactions) -> Channel | None:
            outbox, noted = Outbox(store), _without_stale_backoff(store, channel, progress)
            going = outbox.note(channel.key, self._owner, noted)
            if going is not None and noted.next_us == 0 and not is_last:
                return going
            outbox.release(channel.key, self._owner)
            return None

        return await self._commits.write(note)

    async def _release(self, key: str) -> None:
        await self._commits.write(lambda store: Outbox(store).release(key, self._owner))

    def _lease_end_us(self) -> int:
        return self._now_us() + int(_LEASE_S * SECOND_US)

    def _now_us(self) -> int:
        return int(self._clock() * SECOND_US)


def _without_stale_backoff(
    store: Transactions, channel: Channel, progress: PageProgress
) -> PageProgress:
    """Return the progress without its back-off if the channel's settings changed meanwhile.

    The reason to back off belongs to the old settings, such as an address not yet verified.
    """
    if not (progress.next_us or progress.disabled):
        return progress
    current = Channels(store).get(channel.key)
    if current is None or current.settings == channel.settings:
        return progress
    return replace(progress, failures=0, reason=None, next_us=0, disabled=None)


def _log(channel: Channel, progress: PageProgress) -> None:
    """Log what went wrong with a page, without repeating the same failure as a warning."""
    owner = "" if channel.subscriber is None else f" of {shown(channel.subscriber)}"
    if progress.failures:
        count, reason = progress.failures, progress.reason
        is_news = count == 1 or progress.disabled
        level = logging.WARNING if is_news else logging.INFO
        _LOG.log(level, "channel %s%s, failure %d: %s", channel.id, owner, count, reason)
    given_up = [failed for failed in progress.failed if failed.next_us is None]
    if given_up:
        count, reason = len(given_up), given_up[-1].reason
        _LOG.warning("channel %s%s, messages given up: %d: %s", channel.id, owner, count, reason)


async def _send(sender: Sender, entries: Sequence[OutboxEntry]) -> list[Outcome]:
    """Send the entries that are still there; return the outcome of each."""
    messages = [Message(entry.delivery, entry.attempts) for entry in entries if entry.delivery]
    outcomes = iter(await sender.send(messages) if messages else ())
    return [_PRUNED if entry.delivery is None else next(outcomes) for entry in entries]
