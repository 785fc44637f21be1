"""Explanations of many events for one subscriber, from one replay.

They are those of an engine that published the same events to that one subscriber.
"""

from collections import defaultdict
from dataclasses import replace

from tidings.engine.explain import Explanation, explain
from tidings.engine.standing import Offered
from tidings.engine.standing import replay as replay_window
from tidings.engine.subscriber_replay import InterestReplay
from tidings.errors import InvalidPolicy
from tidings.model.records import Delivery, Event, Match
from tidings.policy import PAUSED, Subscriber
from tidings.rank.matcher import Matcher
from tidings.rules import Verdict

LATE = "it arrived too late, and was not offered to subscribers"


class Explainer:
    """What a subscriber got from a replay, and why; `matches` are its matches by event."""

    def __init__(self, replay: InterestReplay, subscriber: Subscriber) -> None:
        self._subscriber = subscriber
        self._matcher = Matcher([subscriber], replay.subscriptions, index="scan")
        self._recording = replay.recording
        self.matches: dict[str, Match] = {}
        self._chosen: dict[str, Delivery] = {}
        self._verdicts = defaultdict[str, list[Verdict]](list)
        self._aside: str | None = None
        try:
            offers = replay.offers(subscriber.policy.scorer)
            self.matches = {match.event.id: match for match, _ in offers}
            result = replay.run(subscriber.policy, paused=subscriber.paused)
        except InvalidPolicy as error:
            self._aside = str(error)
            return
        self._chosen = {delivery.event: delivery for delivery in result.deliveries}
        for verdict in result.verdicts:
            self._verdicts[verdict.event].append(verdict)
        steps = self._recording.steps
        self._known = {step.event.id for step in steps if step.event}
        self._offers = [
            Offered(self.matches.get(step.event.id) if step.event else None, step.now)
            for step in steps
        ]

    def explain(self, event: Event) -> Explanation:
        """Explain why the subscriber did or did not get an event of the recording."""
        chosen = self._chosen.get(event.id)
        paused = self._subscriber.paused
        delivery = replace(chosen, content_json=None) if chosen and not paused else None
        explanation = explain(self._matcher, self._subscriber.id, event, delivery)
        if self._aside is not None:
            return replace(explanation, note=f"the subscriber is set aside: {self._aside}")
        if explanation.rank is None:
            return explanation
        if event.id not in self._known:
            return replace(explanation, note=LATE)
        if chosen and paused:
            explanation = replace(explanation, dropped=PAUSED)
        verdicts = sorted(self._verdicts.get(event.id, ()), key=lambda verdict: verdict.at_us)
        if verdicts:
            return replace(explanation, rules=tuple(verdicts))
        if chosen:
            return explanation
        policy, now = self._subscriber.policy, self._recording.now
        standing = replay_window(policy, self._offers, event.id, now)
        return replace(explanation, standing=standing)
