"""The stages in a row: who wants an event and how much, what windows hold, what is chosen."""

from collections.abc import Sequence

from tidings.courier import Courier, Step, courier
from tidings.explain import Memory
from tidings.feeds import Feeds
from tidings.matching import Matcher
from tidings.model import Delivery
from tidings.policy import Subscriber
from tidings.quality import Quality


class Stages:
    """A matcher and feeds, wired: steps go in, deliveries come out."""

    def __init__(self, matcher: Matcher, feeds: Feeds) -> None:
        self.matcher, self.feeds, self.quality = matcher, feeds, Quality()
        self._numbered = matcher.numbered
        self._courier = courier(matcher, feeds, self.quality)

    def enrol(self, subscriber: Subscriber) -> None:
        """Take a subscriber in, with an empty window."""
        self.matcher.subscribe(subscriber)
        self.feeds.enrol(subscriber)

    def leave(self, subscriber: str) -> None:
        """Let a subscriber go, with its subscriptions and its feed."""
        self.matcher.unsubscribe(subscriber)
        self.feeds.drop(subscriber)
        self._courier.forget(subscriber)
        self.quality.forget(subscriber)

    def take(self, steps: Sequence[Step], memory: Memory) -> list[Delivery]:
        """Take events in order through all stages; time goes on with each step."""
        due, carried = list[Delivery](), self._way().carry(steps)
        for event, now in steps:
            if event is not None:
                memory.note(event)
            delivered = [] if event is None else next(carried)
            delivered += self.feeds.advance(now)
            memory.note_deliveries(delivered)
            self.quality.delivered(delivered, memory.event)
            due += delivered
        return due

    def _way(self) -> Courier:
        """Give the courier, another one if the matcher has taken another index."""
        if self.matcher.numbered != self._numbered:
            self._numbered = self.matcher.numbered
            self._courier = courier(self.matcher, self.feeds, self.quality)
        return self._courier
