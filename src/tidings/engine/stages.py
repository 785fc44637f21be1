"""The stages in a row: who wants an event and how much, what windows hold, what is chosen."""

from collections.abc import Sequence

from tidings.engine.explain import Memory
from tidings.engine.handoff import Courier, Matched, courier
from tidings.engine.quality import Quality
from tidings.errors import TidingsError, described
from tidings.feed import Feeds
from tidings.model.records import Delivery, Event
from tidings.policy import Subscriber
from tidings.rank.matcher import Matcher
from tidings.window import Moment


class Failed(TidingsError):
    """An event that a stage could not take, for a reason that nobody foresaw."""


class Stages:
    """A matcher and feeds, wired: steps go in, deliveries come out."""

    def __init__(self, matcher: Matcher, feeds: Feeds) -> None:
        self.matcher, self.feeds, self.quality = matcher, feeds, Quality()
        self._numbered = matcher.numbered
        self._courier = courier(matcher, feeds, self.quality)

    def enrol(self, subscriber: Subscriber) -> None:
        """Take a subscriber in, with an empty window.

        The feeds go first: what they refuse leaves no trace in the matcher.
        """
        self.feeds.enrol(subscriber)
        self.matcher.subscribe(subscriber)

    def leave(self, subscriber: str) -> None:
        """Let a subscriber go, with its subscriptions and its feed."""
        owned = [each.id for each in self.matcher.subscriptions_of(subscriber)]
        if subscriber in self.matcher.subscribers:
            self._courier.forget(subscriber)
        self.matcher.unsubscribe(subscriber)
        self.feeds.drop(subscriber)
        self.quality.forget(subscriber)
        self.quality.removed(owned)

    def remove(self, subscription: str) -> None:
        """Remove a subscription."""
        self.matcher.remove(subscription)
        self.quality.removed([subscription])

    @property
    def set_aside(self) -> dict[str, str]:
        """Subscribers that are not served because their policies failed, with the reasons."""
        return {**self.matcher.set_aside, **getattr(self.feeds, "set_aside", {})}

    def match(self, events: Sequence[Event]) -> Matched:
        """Match events at once, or each alone when it is offered if they fail together."""
        found = self._way()
        try:
            return found.match(events)
        except Exception:  # noqa: BLE001 - the event that is the reason is found when it is offered
            return MatchedAlone(found, events)

    def offer(self, matched: Matched, at: int, event: Event, now: Moment) -> list[Delivery]:
        """Offer an event; refuse one that fails in a way that nobody foresaw."""
        try:
            return matched.offer(at, now)
        except Exception as error:
            raise Failed(f"event {event.id}: the stages failed: {described(error)}") from error

    def advance(self, now: Moment) -> list[Delivery]:
        """Say that the stream has come to `now`, and return what is due by then."""
        try:
            return self.feeds.advance(now)
        except TidingsError:
            raise
        except Exception as error:
            raise TidingsError(f"the feeds failed as time went on: {described(error)}") from error

    def note(self, delivered: list[Delivery], memory: Memory) -> None:
        """Remember and measure what is delivered."""
        memory.note_deliveries(delivered)
        self.quality.delivered(delivered, memory.event)

    def _way(self) -> Courier:
        """Give the courier, another one if the matcher has taken another index."""
        if self.matcher.numbered != self._numbered:
            self._numbered = self.matcher.numbered
            self._courier = courier(self.matcher, self.feeds, self.quality)
        return self._courier


class MatchedAlone:
    """Events that are matched when they are offered, each alone."""

    def __init__(self, courier: Courier, events: Sequence[Event]) -> None:
        self._courier, self._events = courier, events

    def offer(self, at: int, now: Moment) -> list[Delivery]:
        """Match the event at a place, and offer it."""
        return self._courier.match([self._events[at]]).offer(0, now)
