"""What the feeds of all subscribers do together, however they keep their state."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

from tidings.model.records import Delivery, Match
from tidings.policy import Subscriber
from tidings.window import Moment

Offer = tuple[Match, Moment]
"""A match, at the time of its publication and the number of publications by then."""


class Feeds(Protocol):
    """The feeds of many subscribers; an event is offered to each of them at most once.

    Matches are offered in order of publication. Deliveries come in the order of the offers; those
    that are due because time has passed, in the order in which their subscribers were enrolled.
    """

    name: ClassVar[str]
    set_aside: dict[str, str]
    """Subscribers whose own policy failed, and why. No match reaches them, and nothing is due to
    them, until they are enrolled again; the others get what they would get without them."""

    def __contains__(self, subscriber: str) -> bool:
        """Tell whether a subscriber is enrolled."""

    def __len__(self) -> int:
        """Give how many are enrolled."""

    def enrol(self, subscriber: Subscriber) -> None:
        """Open an empty feed, also in the place of the one that the subscriber has.

        If that fails, nothing has changed.
        """

    def drop(self, subscriber: str) -> None:
        """Close a feed and forget it."""

    def offer_many(self, offers: Sequence[Offer]) -> list[Delivery]:
        """Take matches; any split into calls delivers the same."""

    def advance(self, now: Moment) -> list[Delivery]:
        """Say that the stream has come to `now`, and give what is due by then."""

    def current(self, subscriber: str, now: Moment) -> list[Delivery]:
        """Give a subscriber's list as it stands; nothing changes."""

    def snapshot(self) -> bytes:
        """Give the whole state; that of equal states is equal."""

    def restore(self, state: bytes) -> None:
        """Go on from a snapshot, whatever was here before; that of another version is refused."""
