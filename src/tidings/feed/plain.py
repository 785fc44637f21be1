"""Plain feeds: one object for each subscriber. They are the reference that judges the others."""

from collections.abc import Sequence
from typing import ClassVar

from tidings.errors import InvalidSubscription, described, shown
from tidings.feed.policy_key import feed_form, read_feed_form
from tidings.feed.protocol import Offer, report_set_aside
from tidings.feed.single import Feed
from tidings.feed.snapshot_header import FRAME, pack, unpack
from tidings.formats.binary import check, reading
from tidings.model.records import Delivery
from tidings.policy import Subscriber
from tidings.rules import Verdict
from tidings.window import Moment, snapshot_fields


class PlainFeeds:
    """A dict of feeds; the clock of each is moved one by one."""

    name: ClassVar[str] = "plain"

    def __init__(self) -> None:
        self._feeds: dict[str, Feed] = {}
        self.set_aside: dict[str, str] = {}

    def __contains__(self, subscriber: str) -> bool:
        return subscriber in self._feeds

    def __len__(self) -> int:
        return len(self._feeds)

    def enrol(self, subscriber: Subscriber) -> None:
        self._feeds[subscriber.id] = Feed(subscriber)
        self.set_aside.pop(subscriber.id, None)

    def replace(self, subscriber: Subscriber, now: Moment) -> None:
        self._feed(subscriber.id).replace(subscriber, now)

    def take_verdicts(self) -> dict[str, list[Verdict]]:
        verdicts = {name: feed.take_verdicts() for name, feed in self._feeds.items()}
        return {name: listed for name, listed in verdicts.items() if listed}

    def drop(self, subscriber: str) -> None:
        self._feed(subscriber)
        del self._feeds[subscriber]
        self.set_aside.pop(subscriber, None)

    def offer_many(self, offers: Sequence[Offer]) -> list[Delivery]:
        for match, _ in offers:
            self._feed(match.subscriber).check(match)
        deliveries: list[Delivery] = []
        for match, now in offers:
            if match.subscriber not in self.set_aside:
                try:
                    deliveries += self._feeds[match.subscriber].offer(match, now)
                except Exception as error:  # noqa: BLE001 - user-defined parts may raise anything
                    self._put_aside(match.subscriber, error)
        return deliveries

    def advance(self, now: Moment) -> list[Delivery]:
        deliveries: list[Delivery] = []
        for name, feed in list(self._feeds.items()):
            try:
                deliveries += feed.advance(now)
            except Exception as error:  # noqa: BLE001 - user-defined parts may raise anything
                self._put_aside(name, error)
        return deliveries

    def current(self, subscriber: str, now: Moment) -> list[Delivery]:
        feed = self._feed(subscriber)
        try:
            return [] if subscriber in self.set_aside else feed.current(now)
        except Exception as error:  # noqa: BLE001 - user-defined parts may raise anything
            self._put_aside(subscriber, error)
            return []

    def snapshot(self) -> bytes:
        feeds = []
        for name, feed in list(self._feeds.items()):
            try:
                feeds.append([name, feed_form(feed.subscriber.policy), feed.snapshot()])
            except Exception as error:  # noqa: BLE001 - user-defined parts may raise anything
                self._put_aside(name, error)
        return pack(self.name, {"feeds": feeds}, {})

    def _put_aside(self, subscriber: str, error: Exception) -> None:
        """Set a subscriber aside: its window is emptied, and it gets no more matches."""
        self._feeds[subscriber] = Feed(self._feeds[subscriber].subscriber)
        report_set_aside(self.set_aside, subscriber, described(error))

    def restore(self, state: bytes) -> None:
        header, _ = unpack(self.name, state)
        feeds = dict[str, Feed]()
        with reading(FRAME.name):
            for name, form, feed_state in snapshot_fields.items(header, "feeds", width=3):
                subscriber = Subscriber(name, read_feed_form(form))
                check(name not in feeds, FRAME.name, f"subscriber {shown(name)} occurs twice")
                feeds[name] = Feed(subscriber)
                feeds[name].restore(feed_state)
        self._feeds, self.set_aside = feeds, {}

    def _feed(self, subscriber: str) -> Feed:
        if subscriber not in self._feeds:
            raise InvalidSubscription(f"there is no subscriber {subscriber!r}")
        return self._feeds[subscriber]
