"""A sample of events, with which subscriptions are compared."""

from collections.abc import Callable, Iterable
from typing import Final

from tidings.model.diagnosis import Diagnosis, diagnose
from tidings.model.profile import Profile
from tidings.model.records import Event, Subscription

KEPT: Final = 10_000
"""The most events that are kept."""
MOST_TRIALS: Final = 500_000
"""How often a subscription is tried on an event, which takes a second or two in all."""
FEWEST: Final = 100
"""With fewer events for each subscription, it is not known which ones match."""

CountsParts = Callable[[Subscription], bool]


class EventSample:
    """A profile of all events, and some of them that are spread evenly."""

    def __init__(self) -> None:
        self._profile = Profile()
        self._events: list[Event] = []
        self._stride = 1

    def add(self, event: Event) -> None:
        """Add an event."""
        if not self._profile.events % self._stride:
            self._events.append(event)
            if len(self._events) > KEPT:
                self._events, self._stride = self._events[::2], 2 * self._stride
        self._profile.add_sample([event])

    def absence(self, attribute: str) -> str | None:
        """Return in words that no event has an attribute; None if one has."""
        return self._profile.absence(attribute)

    def diagnose(self, subscriptions: Iterable[Subscription], counts: CountsParts) -> Diagnosis:
        """Compare subscriptions with the events; `counts` those that match by some predicates."""
        listed = list(subscriptions)
        room = max(FEWEST, MOST_TRIALS // max(1, len(listed)))
        events = self._events[:: -(-len(self._events) // room) or 1]
        matched = None
        if len(listed) * len(events) <= MOST_TRIALS:
            matched = {one.id for one in listed if _matches_any(one, events, parts=counts(one))}
        return diagnose(listed, self._profile, matched, counts, tried=len(events))


def _matches_any(subscription: Subscription, events: Iterable[Event], *, parts: bool) -> bool:
    matches = subscription.touches if parts else subscription.matches
    return any(map(matches, events))
