"""Timelines: what the windows of one subscriber chose in a period, from which candidates, and why.

A window is a pure state machine. So the recording is offered again to a window of the policy, and
a witness behind it notes every choice; the deliveries and what rules did come from the same replay
that a comparison makes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from tidings.engine.standing import Offered, judge_choice, replay
from tidings.errors import InvalidForm
from tidings.feed.single import PolicyChooser, fast_choice
from tidings.formats.policy_words import describe_policy
from tidings.lab.examples import title
from tidings.lab.recording import Recording
from tidings.lab.subscriber_replay import SubscriberReplay
from tidings.model.records import Match
from tidings.model.values import format_time, parse_time_us
from tidings.policy import Policy
from tidings.window import Moment
from tidings.window.buffer import describe_window

PASSED: Final = 3
"""Candidates that were not chosen, of which each window names the best."""


@dataclass(frozen=True)
class TimelineEvent:
    """A candidate of a window: its rank then, and what became of it."""

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

    def __str__(self) -> str:
        """Return the timeline in words."""
        counts = f"{self.matches:,} matches, {self.delivered:,} delivered"
        lines = [
            f"{self.subscriber}, {self.start} to {self.end}: {counts}",
            f"policy: {self.policy}",
        ]
        for window in self.windows:
            noun = "candidate" if window.candidates == 1 else "candidates"
            span = f"from {window.start} to {window.end}"
            lines.append(f"{window.at}  {window.candidates:,} {noun} {span}")
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

    By default that is the whole recording. Time goes on until `end`.
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
    until = Moment(end_us, int(own.sequences[-1]))
    seen = [event for event in own.events if event.published_us <= end_us]
    played = SubscriberReplay(person, own.subscriptions, seen, until)
    shown = [offer for offer in played.offers if offer.now.us >= start_us]
    delivered = [each for each in played.deliveries.values() if each.delivered_us >= start_us]
    return Timeline(
        subscriber,
        describe_policy(person.policy),
        format_time(start_us),
        format_time(end_us),
        len(shown),
        0 if person.paused else len(delivered),
        tuple(_windows(played, start_us)),
    )


@dataclass(frozen=True)
class _NotedChoice:
    """The candidates of a choice, what was chosen, and when."""

    now_us: int
    candidates: Sequence[Match]
    chosen: Sequence[tuple[Match, float]]


class _Notes:
    """A chooser that notes each choice from an instant on; `new` takes those since the last."""

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


def _windows(played: SubscriberReplay, start_us: int) -> Iterator[TimelineWindow]:
    policy = played.subscriber.policy
    if policy.window.name == "history":
        yield from _decisions(played, start_us)
        return
    notes, got = _Notes(policy, start_us), set[str]()
    window = policy.window.open(notes)
    for match, now in (*played.offers, Offered(None, played.until)):
        picks = [] if match is None else window.offer(match, now)
        picks += window.advance(now)
        for choice in notes.new():
            yield _described_choice(played, choice, got)
        got.update(pick.match.event.id for pick in picks)


def _described_choice(
    played: SubscriberReplay, choice: _NotedChoice, got: set[str]
) -> TimelineWindow:
    policy = played.subscriber.policy
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
            TimelineEvent(match.event.id, title(match.event), rank, _fate(played, match, got))
            for match, rank in choice.chosen
        ),
        tuple(
            TimelineEvent(match.event.id, title(match.event), rank, _passed(policy, choice, match))
            for match, rank in passed
        ),
    )


def _fate(played: SubscriberReplay, match: Match, got: set[str]) -> str:
    event = match.event.id
    if event in got:
        return "chosen again"
    delivery = played.deliveries.get(event)
    words = played.fate(event)
    if delivery is None or played.subscriber.paused:
        return words or "chosen, and not delivered yet"
    at = f"delivered at {format_time(delivery.delivered_us)}"
    return f"{words}; {at}" if words else at


def _passed(policy: Policy, choice: _NotedChoice, match: Match) -> str:
    judged = judge_choice(policy, choice.candidates, choice.now_us, match.event.id)
    return f"number {judged.place:,} by rank; {judged.reason}"


def _decisions(played: SubscriberReplay, start_us: int) -> Iterator[TimelineWindow]:
    """Yield the decisions of a history, which takes or leaves each event as it comes."""
    policy, chosen = played.subscriber.policy, set[str]()
    for match, now in played.offers:
        if match is None or now.us < start_us:
            continue
        event, at = match.event, format_time(now.us)
        is_chosen = event.id in played.deliveries or bool(played.verdicts[event.id])
        standing = None if is_chosen else replay(policy, played.offers, event.id, played.until)
        fate = _fate(played, match, chosen) if is_chosen else standing.verdict if standing else ""
        entry = TimelineEvent(event.id, title(event), match.score, fate)
        taken, left = ((entry,), ()) if is_chosen else ((), (entry,))
        yield TimelineWindow(at, at, at, 1, taken, left)
