"""A replay for one subscriber delivers what an engine would, policy by policy."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.rule_cases import any_rules
from tests.feed.streams import WINDOWS, plain_or_diverse, policies

from tidings import Engine, Event, InvalidPolicy, Policy, Subscriber, Subscription
from tidings.engine.explain import LATE
from tidings.engine.quality import Report
from tidings.engine.subscriber_replay import Explainer, InterestReplay, record
from tidings.model.limits import TRUSTED
from tidings.model.values import moment, rounded

ANY_POLICY = st.one_of(
    *(policies(window, plain_or_diverse) for window in WINDOWS.values()),
    *(policies(window, plain_or_diverse, any_rules) for window in WINDOWS.values()),
)
SCORERS = st.sampled_from(["preference", "exact", "relaxed", "graph"])
SUBSCRIPTIONS = [
    Subscription("s1", "ada", where="genre = 'a'", prefrank=0.4),
    Subscription("s2", "ada", where="genre = 'a' and size > 2", prefrank=0.9),
    Subscription("s3", "ada", any=[["size > 1", 2], ["mood = 'p'", 1]]),
]
EVENTS = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 2, 7, -3, 4_000, 40_000]),
        st.sampled_from("ab"),
        st.integers(0, 4),
        st.sampled_from("pq"),
    ),
    max_size=40,
)


def stream(rows: list[tuple[int, str, int, str]]) -> list[Event]:
    """Return events of rising times, a few of which are late."""
    seconds, events = 0, list[Event]()
    for number, (gap, genre, size, mood) in enumerate(rows):
        seconds += gap
        values = {"genre": genre, "size": size, "mood": mood}
        events.append(Event(f"e{number}", values, max(0, seconds), content={"n": number}))
    return events


@settings(max_examples=100)
@given(rows=EVENTS, policy=ANY_POLICY, scorer=SCORERS, lateness=st.sampled_from(["0s", "3s"]))
def test_deliveries_and_figures_are_those_of_an_engine(
    rows: Any, policy: Policy, scorer: str, lateness: str
) -> None:
    events, policy = stream(rows), replace(policy, scorer=scorer)
    prefers, until_us = [("s1", "s3")], 10**12
    engine = Engine(lateness, remember=100, remember_ids="0s")
    engine.subscribe(Subscriber("ada", policy, prefers))
    engine.add_many(SUBSCRIPTIONS)
    expected = engine.publish_many(events) + engine.advance(moment(until_us))
    replay = InterestReplay(record(events, lateness, until_us), "ada", SUBSCRIPTIONS, prefers)
    result = replay.run(policy)
    assert result.deliveries == expected
    assert _rounded(result.report) == _rounded(engine.quality())
    assert replay.run(policy) == result, "the second run uses the matches of the first"
    earlier = InterestReplay(record(events[: len(events) // 2]), "ada", SUBSCRIPTIONS, prefers)
    earlier.run(policy)
    later = earlier.on(record(events, lateness, until_us))
    assert later.run(policy) == result, "only the new events are matched"


def _rounded(report: Report) -> dict[str, Any]:
    """Return figures without the last digits, which depend on the order of additions."""
    form = report.to_dict()
    return {name: rounded(value) if type(value) is float else value for name, value in form.items()}


def test_a_policy_that_fails_is_refused() -> None:
    events = stream([(1, "a", 3, "p")] * 30)
    replay = InterestReplay(record(events, until_us=10**12), "ada", SUBSCRIPTIONS)
    window, few = {"name": "periodic", "length": "1h"}, replace(TRUSTED, optimal_sets=10)
    with pytest.raises(InvalidPolicy, match="optimal"):
        replay.run(Policy(k=5, window=window, diversify="optimal", limits=few))
    assert replay.run(Policy(k=1)).deliveries


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
