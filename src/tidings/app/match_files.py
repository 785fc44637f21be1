"""Events against subscriptions, in either direction: what `tidings match` and `explain` do."""

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
from tidings.formats.arrow_by_row import BadRecord
from tidings.formats.files import read_event_line, read_events, read_subscription_line
from tidings.formats.json_forms import loads_event
from tidings.formats.json_text import read_json, read_lines
from tidings.model.limits import TRUSTED
from tidings.model.records import Event
from tidings.policy import Subscriber
from tidings.rank.matcher import Matcher
from tidings.score import Scorer
from tidings.score.exact import Exact

TARGETS: Final = 20
_STDIN: Final = Path("stdin")
Row = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """What to ask of each event: who wants it (feed), or its k best subscriptions (target)."""

    direction: str = "feed"
    scorer: Scorer | None = None
    k: int | None = None


def read_wishes(subscriptions: Path, subscribers: Path | None = None) -> Audit:
    """Read subscriptions, from standard input if the path is `-`, and subscribers."""
    found = Audit()
    if subscriptions == Path("-"):
        found.read(_STDIN, "subscriptions", _lines(read_subscription_line))
    else:
        found.read(subscriptions, "subscriptions")
    if subscribers is not None:
        found.read(subscribers, "subscribers")
    return found


def read_asked(events: Path | None, event: str | None) -> Iterator[Event | BadRecord]:
    """Read events of a file, from standard input if it is `-`, or the one that is given as JSON."""
    if event is not None:
        return iter([_event(event)])
    if events is None or events == Path("-"):
        return _lines(read_event_line)
    return read_events(events)


def _lines(read: Callable[[bytes, int], Any]) -> Iterator[Any]:
    """Read standard input line by line; of one that is too long, only the beginning."""
    source = getattr(sys.stdin, "buffer", None) or BytesIO(sys.stdin.read().encode())
    return (read(line.text, line.position) for line in read_lines(source, TRUSTED.record_bytes))


def _event(text: str) -> Event:
    """Read the JSON form of an event; without `attributes`, it is these."""
    try:
        form = read_json(text)
    except InvalidForm as error:
        raise InvalidForm(f"the event is no JSON: {error}") from None
    if isinstance(form, dict) and "attributes" not in form:
        form = {"id": "event", "published_at": 0, "attributes": form}
    return loads_event(form)


def answers(
    wishes: Audit, events: Iterable[Event | BadRecord], question: Question, name: Path = _STDIN
) -> Iterator[Row]:
    """Answer the question for each event; bad ones, of the file `name`, are noted in `wishes`."""
    matcher = Matcher(_people(wishes, question.scorer), wishes.subscriptions)
    for event in _good(wishes, events, name):
        if question.direction == "feed":
            yield from _feed(matcher, event, question.k)
        else:
            scorer = question.scorer or Exact()
            yield from _target(matcher, event, question.k or TARGETS, scorer)


def _good(wishes: Audit, events: Iterable[Event | BadRecord], name: Path) -> Iterator[Event]:
    for event in events:
        if isinstance(event, BadRecord):
            wishes.problems.append(Problem(name, event.reason, event.position))
        else:
            yield event


def _people(wishes: Audit, scorer: Scorer | None) -> Iterable[Subscriber]:
    """Give the subscribers; whoever is not among them has the default policy."""
    people = {each.subscriber: Subscriber(each.subscriber) for each in wishes.subscriptions}
    people |= {each.id: each for each in wishes.subscribers}
    if scorer is not None:
        people = {name: _with(each, scorer) for name, each in people.items()}
    return people.values()


def _with(subscriber: Subscriber, scorer: Scorer) -> Subscriber:
    return replace(subscriber, policy=replace(subscriber.policy, scorer=scorer))


def _feed(matcher: Matcher, event: Event, k: int | None) -> Iterator[Row]:
    matches = sorted(matcher.matches(event), key=lambda each: (-each.score, each.subscriber))
    for match in matches[:k]:
        yield {
            "event": event.id,
            "subscriber": match.subscriber,
            "score": match.score,
            "matched": list(match.matched),
        }


def _target(matcher: Matcher, event: Event, k: int, scorer: Scorer) -> Iterator[Row]:
    for position, (name, score) in enumerate(matcher.top(event, k, scorer), 1):
        yield {
            "event": event.id,
            "position": position,
            "subscription": name,
            "subscriber": matcher.subscriptions[name].subscriber,
            "score": score,
        }


@dataclass(frozen=True)
class Doubt:
    """What to explain: the place of a subscription for an event, or why a subscriber got it.

    `event` is an id; None stands for the only one there is.
    """

    event: str | None
    subscription: str | None = None
    subscriber: str | None = None
    scorer: Scorer | None = None
    k: int | None = None


def explained(
    wishes: Audit, events: Iterable[Event | BadRecord], doubt: Doubt, name: Path = _STDIN
) -> Placement | Explanation:
    """Explain one of the events; for a subscriber all are published, in order of their times."""
    good = sorted(_good(wishes, events, name), key=lambda each: each.published_us)
    wanted = [each for each in good if doubt.event in (None, each.id)]
    if not wanted:
        raise InvalidEvent(f"there is no event {doubt.event!r} in {name}")
    engine = _engine(wishes, doubt.scorer, len(good))
    if doubt.subscription is not None:
        given = (doubt.k or TARGETS, doubt.scorer or Exact())
        return engine.explain_target(doubt.subscription, wanted[0], *given)
    engine.publish_many(good)
    return engine.explain(doubt.subscriber or "", wanted[0].id)


def _engine(wishes: Audit, scorer: Scorer | None, remember: int) -> Engine:
    engine = Engine(remember=remember)
    for each in _people(wishes, scorer):
        engine.subscribe(each)
    for wish in wishes.subscriptions:
        engine.add(wish)
    return engine
