"""All subscribers with one policy that kernels cannot run: one Python `Feed` for each.

This is the fallback for user-defined windows, decays, diversifiers and distances.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from tidings.compiled.array_types import Int32s, Int64s
from tidings.errors import described
from tidings.feed.policy_key import counts_published
from tidings.feed.single import Feed, fast_choice
from tidings.model import named_parts
from tidings.model.records import Delivery, Match
from tidings.policy import Policy, Subscriber
from tidings.window import Moment

T = TypeVar("T")


class PythonCohort:
    """The feeds of one policy, by the numbers of their subscribers.

    A feed whose policy raises is emptied, and its row is noted in `failed` with the reason.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy, self.counts_published = policy, counts_published(policy)
        self.feeds: dict[int, Feed] = {}
        self.failed: dict[int, str] = {}
        timed = policy.window.name in ("periodic", "jumping")
        self.timed = timed or bool(policy.rules) or not named_parts.is_registered(policy.window)

    def __len__(self) -> int:
        return len(self.feeds)

    def enrol(self, number: int, subscriber: str) -> int:
        """Open an empty feed; its row is the subscriber's number."""
        self.feeds[number] = self._new_feed(subscriber)
        return number

    def enrol_many(self, numbers: Int64s, subscribers: Sequence[str]) -> Int32s:
        """Open many feeds, or none if one fails."""
        pairs = zip(numbers.tolist(), subscribers, strict=True)
        self.feeds.update({number: self._new_feed(name) for number, name in pairs})
        return np.asarray(numbers, np.int32)

    def _new_feed(self, subscriber: str) -> Feed:
        return Feed(Subscriber(subscriber, self.policy), fast_choice)

    def drop(self, row: int) -> None:
        """Close a feed."""
        del self.feeds[row]
        self.failed.pop(row, None)

    def reset(self, row: int) -> None:
        """Empty a feed."""
        self.feeds[row] = self._new_feed(self.feeds[row].subscriber.id)

    def offer(self, row: int, match: Match, now: Moment) -> list[Delivery]:
        """Offer a match to one feed."""
        return self._guarded(row, lambda feed: feed.offer(match, now), [])

    def advance(self, now: Moment) -> Iterator[tuple[int, list[Delivery]]]:
        """Yield the deliveries of each feed that are due by `now`."""
        for number in list(self.feeds) if self.timed else ():
            yield number, self._guarded(number, lambda feed: feed.advance(now), [])

    def current(self, row: int, now: Moment) -> list[Delivery]:
        """Return the current list of one feed."""
        return self._guarded(row, lambda feed: feed.current(now), [])

    def snapshot(self, numbers: Int64s) -> dict[str, Any]:
        """Return the state of some feeds as JSON, by the ids of their subscribers."""
        states = {}
        for number in numbers.tolist():
            state = self._guarded(number, lambda feed: feed.snapshot(), None)
            feed = self.feeds[number]
            states[feed.subscriber.id] = feed.snapshot() if state is None else state
        return states

    def _guarded(self, row: int, call: Callable[[Feed], T], default: T) -> T:
        """Return the result of a call, or the default if the policy raises."""
        try:
            return call(self.feeds[row])
        except Exception as error:  # noqa: BLE001 - user-defined parts may raise anything
            self.failed[row] = described(error)
            self.reset(row)
            return default

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the feeds whose subscribers are in the state; they must be enrolled."""
        for feed in self.feeds.values():
            if feed.subscriber.id in state:
                feed.restore(state[feed.subscriber.id])
