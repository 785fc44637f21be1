"""The sender of a person's channel: deliveries that are due together, in one message.

A message is fixed in the store before it is sent. So one that is sent again after a crash has the
same deliveries and the same id, and every delivery is in exactly one message.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Protocol

from tidings.channels.person_channel import PersonChannel
from tidings.channels.sender import SENT, Message, Outcome, Status, delivery_key
from tidings.model.records import Delivery
from tidings.model.values import SECOND_US
from tidings.store import Store
from tidings.store.digests import MOST_REFUSED, FixedDigest
from tidings.store.digests import SENT as RESULT_SENT

_SKIPPED: Final = Outcome(Status.SKIPPED)
_STOPPING: Final = (Status.LATER, Status.FAILED, Status.GONE)
_PAGE: Final = 500
_GIVE_UP_US: Final = 3 * 86_400 * SECOND_US
_LONGEST_PAUSE_US: Final = 3_600 * SECOND_US


class DigestTransport(Protocol):
    """Sends the messages of one kind of channel."""

    @property
    def most(self) -> int:
        """The maximum number of deliveries in one message."""

    async def send(self, deliveries: Sequence[Delivery], digest: FixedDigest) -> Outcome:
        """Send a message with deliveries, at least one, in order of sequence."""

    async def close(self) -> None:
        """Release connections."""


@dataclass
class DigestSender:
    """The sender of one person's channel."""

    key: str
    subscriber: str
    person: PersonChannel
    store: Store
    transport: DigestTransport
    clock: Callable[[], float]
    batch: int = 200
    in_order: bool = True
    rate: float | None = None

    async def send(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """Send what is due; report when the others are due."""
        channel = await asyncio.to_thread(self.store.channels.get, self.key)
        first = messages[0].delivery.sequence
        if channel is not None and first <= channel.reached:
            return await self._send_again([message.delivery for message in messages])
        newest = await asyncio.to_thread(self.store.digests.last, self.key)
        digest, outcomes = newest, list[Outcome]()
        for message in messages:
            delivery = message.delivery
            if digest is None or not digest.covers(delivery.sequence):
                if newest is not None and delivery.sequence <= newest.last:
                    # Decided about before a crash, whatever the channel takes by now.
                    fixed = await asyncio.to_thread(self._covering, delivery)
                elif not self.person.takes(delivery):
                    fixed = None
                else:
                    found = await asyncio.to_thread(self._fix, delivery, newest)
                    if isinstance(found, Outcome):
                        return _padded(outcomes, found, len(messages))
                    fixed = newest = found
                if fixed is None:
                    outcomes.append(_SKIPPED)
                    continue
                digest = fixed
            digest, outcome = await self._finish(digest)
            if outcome.status in _STOPPING:
                return _padded(outcomes, outcome, len(messages))
            outcomes.append(outcome if delivery.sequence in digest.sequences else _SKIPPED)
        return outcomes

    async def close(self) -> None:
        """Release connections."""
        await self.transport.close()

    def _covering(self, delivery: Delivery) -> FixedDigest | None:
        """Return the message for which a delivery was taken, or left out."""
        return self.store.digests.covering(self.key, delivery.sequence)

    def _fix(self, first: Delivery, last_digest: FixedDigest | None) -> FixedDigest | Outcome:
        """Return the message that begins with a delivery, if it is due; else when it is."""
        now_us = self._now_us()
        if last_digest is not None and first.sequence <= last_digest.upto:
            upto = last_digest.upto
        else:
            last_us = None if last_digest is None else last_digest.fixed_us
            due_us = self.person.due_us(first, last_us, now_us)
            if due_us > now_us:
                return Outcome(Status.LATER, until_us=due_us)
            upto = self.store.notifications.inbox(self.subscriber).last
        taken, last = self._take(first.sequence, upto)
        name = digest_key(taken)
        sequences = tuple(delivery.sequence for delivery in taken)
        digest = FixedDigest(self.key, first.sequence, last, upto, sequences, name, now_us)
        self.store.digests.fix(digest)
        return digest

    def _take(self, first: int, upto: int) -> tuple[list[Delivery], int]:
        """Return the deliveries of one message, and the last sequence that was looked at."""
        taken, last = list[Delivery](), first - 1
        while last < upto:
            page = self.store.notifications.after(self.subscriber, last, _PAGE)
            for delivery in page:
                if delivery.sequence > upto or len(taken) == self.transport.most:
                    return taken, last
                last = delivery.sequence
                taken += [delivery] if self.person.takes(delivery) else []
            if len(page) < _PAGE:
                return taken, upto
        return taken, last

    async def _finish(self, digest: FixedDigest) -> tuple[FixedDigest, Outcome]:
        """Send a message unless it was already sent; return it with its outcome."""
        if digest.result is not None:
            refused = Outcome(Status.REFUSED, digest.result)
            return digest, refused if digest.result else SENT
        deliveries = await asyncio.to_thread(self._deliveries, digest)
        outcome = SENT
        if deliveries:
            outcome = self._patient(await self.transport.send(deliveries, digest), digest)
        if outcome.status is Status.REFUSED:
            refused_before = await asyncio.to_thread(self.store.digests.refused, self.key)
            if refused_before >= MOST_REFUSED:
                return digest, outcome._replace(status=Status.GONE)
        if outcome.status in _STOPPING:
            return digest, outcome
        result = RESULT_SENT if outcome.status is Status.SENT else outcome.reason or "refused"
        await asyncio.to_thread(self.store.digests.note, digest, result)
        return replace(digest, result=result), outcome

    def _patient(self, outcome: Outcome, digest: FixedDigest) -> Outcome:
        """Return a failure with a pause as long as it has lasted; permanent after three days."""
        if outcome.status is not Status.FAILED:
            return outcome
        now_us = self._now_us()
        age_us = now_us - digest.fixed_us
        if age_us > _GIVE_UP_US:
            return outcome._replace(status=Status.REFUSED)
        until_us = now_us + min(max(age_us, 0), _LONGEST_PAUSE_US)
        return outcome._replace(until_us=max(until_us, outcome.until_us))

    async def _send_again(self, deliveries: list[Delivery]) -> list[Outcome]:
        """Retry at once what was given up, in separate messages."""
        outcomes = list[Outcome]()
        for start in range(0, len(deliveries), self.transport.most):
            some = deliveries[start : start + self.transport.most]
            first, last = some[0].sequence, some[-1].sequence
            sequences = tuple(delivery.sequence for delivery in some)
            name = digest_key(some)
            digest = FixedDigest(self.key, first, last, last, sequences, name, self._now_us())
            outcomes += [await self.transport.send(some, digest)] * len(some)
        return outcomes

    def _deliveries(self, digest: FixedDigest) -> list[Delivery]:
        """Return the deliveries of a message, without those that were pruned in the meantime."""
        wanted, found, last = set(digest.sequences), list[Delivery](), digest.first - 1
        while last < digest.last:
            page = self.store.notifications.after(self.subscriber, last, _PAGE)
            found += [delivery for delivery in page if delivery.sequence in wanted]
            last = page[-1].sequence if len(page) == _PAGE else digest.last
        return found

    def _now_us(self) -> int:
        return int(self.clock() * SECOND_US)


def digest_key(deliveries: Sequence[Delivery]) -> str:
    """Return the idempotency key of a message: that of its delivery, or a hash of all of them."""
    keys = [delivery_key(delivery) for delivery in deliveries]
    return keys[0] if len(keys) == 1 else sha256("".join(keys).encode()).hexdigest()[:48]


def _padded(outcomes: list[Outcome], last: Outcome, size: int) -> list[Outcome]:
    """Return outcomes for all messages: those after one that stops are the same."""
    return outcomes + [last] * (size - len(outcomes))
