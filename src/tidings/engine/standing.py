"""The outcome of a match: the choices of its subscriber's window in which it was a candidate.

A window keeps no record of the events that it passes over. But it is a pure state machine; so the
remembered matches are offered again to a window of the same policy, and the chooser behind it
records the choices with the event as a candidate. Rules are state machines as well, and are
replayed with their window.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

from tidings.diversify import Candidate, Diversifier
from tidings.diversify.distance import checked_distance
from tidings.diversify.plain.choose import plain_choice
from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.single import Feed, PolicyChooser, fast_choice
from tidings.model.calendar import LONGEST_US, Period
from tidings.model.records import Match
from tidings.model.values import format_time, rounded
from tidings.policy import Policy, Subscriber
from tidings.rules import Verdict
from tidings.window import WINDOWS, Moment, Window
from tidings.window.buffer import MatchBuffer, NumberedMatch, describe_window, event_ids
from tidings.window.length import Length
from tidings.window.periodic import Periodic

Cause = Literal["rank", "age", "id", "similarity"]
State = Literal["passed", "open", "waiting", "expired", "chosen"]
Ranking = list[tuple[Match, float]]
"""Matches with their fresh ranks."""
_NAMED: Final = 5
_FEW: Final = 200
"""Up to this many candidates, kernels are not worth the time that compiling them may take."""
_MANY: Final = 500
"""Up to this many matches, all choices of a replay are made by definition."""
_OVERLAPPING: Final = ("sliding", "jumping")


class Offered(NamedTuple):
    """An event of the stream as it reached a window: its match, if any, and the moment."""

    match: Match | None
    now: Moment


@dataclass(frozen=True)
class Rival:
    """A chosen event: its rank, and its distance to the event that is explained."""

    event: str
    rank: float
    distance: float

    def __str__(self) -> str:
        """Return the event and its rank."""
        return f"{self.event} ({self.rank:g})"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return dict(vars(self))


@dataclass(frozen=True)
class Choice:
    """A choice in which an event was a candidate.

    `place` counts from 1 among all candidates by rank. `decided_by` says what the event lacked; it
    is None if the event is among the chosen. `similar_to` is the chosen event nearest to it, where
    similarity decided. A `history` compares sets: `divrank` is that of the events it had delivered,
    `swapped` the largest that it could have had with this event.
    """

    window: Mapping[str, Any]
    rank: float
    place: int
    candidates: int
    chosen: tuple[Rival, ...]
    decided_by: Cause | None
    similar_to: Rival | None = None
    divrank: float | None = None
    swapped: float | None = None

    def __str__(self) -> str:
        """Return the choice in words."""
        start, end = self.window["start"], self.window["end"]
        more = ", ..." if len(self.chosen) > _NAMED else ""
        chosen = ", ".join(map(str, self.chosen[:_NAMED])) + more
        text = (
            f"{start} to {end}: number {self.place} by rank ({self.rank:g}) of {self.candidates}; "
            f"chosen: {chosen or 'none'}"
        )
        if self.similar_to is not None:
            text += f"; nearest: {self.similar_to.event} (distance {self.similar_to.distance:g})"
        if self.divrank is not None and self.swapped is not None:
            text += f"; divrank {self.divrank:g}, with it at most {self.swapped:g}"
        return text

    @property
    def reason(self) -> str:
        """Why the event was not chosen, in words."""
        if self.decided_by == "similarity" and self.similar_to is not None:
            return f"it was too similar to {self.similar_to.event}"
        return {
            "age": "newer events rank at least as high",
            "id": "others tie with it and have smaller ids",
        }.get(self.decided_by or "", "others rank higher")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return vars(self) | {
            "window": dict(self.window),
            "chosen": [rival.to_dict() for rival in self.chosen],
            "similar_to": self.similar_to.to_dict() if self.similar_to else None,
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> "Choice":
        """Return the choice of a JSON form."""
        chosen = tuple(Rival(**rival) for rival in form["chosen"])
        nearest = None if form["similar_to"] is None else Rival(**form["similar_to"])
        return cls(**{**form, "chosen": chosen, "similar_to": nearest})


@dataclass(frozen=True)
class Standing:
    """The outcome of a match that was not delivered.

    The state is `passed` (it was a candidate `count` times, and never chosen), `open` (it still is
    one), `waiting` (until there are k candidates), `expired` (there never were), or `chosen`, if
    the replay chose it: then it is not the history that the engine had. `choices` are the first and
    the last.
    """

    state: State
    count: int
    choices: tuple[Choice, ...]

    @property
    def verdict(self) -> str:
        """The state in words."""
        if self.state == "waiting":
            return "not delivered yet: it waits until there are k candidates"
        if self.state == "expired":
            return "not delivered: it left the window before there were k candidates"
        if self.state == "chosen" or not self.choices:
            return "not delivered"
        last = self.choices[-1]
        if self.state == "passed":
            return f"not delivered: {last.reason}"
        now = (
            "it is among the chosen so far" if last.decided_by is None else f"so far {last.reason}"
        )
        return f"not delivered yet: its window is open, and {now}"

    @property
    def lines(self) -> list[str]:
        """The first and the last choice in words."""
        if len(self.choices) < 2:
            return [f"window {choice}" for choice in self.choices]
        first, last = self.choices
        return [f"first of {self.count:,} windows {first}", f"last window {last}"]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return vars(self) | {"choices": [choice.to_dict() for choice in self.choices]}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> "Standing":
        """Return the standing of a JSON form."""
        return cls(**{**form, "choices": tuple(map(Choice.from_dict, form["choices"]))})


class Recollection(NamedTuple):
    """The outcome of a match: its standing in windows, or, if it was chosen, what rules did.

    `note` says what limits the answer.
    """

    standing: Standing | None
    verdicts: tuple[Verdict, ...]
    note: str | None


def replay(policy: Policy, offers: Iterable[Offered], event: str, now: Moment) -> Standing | None:
    """Offer matches to a new window; return the outcome of one event, None if it was not offered.

    A window whose later contents do not depend on its choices makes only the first and the last
    choice with the event as a candidate; so the replay is fast even where the window is slow.
    """
    steps = list(offers)
    matches = [(match, at) for match, at in steps if match is not None]
    first = next((n for n, (match, _) in enumerate(matches) if match.event.id == event), None)
    if first is None:
        return None
    chooser = _RecordingChooser(policy, event)
    window = policy.window.open(chooser)
    if (period := _period_of(policy.window, *matches[first])) is not None:
        steps = [step for step in steps if period.start <= step.now.us < period.end]
    elif len(matches) > _MANY and _follows_from_deliveries(policy.window):
        skipped = _Shortcut(policy, matches).take(window, chooser, first)
        steps = [Offered(*offer) for offer in matches[skipped:]]
    for match, at in steps:
        if match is not None:
            window.offer(match, at)
        window.advance(at)
        if chooser.is_settled:
            break  # nothing that comes later can matter
    window.advance(now)
    return chooser.finish(window, matches[first][0], now)


class _Shortcut:
    """Brings a window to the first and to the last choice of an event, skipping those in between.

    The skipped choices affect the window only by what they deliver, and a compiled window finds
    that out from the same matches in a fraction of the time.
    """

    def __init__(self, policy: Policy, matches: Sequence[tuple[Match, Moment]]) -> None:
        part: Any = policy.window
        self._part = part
        self._matches, self._taken = matches, 0
        self._owner = Subscriber(matches[0][0].subscriber, replace(policy, rules=()))
        self._feeds = TableFeeds()
        self._feeds.enrol(self._owner)
        self._buffer = MatchBuffer(part.length, part.count)
        self._delivered: set[str] = set()

    def take(self, window: Window, chooser: "_RecordingChooser", first: int) -> int:
        """Offer matches to a window, beginning with that of the event; return how many are done."""
        state = self._state_before(first)
        if self._feeds.set_aside:
            return 0  # the replay by definition says what is wrong
        window.restore(state)
        last = self._last_with(first)
        if last == first:
            return first
        window.offer(*self._matches[first])
        state = self._state_before(last)
        if self._feeds.set_aside or self._matches[first][0].event.id in self._delivered:
            return first + 1
        window.restore(state)
        chooser.skip(last - first - 1)
        return last

    def _state_before(self, stop: int) -> dict[str, Any]:
        """Return the snapshot of a plain window that has taken the matches before a place."""
        offers = self._matches[self._taken : stop]
        self._taken = stop
        self._delivered.update(delivery.event for delivery in self._feeds.offer_many(offers))
        for match, _ in offers:
            self._buffer.add(match)
        if offers:
            self._buffer.expire(offers[-1][1])
        if self._part.name == "history":
            listed = self._feeds.current(self._owner.id, offers[-1][1]) if offers else []
            history = {delivery.event for delivery in listed}
            self._buffer.retain(
                [match for match in self._buffer.matches if match.event.id in history]
            )
            return self._buffer.snapshot() | {"held": []}
        held = event_ids(self._buffer.matches)
        return self._buffer.snapshot() | {"delivered": sorted(self._delivered & held)}

    def _last_with(self, first: int) -> int:
        """Return the place of the last match at which the window still holds the one at `first`."""
        axis = self._buffer.axis
        assert axis is not None
        if self._part.name == "history":
            return first  # it compares an event once
        coordinate = axis.coordinate(NumberedMatch(first + 1, self._matches[first][0]))
        later = enumerate(self._matches[first + 1 :], start=first + 1)
        gone = (n for n, (_, now) in later if coordinate < axis.end(now, n + 1) - axis.size)
        return next(gone, len(self._matches)) - 1


def _period_of(part: Any, match: Match, at: Moment) -> Period | None:
    """Return the period of a match, if nothing before and after it matters."""
    if type(part) is not Periodic or part.wait or part.periods is None:
        return None
    period = part.periods.period(match.event.published_us)
    # A match that came after the end of its period belongs to another one.
    return period if period.start <= at.us < period.end else None


def _follows_from_deliveries(part: Any) -> bool:
    """Return whether the content of a window follows from its matches and its deliveries."""
    if type(part) not in WINDOWS.values() or getattr(part, "wait", False):
        return False
    return bool(part.name == "history" or (part.name == "sliding" and part.delivered == "leave"))


def judge_choice(policy: Policy, candidates: Sequence[Match], now_us: int, event: str) -> Choice:
    """Return the choice that a policy makes of some candidates, as seen by one of them."""
    return _RecordingChooser(policy, event).judge(candidates, now_us)


class RulesReplaced(NamedTuple):
    """New rules of a subscriber, or a pause, after some offers, at a moment of the stream."""

    offers: int
    now: Moment
    subscriber: Subscriber


def replay_rules(
    subscriber: Subscriber,
    offers: Sequence[Offered],
    event: str,
    now: Moment,
    changes: Sequence[RulesReplaced] = (),
) -> tuple[Verdict, ...]:
    """Offer matches to a new feed; return what its rules did with one event, in order of time.

    The feed begins with the rules of `subscriber`, and goes through the changes in their order.
    """
    feed, verdicts, pending = Feed(subscriber, _choice), list[Verdict](), deque(changes)
    for number in range(len(offers) + 1):
        while pending and pending[0].offers <= number:
            change = pending.popleft()
            feed.advance(change.now)
            feed.replace(change.subscriber, change.now)
        if number < len(offers):
            match, at = offers[number]
            if match is not None:
                feed.offer(match, at)
            feed.advance(at)
        verdicts += [verdict for verdict in feed.take_verdicts() if verdict.event == event]
    feed.advance(now)
    verdicts += [verdict for verdict in feed.take_verdicts() if verdict.event == event]
    return tuple(sorted(verdicts, key=lambda verdict: verdict.at_us))


class _RecordedChoice(NamedTuple):
    """The candidates of a choice, and its time; the chosen if the window had to know them.

    A history has the set ranks instead: of what it had delivered, and of the best swap.
    """

    candidates: Sequence[Match]
    now_us: int
    chosen: Ranking | None = None
    divrank: float | None = None
    swapped: float | None = None


class _RecordingChooser:
    """A chooser that remembers the first and the last choice with one event as a candidate."""

    def __init__(self, policy: Policy, event: str) -> None:
        self._policy: Any = policy
        self._event = event
        self._chooser = PolicyChooser(policy, _choice)
        self.k, self.steady = policy.k, self._chooser.steady
        self.best_only = self._chooser.best_only
        self._must_choose = _depends_on_choices(policy)
        self._count = 0
        self._first: _RecordedChoice | None = None
        self._last: _RecordedChoice | None = None
        self._now: _RecordedChoice | None = None
        self._is_over = self._has_gone = False
        self._swaps: list[tuple[Match, float]] = []

    @property
    def is_settled(self) -> bool:
        """Whether the event can be in no later choice."""
        once = self._policy.window.name in ("continuous", "history")
        return self._first is not None and (once or self._has_gone)

    def choose(self, matches: Sequence[Match], now_us: int) -> Ranking:
        """Choose if the window depends on it; remember the candidates if the event is one."""
        chosen = self._chooser.choose(matches, now_us) if self._must_choose else None
        if self._find(matches):
            self._note(_RecordedChoice(list(matches), now_us, chosen))
        elif self._first is not None:
            self._has_gone = type(self._policy.window) in WINDOWS.values()
        return chosen or []

    def skip(self, choices: int) -> None:
        """Count choices in which the event was a candidate, and that are not repeated here."""
        self._count += choices

    def ranked(self, matches: Sequence[Match], now_us: int) -> Ranking:
        """Return all matches, best fresh rank first."""
        return self._chooser.ranked(matches, now_us)

    def divrank(self, matches: Sequence[Match], now_us: int) -> float:
        """Return the set rank; a history takes that of every swap, then that of what it has."""
        value = self._chooser.divrank(matches, now_us)
        if target := self._find(matches):
            self._swaps.append((target, value))
        elif self._swaps:
            target, swapped = max(self._swaps, key=lambda swap: swap[1])
            delivered = self._chooser.ranked(matches, now_us)
            self._note(_RecordedChoice([*matches, target], now_us, delivered, value, swapped))
            self._swaps = []
        return value

    def _find(self, matches: Sequence[Match]) -> Match | None:
        return next((match for match in matches if match.event.id == self._event), None)

    def _note(self, record: _RecordedChoice) -> None:
        continuous = self._policy.window.name == "continuous"
        if continuous and (self._is_over or self._first):
            return  # it delivers an event when that arrives, or stops waiting, and never later
        if self._is_over:
            self._now = record
        else:
            self._count += 1
            self._first, self._last = self._first or record, record

    def finish(self, window: Window, target: Match, now: Moment) -> Standing:
        """Return the outcome of the event, after all matches were offered."""
        self._is_over = True
        window.current(now)  # which asks for a choice from what the window holds now
        part = self._policy.window
        waits = getattr(part, "wait", False) and _holds(window, target, part, now)
        state: State = "passed"
        if self._now is not None:
            state = "open"
        elif waits and (self._first is None or part.name in _OVERLAPPING):
            state = "waiting"
        elif self._first is None:
            state = "expired"
        records = [self._first, self._last if self._now is None else self._now]
        distinct = {id(record): record for record in records if record is not None}
        choices = tuple(map(self._judged, distinct.values()))
        if state == "passed" and any(choice.decided_by is None for choice in choices):
            state = "chosen"
        return Standing(state, self._count, choices)

    def judge(self, candidates: Sequence[Match], now_us: int) -> Choice:
        """Return the choice of some candidates, of which the event is one."""
        return self._judged(_RecordedChoice(candidates, now_us))

    def _judged(self, record: _RecordedChoice) -> Choice:
        """Return a choice with the place of the event, and what decided against it."""
        candidates, now_us = record.candidates, record.now_us
        chosen = record.chosen
        if chosen is None:
            chosen = self._chooser.choose(candidates, now_us)
        ranking = self._chooser.ranked(candidates, now_us)
        ids = [match.event.id for match, _ in ranking]
        place = ids.index(self._event) + 1
        target, rank = ranking[place - 1]
        distance = self._policy.diversify.distance
        rivals = tuple(
            Rival(match.event.id, fresh, checked_distance(distance, match.event, target.event))
            for match, fresh in chosen
        )
        cause = None
        if self._event not in {rival.event for rival in rivals}:
            lowest = max((ids.index(rival.event) for rival in rivals), default=0)
            cause = self._cause(ranking, place, lowest + 1, by_swap=record.divrank is not None)
        similar = min(rivals, key=lambda rival: rival.distance, default=None)
        return Choice(
            _extent(self._policy.window, candidates, now_us),
            rank,
            place,
            len(candidates),
            rivals,
            cause,
            similar if cause == "similarity" else None,
            record.divrank,
            record.swapped,
        )

    def _cause(self, ranking: Ranking, place: int, lowest: int, *, by_swap: bool) -> Cause:
        """Return what decided against the event at a place; the last chosen is at the lowest.

        Similarity did if the event would have been chosen by rank alone, or before another.
        """
        (target, rank), (other, other_rank) = ranking[place - 1], ranking[lowest - 1]
        if by_swap:
            gain, strict = rounded(rank - other_rank), self._policy.window.strict
            return "similarity" if gain > 0 or (gain == 0 and not strict) else "rank"
        if place <= self.k or lowest > place:
            return "similarity"
        if target.score < other.score:
            return "rank"
        return "age" if target.event.published_us < other.event.published_us else "id"


def _choice(part: Diversifier, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Choose by definition; of many candidates by kernels, which choose the same much faster."""
    choose = plain_choice if len(candidates) <= _FEW else fast_choice
    return choose(part, candidates, k)


