"""The sender of a person's channel: deliveries that are due together, in one message.

A message is fixed in the store before it is sent. So one that is sent again after a crash has the
same deliveries and the same id, and every delivery is in exactly one message.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Final, NamedTuple, Protocol

from tidings.channels.group_commit import GroupCommit
from tidings.channels.person_channel import PersonChannel
from tidings.channels.sender import SENT, Message, Outcome, Status, delivery_key
from tidings.model.records import Delivery
from tidings.model.values import SECOND_US
from tidings.store.channels import Channels
from tidings.store.digests import MOST_REFUSED, Digests, FixedDigest
from tidings.store.digests import SENT as RESULT_SENT
from tidings.store.notifications import Notifications
from tidings.store.protocol import Transactions

_SKIPPED: Final = Outcome(Status.SKIPPED)
_OUTDATED: Final = Outcome(Status.LATER)
"""The channel has moved on since its page was read: it is to be read again, at once."""
_STOPPING: Final = (Status.LATER, Status.FAILED, Status.GONE)
_PAGE: Final = 500
_GIVE_UP_US: Final = 3 * 86_400 * SECOND_US
_LONGEST_PAUSE_US: Final = 3_600 * SECOND_US


class _State(NamedTuple):
    """How far a channel has come, and its last message."""

    reached: int
    newest: FixedDigest | None

    def has_decided(self, sequence: int) -> bool:
        """Return whether a delivery was sent, skipped, or considered for a message."""
        upto = self.reached if self.newest is None else max(self.reached, self.newest.last)
        return sequence <= upto


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
    commits: GroupCommit
    transport: DigestTransport
    clock: Callable[[], float]
    batch: int = 200
    in_order: bool = True
    rate: float | None = None

    async def send(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """Send what is due; report when the others are due."""
        known = [message.delivery for message in messages]
        state = await self.commits.read(self._state)
        if state is None or known[0].sequence <= state.reached:
            is_retried = await self.commits.read(partial(self._is_retried, known))
            return await self._send_again(known) if is_retried else [_OUTDATED] * len(messages)
        newest = digest = state.newest
        outcomes = list[Outcome]()
        for number, delivery in enumerate(known):
            deliveries = None
            if digest is None or not digest.covers(delivery.sequence):
                if newest is not None and delivery.sequence <= newest.last:
                    # Decided about before a crash, whatever the channel takes by now.
                    fixed = await self.commits.read(partial(self._covering, delivery))
                elif not self.person.takes(delivery):
                    fixed = None
                else:
                    due_us = self._due_us(delivery, newest)
                    if due_us > self._now_us():
                        later = Outcome(Status.LATER, until_us=due_us)
                        return _padded(outcomes, later, len(messages))
                    fix = partial(self._fix, known[number:], newest)
                    fixed, deliveries = await self.commits.write(fix)
                    if fixed is None:
                        return _padded(outcomes, _OUTDATED, len(messages))
                    newest = fixed
                if fixed is None:
                    outcomes.append(_SKIPPED)
                    continue
                digest = fixed
            digest, outcome = await self._finish(digest, deliveries)
            if outcome.status in _STOPPING:
                return _padded(outcomes, outcome, len(messages))
            outcomes.append(outcome if delivery.sequence in digest.sequences else _SKIPPED)
        return outcomes

    async def close(self) -> None:
        """Release connections."""
        await self.transport.close()

    def _state(self, store: Transactions) -> _State | None:
        """Return the state of the channel, if it still exists."""
        channel = Channels(store).get(self.key)
        return None if channel is None else _State(channel.reached, Digests(store).last(self.key))

    def _is_retried(self, known: Sequence[Delivery], store: Transactions) -> bool:
        """Return whether all of some deliveries have failed, and are to be sent again."""
        sequences = {delivery.sequence for delivery in known}
        return sequences == Channels(store).retried(self.key, sequences)

    def _covering(self, delivery: Delivery, store: Transactions) -> FixedDigest | None:
        """Return the message for which a delivery was considered, included or not."""
        return Digests(store).covering(self.key, delivery.sequence)

    def _due_us(self, first: Delivery, last_digest: FixedDigest | None) -> int:
        """Return when a message with this first delivery is due."""
        if last_digest is None:
            return self.person.due_us(first, None, self._now_us())
        if first.sequence <= last_digest.upto:
            return 0
        return self.person.due_us(first, last_digest.fixed_us, self._now_us())

    def _fix(
        self, known: Sequence[Delivery], last_digest: FixedDigest | None, store: Transactions
    ) -> tuple[FixedDigest | None, list[Delivery]]:
        """Fix the message that begins with the first delivery; return it with its deliveries.

        Return no message if that is decided already: a dispatcher that was stopped for longer than
        its reservation must not put what another one has sent into a second message.
        """
        first, state = known[0].sequence, self._state(store)
        if state is None or state.has_decided(first):
            return None, []
        if last_digest is not None and first <= last_digest.upto:
            upto = last_digest.upto
        else:
            upto = Notifications(store).inbox(self.subscriber).last
        deliveries, last = self._take(known, upto, store)
        name = digest_key(deliveries)
        sequences = tuple(delivery.sequence for delivery in deliveries)
        digest = FixedDigest(self.key, first, last, upto, sequences, name, self._now_us())
        Digests(store).fix(digest)
        return digest, deliveries

    def _take(
        self, known: Sequence[Delivery], upto: int, store: Transactions
    ) -> tuple[list[Delivery], int]:
        """Return the deliveries of one message, and the last sequence that was looked at.

        `known` are deliveries without a gap, which need not be read from the store again.
        """
        deliveries, page, last = list[Delivery](), known, known[0].sequence - 1
        while True:
            for delivery in page:
                if delivery.sequence > upto or len(deliveries) == self.transport.most:
                    return deliveries, last
                last = delivery.sequence
                deliveries += [delivery] if self.person.takes(delivery) else []
            if last >= upto or not page:
                return deliveries, upto
            page = Notifications(store).after(self.subscriber, last, _PAGE)

    async def _finish(
        self, digest: FixedDigest, deliveries: Sequence[Delivery] | None
    ) -> tuple[FixedDigest, Outcome]:
        """Send a message unless it was already sent; return it with its outcome.

        Its deliveries are read from the store unless they are given.
        """
        if digest.result is not None:
            refused = Outcome(Status.REFUSED, digest.result)
            return digest, refused if digest.result else SENT
        if deliveries is None:
            deliveries = await self.commits.read(partial(self._deliveries, digest))
        outcome = SENT
        if deliveries:
            outcome = self._patient(await self.transport.send(deliveries, digest), digest)
        if outcome.status is Status.REFUSED:
            refused_before = await self.commits.read(lambda store: Digests(store).refused(self.key))
            if refused_before >= MOST_REFUSED:
                return digest, outcome._replace(status=Status.GONE)
        if outcome.status in _STOPPING:
            return digest, outcome
        result = RESULT_SENT if outcome.status is Status.SENT else outcome.reason or "refused"
        await self.commits.write(lambda store: Digests(store).note(digest, result))
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

    def _deliveries(self, digest: FixedDigest, store: Transactions) -> list[Delivery]:
        """Return the deliveries of a message, without those that were pruned in the meantime."""
        sequences, deliveries, last = set(digest.sequences), list[Delivery](), digest.first - 1
        while last < digest.last:
            page = Notifications(store).after(self.subscriber, last, _PAGE)
            deliveries += [delivery for delivery in page if delivery.sequence in sequences]
            last = page[-1].sequence if len(page) == _PAGE else digest.last
        return deliveries

    def _now_us(self) -> int:
        return int(self.clock() * SECOND_US)


def digest_key(deliveries: Sequence[Delivery]) -> str:
    """Return the idempotency key of a message: that of its delivery, or a hash of all of them."""
    keys = [delivery_key(delivery) for delivery in deliveries]
    return keys[0] if len(keys) == 1 else sha256("".join(keys).encode()).hexdigest()[:48]


def _padded(outcomes: list[Outcome], last: Outcome, size: int) -> list[Outcome]:
    """Return outcomes for all messages: those after one that stops are the same."""
    return outcomes + [last] * (size - len(outcomes))
