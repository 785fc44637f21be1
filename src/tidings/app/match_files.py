"""Matching and explaining events of files, in either direction: `tidings match` and `explain`."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from tidings.app.check import Audit, Problem
from tidings.engine.engine import Engine
from tidings.engine.explain import Explanation, Placement
from tidings.errors import InvalidEvent, InvalidForm
from tidings.formats.files import read_event_line, read_events, read_subscription_line
from tidings.formats.json_forms import loads_event
from tidings.formats.json_text import read_json, read_lines
from tidings.model.dead_letter import BadRecord
from tidings.model.diagnosis import Diagnosis
from tidings.model.limits import TRUSTED
from tidings.model.records import Event, Subscription, publication_order
from tidings.policy import Policy, Subscriber
from tidings.rank.matcher import Matcher, MatchPlan
from tidings.score import Scorer
from tidings.score.exact import Exact

TARGETS: Final = 20
_STDIN: Final = Path("stdin")
Row = dict[str, Any]


def read_inputs(subscriptions: Path, subscribers: Path | None = None) -> Audit:
    """Read subscriptions, from standard input if the path is `-`, and subscribers."""
    inputs = Audit()
    if subscriptions == Path("-"):
        inputs.read(_STDIN, "subscriptions", _read_stdin(read_subscription_line))
    else:
        inputs.read(subscriptions, "subscriptions")
    if subscribers is not None:
        inputs.read(subscribers, "subscribers")
    return inputs


def read_events_or_event(path: Path | None, event: str | None) -> Iterator[Event | BadRecord]:
    """Read a single event given as JSON, a file of events, or standard input (`-`)."""
    if event is not None:
        return iter([_read_event(event)])
    if path is None or path == Path("-"):
        return _read_stdin(read_event_line)
    return read_events(path)


def _read_stdin(read: Callable[[bytes, int], Any]) -> Iterator[Any]:
    """Read standard input line by line; a line that is too long is cut off."""
    if sys.stdin is None:
        raise InvalidForm("there is no standard input: it is closed")
    stream = getattr(sys.stdin, "buffer", None) or BytesIO(sys.stdin.read().encode())
    return (read(line.text, line.position) for line in read_lines(stream, TRUSTED.record_bytes))


def _read_event(text: str) -> Event:
    """Read the JSON form of an event, or just its attributes."""
    try:
        form = read_json(text)
    except InvalidForm as error:
        raise InvalidForm(f"the event is not valid JSON: {error}") from None
    if isinstance(form, dict) and "attributes" not in form:
        form = {"id": "event", "published_at": 0, "attributes": form}
    return loads_event(form)


@dataclass(frozen=True)
class MatchQuery:
    """A query for the subscribers (feed) or the k best subscriptions (target) of each event."""

    direction: str = "feed"
    scorer: Scorer | None = None
    k: int | None = None


def match_events(
    inputs: Audit,
    events: Iterable[Event | BadRecord],
    query: MatchQuery,
    source: Path = _STDIN,
    describe: Callable[[MatchPlan], object] = lambda _: None,
) -> Iterator[Row]:
    """Yield the matches of each event; bad records of `source` are added to the problems.

    The events become the sample with which the subscriptions can be compared. At the end,
    `describe` is called with the plan of the matcher: which structures answered, and why.
    """
    matcher = Matcher(_subscribers(inputs, query.scorer), inputs.subscriptions)
    for event in _valid_events(inputs, events, source):
        inputs.sample.add(event)
        if query.direction == "feed":
            yield from _feed_rows(matcher, event, query.k)
        else:
            scorer = query.scorer or Exact()
            yield from _target_rows(matcher, event, query.k or TARGETS, scorer)
    describe(matcher.describe())


def diagnose_matches(inputs: Audit, query: MatchQuery) -> Diagnosis:
    """Compare the subscriptions with the events that were matched."""
    policies = {subscriber.id: subscriber.policy for subscriber in inputs.subscribers}

    def counts_parts(subscription: Subscription) -> bool:
        scorer = query.scorer
        if scorer is None and query.direction == "feed":
            scorer = policies.get(subscription.subscriber, Policy()).scorer
        return scorer is not None and scorer.partial

    return inputs.sample.diagnose(inputs.subscriptions, counts_parts)


def _valid_events(
    inputs: Audit, events: Iterable[Event | BadRecord], source: Path
) -> Iterator[Event]:
    for event in events:
        if isinstance(event, BadRecord):
            inputs.problems.append(Problem(source, event.reason, event.position))
        else:
            yield event


def _subscribers(inputs: Audit, scorer: Scorer | None) -> Iterable[Subscriber]:
    """Return the subscribers, with the default policy for owners that are not listed."""
    owners = [subscription.subscriber for subscription in inputs.subscriptions]
    subscribers = {owner: Subscriber(owner) for owner in owners}
    subscribers |= {subscriber.id: subscriber for subscriber in inputs.subscribers}
    if scorer is None:
        return subscribers.values()
    return [
        replace(subscriber, policy=replace(subscriber.policy, scorer=scorer))
        for subscriber in subscribers.values()
    ]


def _feed_rows(matcher: Matcher, event: Event, k: int | None) -> Iterator[Row]:
    matches = sorted(matcher.matches(event), key=lambda match: (-match.score, match.subscriber))
    for match in matches[:k]:
        yield {
            "event": event.id,
            "subscriber": match.subscriber,
            "score": match.score,
            "matched": list(match.matched),
        }


def _target_rows(matcher: Matcher, event: Event, k: int, scorer: Scorer) -> Iterator[Row]:
    for position, (name, score) in enumerate(matcher.top(event, k, scorer), 1):
        yield {
            "event": event.id,
            "position": position,
            "subscription": name,
            "subscriber": matcher.subscriptions[name].subscriber,
            "score": score,
        }


@dataclass(frozen=True)
class ExplainQuery:
    """A query for the position of a subscription, or for the reason of a subscriber's delivery.

    `event` is an id; None stands for the only event.
    """

    event: str | None
    subscription: str | None = None
    subscriber: str | None = None
    scorer: Scorer | None = None
    k: int | None = None


def explain_event(
    inputs: Audit, events: Iterable[Event | BadRecord], query: ExplainQuery, source: Path = _STDIN
) -> Placement | Explanation:
    """Explain one event.

    For a subscriber, all events are published in order of publication time.
    """
    valid = sorted(_valid_events(inputs, events, source), key=publication_order)
    selected = [event for event in valid if query.event in (None, event.id)]
    if not selected:
        raise InvalidEvent(f"event {query.event!r} is not in {source}")
    engine = Engine(remember=len(valid))
    for subscriber in _subscribers(inputs, query.scorer):
        engine.subscribe(subscriber)
    for subscription in inputs.subscriptions:
        engine.add(subscription)
    if query.subscription is not None:
        k, scorer = query.k or TARGETS, query.scorer or Exact()
        return engine.explain_target(query.subscription, selected[0], k, scorer)
    engine.publish_many(valid)
    return engine.explain(query.subscriber or "", selected[0].id)
