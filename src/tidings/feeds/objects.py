"""Cohorts whose distance kernels do not know: an object a subscriber, asked by `Feed`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.feed import Feed
from tidings.model import Delivery, Match
from tidings.policy import Policy, Subscriber
from tidings.window import Moment

Ids = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]


class ObjectCohort:
    """The feeds of one policy, by the numbers of their subscribers."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.feeds: dict[int, Feed] = {}
        self.timed = policy.window.name in ("periodic", "jumping")

    def __len__(self) -> int:
        return len(self.feeds)

    def enrol(self, number: int, subscriber: str) -> int:
        """Open an empty feed; its row is the subscriber's number."""
        self.feeds[number] = Feed(Subscriber(subscriber, self.policy))
        return number

    def enrol_many(self, numbers: Ints, subscribers: Sequence[str]) -> Ids:
        """Open many."""
        pairs = zip(numbers.tolist(), subscribers, strict=True)
        return np.array([self.enrol(*pair) for pair in pairs], np.int32)

    def drop(self, row: int) -> None:
        """Close a feed."""
        del self.feeds[row]

    def offer(self, row: int, match: Match, now: Moment) -> list[Delivery]:
        """Offer a match to one of them."""
        return self.feeds[row].offer(match, now)

    def advance(self, now: Moment) -> Iterator[tuple[int, list[Delivery]]]:
        """Give what is due by `now`, if these windows do anything as time passes."""
        for number, feed in self.feeds.items() if self.timed else ():
            yield number, feed.advance(now)

    def snapshot(self, numbers: Ints) -> dict[str, Any]:
        """Give the state of some as JSON, by the ids of the subscribers."""
        some = (self.feeds[number] for number in numbers.tolist())
        return {feed.subscriber.id: feed.snapshot() for feed in some}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot of some, once they are enrolled."""
        for feed in self.feeds.values():
            if feed.subscriber.id in state:
                feed.restore(state[feed.subscriber.id])
