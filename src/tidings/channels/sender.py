"""The protocol of senders: messages in, outcomes out."""

import json
from collections.abc import Callable, Sequence
from enum import Enum
from hashlib import sha256
from typing import NamedTuple, Protocol

from tidings.model.records import Delivery
from tidings.store.channels import Channel


class Message(NamedTuple):
    """A delivery to be sent, and how often that has failed."""

    delivery: Delivery
    attempts: int = 0

    @property
    def key(self) -> str:
        """The idempotency key of the delivery."""
        return delivery_key(self.delivery)

    @property
    def body(self) -> str:
        """The form of the delivery, as JSON."""
        return json.dumps(self.delivery.to_dict(), ensure_ascii=False, separators=(",", ":"))


def delivery_key(delivery: Delivery) -> str:
    """Return the idempotency key, by which a receiver recognises a repeated delivery.

    It depends on the subscriber, the sequence and the event, so it is the same in every channel,
    on every attempt, and after every restart.

    >>> delivery_key(Delivery("ada", "film-1", 0.5, 1, {}, (), 7, 0))
    '80e0527f958976da734012e2076b7e8bf38ed45029ed8f9b'
    """
    text = json.dumps([delivery.subscriber, delivery.sequence, delivery.event])
    return sha256(text.encode()).hexdigest()[:48]


class Status(Enum):
    """The status of a message."""

    SENT = "sent"
    SKIPPED = "skipped"
    """The message is not for this channel: treated as sent, but not counted."""
    LATER = "later"
    """It is too early: this message and those after it wait until a time; this is not a failure."""
    FAILED = "failed"
    """The message failed, but may succeed later."""
    AWAY = "away"
    """Nobody answers: this message and those after it wait, for up to three days, in order."""
    REFUSED = "refused"
    """The message will never succeed: it is given up, and kept with the reason."""
    GONE = "gone"
    """The receiver wants no more messages: the channel is disabled until it is resumed."""


class Outcome(NamedTuple):
    """The outcome of a message: its status, the reason, and when to send again."""

    status: Status
    reason: str = ""
    until_us: int = 0


SENT = Outcome(Status.SENT)


class Sender(Protocol):
    """Sends the messages of one channel. Only one call is in progress at a time."""

    @property
    def batch(self) -> int:
        """The maximum number of messages in one call."""

    @property
    def in_order(self) -> bool:
        """Whether messages wait for those before them.

        If not, a failed message is skipped, retried later, and given up after days.
        """

    @property
    def rate(self) -> float | None:
        """The maximum number of messages per second, or None for no limit."""

    async def send(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """Send messages, in order; return the outcome of each, within half a minute.

        A failure of the whole call may be raised as a `TidingsError` instead.
        """

    async def close(self) -> None:
        """Release connections."""


OpenSender = Callable[[Channel], Sender | None]
"""Returns the sender of a channel; None if this process does not serve it.

It is called again when the settings of the channel have changed. A `TidingsError` is a failure of
the channel, which is tried again.
"""
