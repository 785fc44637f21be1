"""Cohorts whose distance kernels do not know: an object a subscriber, asked by `Feed`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from tidings.compiled.array_types import Int32s, Int64s
from tidings.errors import described
from tidings.feed.single import Feed
from tidings.model import named_parts
from tidings.model.records import Delivery, Match
from tidings.policy import Policy, Subscriber
from tidings.window import Moment

T = TypeVar("T")


class ObjectCohort:
    """The feeds of one policy, by the numbers of their subscribers."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.feeds: dict[int, Feed] = {}
        self.failed: dict[int, str] = {}
        timed = policy.window.name in ("periodic", "jumping")
        self.timed = timed or not named_parts.is_registered(policy.window)

    def __len__(self) -> int:
        return len(self.feeds)

    def enrol(self, number: int, subscriber: str) -> int:
        """Open an empty feed; its row is the subscriber's number."""
        self.feeds[number] = Feed(Subscriber(subscriber, self.policy))
        return number

    def enrol_many(self, numbers: Int64s, subscribers: Sequence[str]) -> Int32s:
        """Open many, or none if one fails."""
        pairs = zip(numbers.tolist(), subscribers, strict=True)
        self.feeds.update({n: Feed(Subscriber(name, self.policy)) for n, name in pairs})
        return np.asarray(numbers, np.int32)

    def drop(self, row: int) -> None:
        """Close a feed."""
        del self.feeds[row]
        self.failed.pop(row, None)

    def reset(self, row: int) -> None:
        """Empty a feed."""
        self.feeds[row] = Feed(self.feeds[row].subscriber)

    def offer(self, row: int, match: Match, now: Moment) -> list[Delivery]:
        """Offer a match to one of them."""
        return self._asked(row, lambda feed: feed.offer(match, now), [])

    def advance(self, now: Moment) -> Iterator[tuple[int, list[Delivery]]]:
        """Give what is due by `now`, if these windows do anything as time passes."""
        for number in list(self.feeds) if self.timed else ():
            yield number, self._asked(number, lambda feed: feed.advance(now), [])

    def current(self, row: int, now: Moment) -> list[Delivery]:
        """Return the list of one of them as it stands."""
        return self._asked(row, lambda feed: feed.current(now), [])

    def snapshot(self, numbers: Int64s) -> dict[str, Any]:
        """Give the state of some as JSON, by the ids of the subscribers."""
        found = {}
        for number in numbers.tolist():
            state = self._asked(number, lambda feed: feed.snapshot(), None)
            feed = self.feeds[number]
            found[feed.subscriber.id] = feed.snapshot() if state is None else state
        return found

    def _asked(self, row: int, ask: Callable[[Feed], T], otherwise: T) -> T:
        """Ask a feed; one whose policy fails is emptied, and noted in `failed`."""
        try:
            return ask(self.feeds[row])
        except Exception as error:  # noqa: BLE001 - parts of somebody's own may raise anything
            self.failed[row] = described(error)
            self.reset(row)
            return otherwise

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot of some, once they are enrolled."""
        for feed in self.feeds.values():
            if feed.subscriber.id in state:
                feed.restore(state[feed.subscriber.id])