def _extent(part: Any, candidates: Sequence[Match], now_us: int) -> dict[str, Any]:
    """Return the description of a window; a period has fixed bounds."""
    window = describe_window(part.name, candidates, now_us)
    if part.name == "periodic" and part.periods is not None:
        window["start"] = format_time(part.periods.period(now_us - 1).start)
    return window


def _depends_on_choices(policy: Policy) -> bool:
    """Return whether what a window holds later depends on what it chooses now."""
    part: Any = policy.window
    if type(part) not in WINDOWS.values():
        return True
    if part.name == "continuous":
        return part.expires is None and policy.diversify.name == "none"
    return getattr(part, "delivered", "keep") == "leave"


def _holds(window: Window, target: Match, part: Any, now: Moment) -> bool:
    """Return whether a window still holds a match; it may have expired since the last offer."""
    entries = window.snapshot().get("entries", ())
    if all(form["event"]["id"] != target.event.id for _, form in entries):
        return False
    size = getattr(part, "expires" if part.name == "continuous" else "length", None)
    if size is not None and size.us is not None:
        return bool(now.us - target.event.published_us < size.us)
    if size is not None and getattr(part, "count", "matching") == "published":
        return bool(now.sequence - (target.event.sequence or 0) < size.count)
    return True


def reach(part: Any) -> Length | None:
    """Return how far back the choices with an event as a candidate look; None if without end."""
    if type(part) not in WINDOWS.values() or getattr(part, "delivered", "keep") == "leave":
        return None
    if getattr(part, "at", ()):
        return Length(us=LONGEST_US)
    timed = {"periodic": "length", "jumping": "step"}
    if part.name in timed and getattr(part, timed[part.name]).us is None:
        return None  # groups are counted from the first match
    if part.name in ("periodic", "continuous") and part.wait:
        return None
    size = {"continuous": "expires", "history": ""}.get(part.name, "length")
    return getattr(part, size, None)
