"""The replay of a recording for one subscriber: what it got, what its rules did, and why not."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tidings.engine.standing import Offered, replay
from tidings.feed.columnar.feeds import TableFeeds
from tidings.model.records import Delivery, Event, Subscription
from tidings.model.values import format_time
from tidings.policy import PAUSED, Subscriber
from tidings.rank.matcher import Matcher
from tidings.rules import Verdict
from tidings.window import Moment


class SubscriberReplay:
    """A subscriber, the publications in order and numbered, and all that became of them.

    Those that match nothing may be left out: windows do not see them.
    """

    def __init__(
        self,
        subscriber: Subscriber,
        subscriptions: Sequence[Subscription],
        events: Iterable[Event],
        until: Moment,
    ) -> None:
        self.subscriber, self.until = subscriber, until
        self.offers: list[Offered] = []
        self.deliveries: dict[str, Delivery] = {}
        self.verdicts: defaultdict[str, list[Verdict]] = defaultdict(list)
        matcher, feeds = Matcher([subscriber], subscriptions), TableFeeds()
        feeds.enrol(subscriber)
        sequence = 0
        for event in events:
            sequence = max(sequence, event.sequence or 0)
            now = Moment(event.published_us, sequence)
            for match in matcher.matches(event):
                self.offers.append(Offered(match, now))
                self._note(feeds, feeds.offer_many([(match, now)]))
            self._note(feeds, feeds.advance(now))
        self._note(feeds, feeds.advance(until))
        self.set_aside = {**matcher.set_aside, **feeds.set_aside}.get(subscriber.id)

    def _note(self, feeds: TableFeeds, deliveries: Iterable[Delivery]) -> None:
        self.deliveries.update((delivery.event, delivery) for delivery in deliveries)
        if self.subscriber.policy.rules:
            for verdict in feeds.take_verdicts().get(self.subscriber.id, ()):
                self.verdicts[verdict.event].append(verdict)

    def fate(self, event: str) -> str | None:
        """Return what became of a chosen event, in words; None if rules and pauses did nothing."""
        if self.subscriber.paused and event in self.deliveries:
            return f"dropped: {PAUSED}"
        if not self.verdicts[event]:
            return None
        last = self.verdicts[event][-1]
        if last.fate == "released":
            return f"held by {last.rule}, and released"
        if last.fate == "held" and last.until_us is not None:
            return f"held by {last.rule} until {format_time(last.until_us)}: {last.reason}"
        return f"{last.fate} by {last.rule}: {last.reason}"

    def why_not(self, event: str) -> str:
        """Return why an event that matches was not delivered, in words."""
        if self.set_aside is not None:
            return f"the subscriber is set aside: {self.set_aside}"
        if fate := self.fate(event):
            return fate
        standing = replay(self.subscriber.policy, self.offers, event, self.until)
        if standing is None:
            return "not delivered: no subscription matches"
        last = standing.choices[-1] if standing.choices else None
        place = f"; it was number {last.place:,} by rank of {last.candidates:,}" if last else ""
        return f"{standing.verdict}{place}"
