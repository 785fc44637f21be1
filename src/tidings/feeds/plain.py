"""A feed object for every subscriber: the plain form, which judges the others."""

from collections.abc import Sequence
from typing import ClassVar

from tidings.errors import InvalidSubscription
from tidings.feed import Feed
from tidings.feeds.frame import pack, unpack
from tidings.feeds.policies import kept
from tidings.feeds.protocol import Offer
from tidings.model import Delivery
from tidings.policy import Policy, Subscriber
from tidings.window import Moment


class PlainFeeds:
    """A dict of feeds. Time goes to all of them, one by one."""

    name: ClassVar[str] = "plain"

    def __init__(self) -> None:
        self._feeds: dict[str, Feed] = {}

    def __contains__(self, subscriber: str) -> bool:
        return subscriber in self._feeds

    def __len__(self) -> int:
        return len(self._feeds)

    def enrol(self, subscriber: Subscriber) -> None:
        self._feeds[subscriber.id] = Feed(subscriber)

    def drop(self, subscriber: str) -> None:
        self._feed(subscriber)
        del self._feeds[subscriber]

    def offer_many(self, offers: Sequence[Offer]) -> list[Delivery]:
        return [
            delivery
            for match, now in offers
            for delivery in self._feed(match.subscriber).offer(match, now)
        ]

    def advance(self, now: Moment) -> list[Delivery]:
        return [delivery for feed in self._feeds.values() for delivery in feed.advance(now)]

    def current(self, subscriber: str, now: Moment) -> list[Delivery]:
        return self._feed(subscriber).current(now)

    def snapshot(self) -> bytes:
        feeds = [
            [name, kept(feed.subscriber.policy), feed.snapshot()]
            for name, feed in self._feeds.items()
        ]
        return pack(self.name, {"feeds": feeds}, {})

    def restore(self, state: bytes) -> None:
        header, _ = unpack(self.name, state)
        self._feeds = {}
        for name, policy, feed in header["feeds"]:
            self.enrol(Subscriber(name, Policy(**policy)))
            self._feeds[name].restore(feed)

    def _feed(self, subscriber: str) -> Feed:
        if subscriber not in self._feeds:
            raise InvalidSubscription(f"there is no subscriber {subscriber!r}")
        return self._feeds[subscriber]
