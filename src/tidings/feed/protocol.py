"""The protocol of feeds: what the feeds of all subscribers do together, however they are stored."""

import logging
from collections.abc import Sequence
from typing import ClassVar, Final, Protocol

from tidings.model.records import Delivery, Match
from tidings.policy import Subscriber
from tidings.rules import Verdict
from tidings.window import Moment

_LOG: Final = logging.getLogger(__name__)

Offer = tuple[Match, Moment]
"""A match, with its time of publication and the number of publications by then."""


class Feeds(Protocol):
    """The feeds of many subscribers; an event is offered to each of them at most once.

    Matches are offered in order of publication. Deliveries come in the order of the offers; those
    that are due because time has passed, in the order in which their subscribers were enrolled.
    """

    name: ClassVar[str]
    set_aside: dict[str, str]
    """Subscribers whose own policy failed, and why. They get nothing until they are enrolled again;
    the others get what they would get without them."""

    def __contains__(self, subscriber: str) -> bool:
        """Return whether a subscriber is enrolled."""

    def __len__(self) -> int:
        """Return how many subscribers are enrolled."""

    def enrol(self, subscriber: Subscriber) -> None:
        """Open an empty feed; it replaces the one that the subscriber has.

        If that fails, nothing has changed.
        """

    def replace(self, subscriber: Subscriber, now: Moment) -> None:
        """Replace the rules of an enrolled subscriber, or pause or resume it; its window stays.

        What its old rules held is offered to the new ones, and is due when time advances.
        """

    def take_verdicts(self) -> dict[str, list[Verdict]]:
        """Return the verdicts of rules on chosen events since the last call, by subscriber."""

    def drop(self, subscriber: str) -> None:
        """Close a feed and forget it."""

    def offer_many(self, offers: Sequence[Offer]) -> list[Delivery]:
        """Offer matches; any split of a stream into calls delivers the same."""

    def advance(self, now: Moment) -> list[Delivery]:
        """Move the clock to `now`; return the deliveries that are due by then."""

    def current(self, subscriber: str, now: Moment) -> list[Delivery]:
        """Return the current list of a subscriber; nothing changes."""

    def snapshot(self) -> bytes:
        """Return the whole state; equal states give equal bytes."""

    def restore(self, state: bytes) -> None:
        """Replace the state by a snapshot; one of another version is refused."""


def report_set_aside(set_aside: dict[str, str], subscriber: str, reason: str) -> None:
    """Add a subscriber to those set aside, and log a warning."""
    set_aside[subscriber] = reason
    _LOG.warning("subscriber %s is set aside until it is enrolled again: %s", subscriber, reason)
