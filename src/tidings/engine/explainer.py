"""Explanations of many events for one subscriber, from one replay.

They are those of an engine that published the same events to that one subscriber.
"""

from collections import defaultdict
from dataclasses import replace

from tidings.engine.explain import LATE, Explanation, complete, explain
from tidings.engine.standing import Offered, Recollection
from tidings.engine.standing import replay as replay_window
from tidings.engine.subscriber_replay import InterestReplay
from tidings.errors import InvalidPolicy
from tidings.model.records import Delivery, Event, Match
from tidings.policy import PAUSED, Subscriber
from tidings.rank.matcher import Matcher
from tidings.rules import Verdict


class Explainer:
    """The deliveries of a replay to a subscriber, and the reasons for all other matches.

    `matches` are its matches by event. `due` are the deliveries by event, which a paused subscriber
    does not get. `set_aside` says why its policy fails on these events; then nothing is due.
    """

    def __init__(self, replay: InterestReplay, subscriber: Subscriber) -> None:
        self.subscriber, self.recording = subscriber, replay.recording
        self._matcher = Matcher([subscriber], replay.subscriptions, index="scan")
        self.matches: dict[str, Match] = {}
        self.due: dict[str, Delivery] = {}
        self.set_aside: str | None = None
        self._verdicts = defaultdict[str, list[Verdict]](list)
        steps = self.recording.steps
        self._known = {step.event.id for step in steps if step.event}
        try:
            offers = replay.offers(subscriber.policy.scorer)
            self.matches = {match.event.id: match for match, _ in offers}
            result = replay.deliver(subscriber.policy, paused=subscriber.paused)
        except InvalidPolicy as error:
            self.set_aside = str(error)
            return
        self.due = {delivery.event: delivery for delivery in result.deliveries}
        for verdict in result.verdicts:
            self._verdicts[verdict.event].append(verdict)
        self.offers = [
            Offered(self.matches.get(step.event.id) if step.event else None, step.now)
            for step in steps
        ]

    def is_match(self, event: Event) -> bool:
        """Return whether a subscription matches an event, even one that came too late."""
        if event.id in self._known:
            return event.id in self.matches
        return explain(self._matcher, self.subscriber.id, event, None).rank is not None

    def explain(self, event: Event) -> Explanation:
        """Explain why the subscriber did or did not get an event of the recording."""
        due, paused = self.due.get(event.id), self.subscriber.paused
        delivery = replace(due, content_json=None) if due and not paused else None
        explanation = explain(self._matcher, self.subscriber.id, event, delivery)
        dropped = PAUSED if due and paused else None
        return complete(explanation, self.set_aside, dropped, lambda: self._recollect(event.id))

    def _recollect(self, event: str) -> Recollection:
        if event not in self._known:
            return Recollection(None, (), LATE)
        verdicts = sorted(self._verdicts.get(event, ()), key=lambda verdict: verdict.at_us)
        standing = None
        if not verdicts and event not in self.due:
            policy, now = self.subscriber.policy, self.recording.now
            standing = replay_window(policy, self.offers, event, now)
        return Recollection(standing, tuple(verdicts), None)
