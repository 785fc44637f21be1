"""Explanations from one replay are those of an engine."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.test_subscriber_replay import ANY_POLICY, EVENTS, SCORERS, SUBSCRIPTIONS, stream

from tidings import Engine, Policy, Subscriber
from tidings.engine.explain import LATE
from tidings.engine.explainer import Explainer
from tidings.engine.subscriber_replay import InterestReplay, record
from tidings.model.limits import TRUSTED
from tidings.model.values import moment


def explainer_of(events: Any, subscriber: Subscriber, until_us: int | None = None) -> Explainer:
    recording = record(events, until_us=until_us)
    replay = InterestReplay(recording, subscriber.id, SUBSCRIPTIONS, subscriber.prefers)
    return Explainer(replay, subscriber)


@settings(max_examples=100)
@given(
    rows=EVENTS,
    policy=ANY_POLICY,
    scorer=SCORERS,
    paused=st.booleans(),
    until_us=st.sampled_from([None, 10**12]),
)
def test_explanations_are_those_of_an_engine(
    rows: Any, policy: Policy, scorer: str, paused: bool, until_us: int | None
) -> None:
    events = stream(rows)
    subscriber = Subscriber("ada", replace(policy, scorer=scorer), [("s1", "s3")], paused)
    engine = Engine(remember=100, remember_ids="0s")
    engine.subscribe(subscriber)
    engine.add_many(SUBSCRIPTIONS)
    engine.publish_many(events)
    if until_us is not None:
        engine.advance(moment(until_us))
    late = {event.id for event in engine.late}
    explainer = explainer_of(events, subscriber, until_us)
    for event in events:
        explanation = explainer.explain(event)
        if event.id in late:
            assert explanation.rank is None or explanation.note == LATE
        else:
            assert explanation.to_dict() == engine.explain("ada", event.id).to_dict()
            assert (explanation.rank is not None) == (event.id in explainer.matches)


def test_a_policy_that_fails_is_named() -> None:
    few = replace(TRUSTED, optimal_sets=10)
    window = {"name": "periodic", "length": "1h"}
    policy = Policy(k=5, window=window, diversify="optimal", limits=few)
    events = stream([(1, "a", 3, "p")] * 30)
    explanation = explainer_of(events, Subscriber("ada", policy), 10**12).explain(events[0])
    assert "set aside" in str(explanation.note)
    assert explanation.outcome == "unknown"
