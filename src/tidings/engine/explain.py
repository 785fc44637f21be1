"""Explanations: why an event was or was not delivered, and the position of a subscription."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import Any, Final, Literal

from tidings.engine.standing import Recollection, Standing
from tidings.errors import InvalidSubscription, shown
from tidings.model.conditions.parser import render_predicate
from tidings.model.conditions.predicate import Predicate
from tidings.model.dead_letter import Failure, try_call
from tidings.model.profile import Profile
from tidings.model.records import Delivery, Event, Subscription
from tidings.model.values import format_time, plain
from tidings.rank.matcher import Matcher
from tidings.rules import Verdict
from tidings.score import Ranker, Scorer
from tidings.score.relaxed import Relaxed

_FEW: Final = 5_000
"""Up to this many subscriptions, each is compared to find what it lacks."""
_NEARER: Final = 4
"""Of more, only the nearest are compared: this many times as many as were requested."""

Outcome = Literal[
    "delivered",
    "unmatched",
    "outranked",
    "similar",
    "open",
    "waiting",
    "expired",
    "held",
    "dropped",
    "late",
    "unknown",
]
"""The outcome of an event for a subscriber, in a word."""
LATE: Final = "it arrived too late, and was not offered to subscribers"


@dataclass(frozen=True)
class FailedPredicate:
    """A predicate that fails, beside the value of the event and its type.

    Both are None if the event lacks the attribute. `hint` is what may be meant instead.
    """

    predicate: str
    attribute: str
    value: Any
    type: str | None
    hint: str | None

    def __str__(self) -> str:
        """Return the predicate, and the value of the event."""
        has = f"there is no {self.attribute}"
        if self.type is not None:
            has = f"{self.attribute} is {_shown_value(self.value)}, a {self.type}"
        return f"{self.predicate} ({has}{f'; {self.hint}' if self.hint else ''})"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return dict(vars(self))


@dataclass(frozen=True)
class Reason:
    """The result of one subscription for an event: predicates that hold or fail, and the score."""

    subscription: str
    matched: bool
    score: float | None
    holds: tuple[str, ...]
    fails: tuple[FailedPredicate, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        fails = [failed.to_dict() for failed in self.fails]
        return vars(self) | {"holds": list(self.holds), "fails": fails}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> "Reason":
        """Return the reason of a JSON form."""
        fails = tuple(FailedPredicate(**failed) for failed in form["fails"])
        return cls(**{**form, "holds": tuple(form["holds"]), "fails": fails})


@dataclass(frozen=True)
class Explanation:
    """The result of a subscriber for an event: rank, reasons, and the delivery if there was one.

    The rank and the reasons are those of the present subscriptions. `standing` is what became of a
    match that was not chosen, if the event is remembered, and `rules` is what rules did with one
    that was, in order of time. `note` says what limits the answer.
    """

    subscriber: str
    event: str
    rank: float | None
    reasons: tuple[Reason, ...]
    delivery: Delivery | None
    standing: Standing | None = None
    note: str | None = None
    dropped: str | None = None
    """Why it was dropped when it was due, as for a paused subscriber."""
    rules: tuple[Verdict, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """The outcome of the event, in a word."""
        if self.delivery or self.rank is None:
            return "delivered" if self.delivery else "unmatched"
        if self.dropped or (self.rules and self.rules[-1].fate == "dropped"):
            return "dropped"
        if self.rules:  # held, or released by rules that were replaced, and due with the next event
            return "held"
        standing = self.standing
        if standing is None or standing.state == "chosen":
            return "late" if self.note == LATE else "unknown"
        if standing.state != "passed":
            return standing.state
        return "similar" if standing.choices[-1].decided_by == "similarity" else "outranked"

    @property
    def verdict(self) -> str:
        """The outcome of the event, in a sentence."""
        is_plain = self.delivery is not None or self.rank is None
        return self.fate if is_plain else f"rank {self.rank:g}, {self.fate}"

    @property
    def fate(self) -> str:
        """The verdict without the rank of an event that was not delivered."""
        if self.delivery:
            rank, position = self.delivery.rank, self.delivery.position
            return f"delivered with rank {rank:g}, at position {position}"
        if self.rank is None:
            return "not delivered, since no subscription matches"
        if self.dropped:
            return f"dropped when it was due: {self.dropped}"
        if self.rules and (until_us := self.rules[-1].until_us) is not None:
            rule, until = self.rules[-1].rule, format_time(until_us)
            return f"not delivered yet: held by {rule} until {until}"
        if self.rules and self.rules[-1].fate == "dropped":
            return f"dropped by {self.rules[-1].rule}"
        if self.rules:
            return f"not delivered yet: released by {self.rules[-1].rule}, and due as time goes on"
        return self.standing.verdict if self.standing else "not delivered"

    @property
    def summary(self) -> str:
        """The fate, with the reason of a rule or the place by rank: one line for a report."""
        if self.rank is not None and self.note is not None and not (self.standing or self.rules):
            return self.note
        if self.rules and self.rules[-1].fate != "released" and not self.dropped:
            return f"{self.fate}: {self.rules[-1].reason}"
        last = self.standing.choices[-1] if self.standing and self.standing.choices else None
        place = f"; it was number {last.place:,} by rank of {last.candidates:,}" if last else ""
        return f"{self.fate}{place}"

    def __str__(self) -> str:
        """Return the explanation in words."""
        lines = self.standing.lines if self.standing else [str(verdict) for verdict in self.rules]
        notes = [f"note: {self.note}"] if self.note else []
        indented = [f"  {line}" for line in (*lines, *notes)]
        verdict = f"{self.event} for {self.subscriber}: {self.verdict}"
        return "\n".join([verdict, *indented, *map(_sentence, self.reasons)])

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "subscriber": self.subscriber,
            "event": self.event,
            "outcome": self.outcome,
            "verdict": self.verdict,
            "rank": self.rank,
            "reasons": [reason.to_dict() for reason in self.reasons],
            "delivery": self.delivery.to_dict() if self.delivery else None,
            "standing": self.standing.to_dict() if self.standing else None,
            "note": self.note,
            "dropped": self.dropped,
            "rules": [verdict.to_dict() for verdict in self.rules],
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> "Explanation":
        """Return the explanation of a JSON form."""
        delivery, standing = form["delivery"], form["standing"]
        return cls(
            form["subscriber"],
            form["event"],
            form["rank"],
            tuple(map(Reason.from_dict, form["reasons"])),
            None if delivery is None else Delivery.from_dict(delivery),
            None if standing is None else Standing.from_dict(standing),
            form["note"],
            form["dropped"],
            tuple(Verdict.from_dict(form["event"], verdict) for verdict in form["rules"]),
        )


def _sentence(reason: Reason) -> str:
    verb = "matches" if reason.matched else "does not match"
    because = [f"holds: {', '.join(reason.holds)}"] if reason.holds else []
    because += [f"fails: {', '.join(map(str, reason.fails))}"] if reason.fails else []
    score = "" if reason.score is None else f" with {reason.score:g}"
    return f"  {reason.subscription} {verb}{score}; {'; '.join(because)}"


@dataclass(frozen=True)
class Placement:
    """The position of a subscription for an event, in the direction "target".

    `position` counts from 1 among all subscriptions with a score. `lacking` is the difference to
    the score of the k-th: 0 for one of the k best, or for a tie that the id decides, and None
    without a score.
    """

    subscription: str
    event: str
    score: float | None
    position: int | None
    k: int
    kth_score: float | None
    lacking: float | None
    reason: Reason

    def __str__(self) -> str:
        """Return the explanation in words."""
        return f"{self._verdict()}\n{_sentence(self.reason)}"

    def _verdict(self) -> str:
        subject = f"{self.subscription} for {self.event}"
        if self.position is None:
            return f"{subject}: no position, since it does not match{self._bar()}"
        if self.position <= self.k:
            return f"{subject}: position {self.position} of the best {self.k}, with {self.score:g}"
        why = f"it lacks {self.lacking:g}" if self.lacking else "it ties, and smaller ids go first"
        return f"{subject}: position {self.position} with {self.score:g}{self._bar()}: {why}"

    def _bar(self) -> str:
        if self.kth_score is None:
            return ""
        return f"; the last of the best {self.k} has {self.kth_score:g}"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return vars(self) | {"reason": self.reason.to_dict()}


def explain(
    matcher: Matcher, subscriber: str, event: Event, delivery: Delivery | None = None
) -> Explanation:
    """Explain an event for a subscriber, by its present subscriptions."""
    scorer = matcher.subscribers[subscriber].policy.scorer
    ranker = matcher.ranker(subscriber, scorer)
    match = {match.subscriber: match for match in matcher.matches(event)}.get(subscriber)
    matched = match.matched if match else ()
    reasons = [
        _reason(subscription, event, matched, _score(ranker, event, subscription))
        for subscription in matcher.subscriptions_of(subscriber)
    ]
    rank = match.score if match else None
    return Explanation(subscriber, event.id, rank, tuple(reasons), delivery)


def complete(
    explanation: Explanation,
    aside: str | None,
    dropped: str | None,
    recollect: Callable[[], Recollection],
) -> Explanation:
    """Add the outcome of a match: its subscriber was set aside, or it was dropped, held, passed.

    `recollect` is called only for a match. What was delivered or dropped has no standing.
    """
    if aside is not None:
        return replace(explanation, note=f"the subscriber is set aside: {aside}")
    if explanation.rank is None:
        return explanation
    explanation = replace(explanation, dropped=dropped)
    standing, verdicts, note = recollect()
    if (explanation.delivery or dropped) and not verdicts:
        return explanation
    return replace(explanation, standing=standing, rules=verdicts, note=note)


def _score(ranker: Ranker, event: Event, subscription: Subscription) -> float | None:
    """Return a score; None if the scorer fails, which sets its subscriber aside elsewhere."""
    score = try_call(ranker.score, event, subscription)
    return None if isinstance(score, Failure) else score


def explain_target(
    matcher: Matcher, event: Event, subscription: str, k: int, scorer: Scorer
) -> Placement:
    """Explain the position of a subscription for an event, by ranking all subscriptions."""
    if subscription not in matcher.subscriptions:
        raise InvalidSubscription(f"there is no subscription {subscription!r}")
    ranking = matcher.top(event, len(matcher.subscriptions), scorer)
    positions = {name: position for position, (name, _) in enumerate(ranking, start=1)}
    scores = dict(ranking)
    score, position = scores.get(subscription), positions.get(subscription)
    kth = ranking[k - 1][1] if len(ranking) >= k else None
    lacking = None if score is None else max(0.0, (kth or 0.0) - score)
    matched = [subscription] if score is not None else []
    reason = _reason(matcher.subscriptions[subscription], event, matched, score)
    return Placement(subscription, event.id, score, position, k, kth, lacking, reason)


def explain_targets(
    matcher: Matcher, event: Event, k: int, scorer: Scorer, others: int
) -> list[Placement]:
    """Explain the k best subscriptions for an event, and others that come near to them.

    After the k best come those that have a score too, in order of position; then those without, by
    the number of predicates that fail. If there are very many subscriptions, only those are
    considered of which some predicate holds.
    """
    total = len(matcher.subscriptions) + 1
    ranking = matcher.top(event, min(k + others, total), scorer)
    kth = ranking[k - 1][1] if len(ranking) >= k else None
    placements = list[Placement]()
    for position, (name, score) in enumerate(ranking, start=1):
        reason = _reason(matcher.subscriptions[name], event, [name], score)
        lacking = max(0.0, (kth or 0.0) - score)
        placements.append(Placement(name, event.id, score, position, k, kth, lacking, reason))
    places = others - max(0, len(ranking) - k)
    if places > 0:
        without = _unranked(matcher, event, {name for name, _ in ranking}, min(k + others, total))
        nearest = nsmallest(places, without, key=lambda other: (missing(other, event), other.id))
        reasons = [_reason(subscription, event, (), None) for subscription in nearest]
        placements += [
            Placement(reason.subscription, event.id, None, None, k, kth, None, reason)
            for reason in reasons
        ]
    return placements


def _unranked(matcher: Matcher, event: Event, ranked: set[str], most: int) -> list[Subscription]:
    """Return subscriptions that are not ranked: all of them, or those nearest to an event."""
    names: Iterable[str] = matcher.subscriptions
    if len(matcher.subscriptions) > _FEW:
        names = [name for name, _ in matcher.top(event, _NEARER * most, Relaxed())]
    return [matcher.subscriptions[name] for name in names if name not in ranked]


def missing(subscription: Subscription, event: Event) -> int:
    """Return how many predicates fail, in the alternative of the condition with the fewest."""
    failing = (
        sum(not part.holds(event.tokens) for part in conjunction)
        for conjunction in subscription.conjunctions
    )
    return min(failing, default=0)


def _reason(
    subscription: Subscription, event: Event, matched: Collection[str], score: float | None
) -> Reason:
    parts = dict.fromkeys(part for conj in subscription.conjunctions for part in conj)
    profile = Profile()
    profile.add(event)
    return Reason(
        subscription.id,
        subscription.id in matched,
        score,
        tuple(render_predicate(part) for part in parts if part.holds(event.tokens)),
        tuple(_failed(part, event, profile) for part in parts if not part.holds(event.tokens)),
    )


def _failed(part: Predicate, event: Event, profile: Profile) -> FailedPredicate:
    """Return a predicate that fails, with the value that the event has instead."""
    name = part.attribute
    if name not in event.attributes:
        hint = profile.hint(part, "attribute")
        return FailedPredicate(render_predicate(part), name, None, None, hint)
    families = sorted({family for family, _ in event.tokens[name]})
    hint = profile.hint(part, "type") if profile.flaw(part) == "type" else None
    kind: str = families[0] if families else ""
    if isinstance(event.attributes[name], tuple):
        kind = f"list of {' and '.join(f'{family}s' for family in families) or 'nothing'}"
    value = plain(event.attributes[name])
    return FailedPredicate(render_predicate(part), name, value, kind, hint)


def _shown_value(form: Any) -> str:
    """Return a value of JSON as conditions write it, shortened if it is long."""
    if isinstance(form, dict) and form.keys() == {"time"}:
        return str(form["time"])
    return shown(form)
