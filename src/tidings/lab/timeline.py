"""Timelines: what the windows of one subscriber chose in a period, from which candidates, and why.

A window is a pure state machine. So the recording is offered again to a window of the policy, and
an observer records every choice; the deliveries and the effects of rules come from the same replay
that a comparison makes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final
from xml.etree.ElementTree import Element

from tidings.engine.standing import Offered, judge_choice
from tidings.engine.subscriber_replay import Explainer
from tidings.errors import InvalidForm, InvalidPolicy
from tidings.feed.single import PolicyChooser, fast_choice
from tidings.formats.markup import styled_page, tag
from tidings.formats.policy_words import describe_policy
from tidings.lab.examples import title
from tidings.lab.recording import Recording
from tidings.lab.report import lab_header, report_css, with_times
from tidings.model.records import Match
from tidings.model.values import format_time, parse_time_us
from tidings.policy import Policy
from tidings.window import Moment
from tidings.window.buffer import describe_window

PASSED: Final = 3
"""The number of candidates that were not chosen, of which each window lists the best."""
CHOSEN_AGAIN: Final = "chosen again"
"""The fate of an event that an earlier choice had already delivered."""


@dataclass(frozen=True)
class TimelineEvent:
    """A candidate of a window: its rank at that time, and its fate."""

    event: str
    title: str | None
    rank: float
    fate: str


@dataclass(frozen=True)
class TimelineWindow:
    """A choice: when, over which span, from how many candidates; the chosen, and the next best."""

    at: str
    start: str
    end: str
    candidates: int
    chosen: tuple[TimelineEvent, ...]
    passed: tuple[TimelineEvent, ...]

    @property
    def words(self) -> str:
        """The number and the times of the candidates, in words."""
        noun = "candidate" if self.candidates == 1 else "candidates"
        return f"{self.candidates:,} {noun} from {self.start} to {self.end}"


@dataclass(frozen=True)
class Timeline:
    """The windows of a subscriber in a period, in order of time.

    `matches` counts the publications of the period that match, `delivered` the deliveries in it.
    """

    subscriber: str
    policy: str
    start: str
    end: str
    matches: int
    delivered: int
    windows: tuple[TimelineWindow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)

    @property
    def words(self) -> str:
        """The period and its totals, in words."""
        noun = "match" if self.matches == 1 else "matches"
        return f"{self.start} to {self.end}: {self.matches:,} {noun}, {self.delivered:,} delivered"

    def __str__(self) -> str:
        """Return the timeline in words."""
        lines = [f"{self.subscriber}, {self.words}", f"policy: {self.policy}"]
        for window in self.windows:
            lines.append(f"{window.at}  {window.words}")
            lines += [f"  + {_line(event)}" for event in window.chosen]
            lines += [f"  - {_line(event)}" for event in window.passed]
        return "\n".join(lines)


def _line(event: TimelineEvent) -> str:
    name = f"{event.title} ({event.event})" if event.title else event.event
    return f"{name}, rank {event.rank:g}: {event.fate}"


def timeline(
    recording: Recording,
    subscriber: str,
    start: object = None,
    end: object = None,
    policy: Policy | None = None,
) -> Timeline:
    """Return the windows of a subscriber from `start` to `end`, with its own or another policy.

    By default, this is the whole recording. Time advances to `end`.
    """
    own = recording.of_subscriber(subscriber)
    first_us, last_us = int(own.published_us[0]), int(own.published_us[-1])
    start_us = first_us if start is None else parse_time_us(start)
    end_us = last_us if end is None else parse_time_us(end)
    if end_us < start_us:
        raise InvalidForm(
            f"the period ends at {format_time(end_us)}, before it starts at {format_time(start_us)}"
        )
    person = replace(own.subscribers[0], policy=policy or own.subscribers[0].policy)
    events = [event for event in own.events if event.published_us <= end_us]
    until = Moment(end_us, int(own.sequences[len(events) - 1]) if events else 0)
    explainer = Explainer(replace(own, events=events).replay(person, until), person)
    if explainer.set_aside is not None:
        raise InvalidPolicy(f"the policy fails on these publications: {explainer.set_aside}")
    shown = [offer for offer in _offers(explainer) if offer.now.us >= start_us]
    delivered = [
        delivery for delivery in explainer.due.values() if delivery.delivered_us >= start_us
    ]
    return Timeline(
        subscriber,
        describe_policy(person.policy),
        format_time(start_us),
        format_time(end_us),
        len(shown),
        0 if person.paused else len(delivered),
        tuple(_windows(explainer, start_us)),
    )


@dataclass(frozen=True)
class _NotedChoice:
    """The candidates of a choice, what was chosen, and when."""

    now_us: int
    candidates: Sequence[Match]
    chosen: Sequence[tuple[Match, float]]


class _Notes:
    """A chooser that records each choice from an instant onwards.

    `new` returns those since the last call.
    """

    def __init__(self, policy: Policy, start_us: int) -> None:
        self._chooser = PolicyChooser(policy, fast_choice)
        self.k, self.steady = self._chooser.k, self._chooser.steady
        self.best_only = self._chooser.best_only
        self._start_us, self._noted = start_us, list[_NotedChoice]()

    def choose(self, matches: Sequence[Match], now_us: int) -> list[tuple[Match, float]]:
        chosen = self._chooser.choose(matches, now_us)
        if now_us >= self._start_us:
            self._noted.append(_NotedChoice(now_us, list(matches), chosen))
        return chosen

    def ranked(self, matches: Sequence[Match], now_us: int) -> list[tuple[Match, float]]:
        return self._chooser.ranked(matches, now_us)

    def divrank(self, matches: Sequence[Match], now_us: int) -> float:
        return self._chooser.divrank(matches, now_us)

    def new(self) -> list[_NotedChoice]:
        noted, self._noted = self._noted, []
        return noted


def _offers(explainer: Explainer) -> list[Offered]:
    """Return the offers that match: windows see no others."""
    return [offer for offer in explainer.offers if offer.match is not None]


def _windows(explainer: Explainer, start_us: int) -> Iterator[TimelineWindow]:
    policy = explainer.subscriber.policy
    if policy.window.name == "history":
        yield from _decisions(explainer, start_us)
        return
    notes, delivered = _Notes(policy, start_us), set[str]()
    window = policy.window.open(notes)
    for match, now in (*_offers(explainer), Offered(None, explainer.recording.now)):
        picks = [] if match is None else window.offer(match, now)
        picks += window.advance(now)
        for choice in notes.new():
            yield _described_choice(explainer, choice, delivered)
        delivered.update(pick.match.event.id for pick in picks)


def _described_choice(
    explainer: Explainer, choice: _NotedChoice, delivered: set[str]
) -> TimelineWindow:
    policy = explainer.subscriber.policy
    extent = describe_window(policy.window.name, choice.candidates, choice.now_us)
    names = {match.event.id for match, _ in choice.chosen}
    ranking = PolicyChooser(policy, fast_choice).ranked(choice.candidates, choice.now_us)
    passed = [(match, rank) for match, rank in ranking if match.event.id not in names][:PASSED]
    return TimelineWindow(
        format_time(choice.now_us),
        str(extent["start"]),
        str(extent["end"]),
        len(choice.candidates),
        tuple(
            TimelineEvent(
                match.event.id, title(match.event), rank, _fate(explainer, match, delivered)
            )
            for match, rank in choice.chosen
        ),
        tuple(
            TimelineEvent(match.event.id, title(match.event), rank, _passed(policy, choice, match))
            for match, rank in passed
        ),
    )


def _fate(explainer: Explainer, match: Match, delivered: set[str]) -> str:
    """Return the fate of a chosen event, in words."""
    event = match.event.id
    if event in delivered:
        return CHOSEN_AGAIN
    explanation = explainer.explain(match.event)
    if explanation.delivery is None:
        return explanation.summary
    at = f"delivered at {format_time(explanation.delivery.delivered_us)}"
    held = [verdict.rule for verdict in explanation.rules if verdict.fate == "held"]
    return f"held by {held[-1]}, and {at}" if held else at


def _passed(policy: Policy, choice: _NotedChoice, match: Match) -> str:
    judged = judge_choice(policy, choice.candidates, choice.now_us, match.event.id)
    return f"number {judged.place:,} by rank; {judged.reason}"


def _decisions(explainer: Explainer, start_us: int) -> Iterator[TimelineWindow]:
    """Yield the decisions of a history, which takes or leaves each event as it comes."""
    for match, now in _offers(explainer):
        if match is None or now.us < start_us:
            continue
        explanation, at = explainer.explain(match.event), format_time(now.us)
        is_chosen = match.event.id in explainer.due or bool(explanation.rules)
        fate = _fate(explainer, match, set()) if is_chosen else explanation.fate
        entry = TimelineEvent(match.event.id, title(match.event), match.score, fate)
        chosen, passed = ((entry,), ()) if is_chosen else ((), (entry,))
        yield TimelineWindow(at, at, at, 1, chosen, passed)


def timeline_page(timeline: Timeline) -> str:
    """Return a self-contained page: one window after the other, the chosen events first."""
    title = f"The windows of {timeline.subscriber}"
    policy = tag("p", f"Policy: {timeline.policy}.", class_="soft")
    header = lab_header(title, f"{timeline.words}.", policy)
    windows = tag("ol", map(_window, timeline.windows), class_="windows")
    return styled_page(title, report_css(), tag("main", header, windows))


def _window(window: TimelineWindow) -> Element:
    events = (
        *(
            _event(event, "again" if event.fate == CHOSEN_AGAIN else "chosen")
            for event in window.chosen
        ),
        *(_event(event, "passed") for event in window.passed),
    )
    return tag(
        "li",
        tag("b", tag("time", window.at)),
        tag("p", with_times(window.words), class_="soft"),
        tag("ul", events),
        class_="busy" if window.chosen else "idle",
    )


def _event(event: TimelineEvent, kind: str) -> Element:
    name, fate = event.title or event.event, f", rank {event.rank:g}: {event.fate}"
    return tag("li", tag("b", name), with_times(fate), class_=kind)
