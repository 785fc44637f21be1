"""One subscriber's feed: decay, window and diversity turn matches into deliveries."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tidings.diversify import DIVERSIFIERS, Candidate, Diversifier, best_first
from tidings.diversify.distance import check_summable
from tidings.diversify.plain.choose import plain_choice, plain_divrank
from tidings.errors import TidingsError, shown
from tidings.model.records import Delivery, Match
from tidings.policy import Policy, Subscriber, is_steady
from tidings.rules import RuleChain, Verdict
from tidings.score import DECAYS
from tidings.window import Moment, Pick, snapshot_fields
from tidings.window.buffer import sequence_of

_REGISTERED: Final = frozenset({*DECAYS.values(), *DIVERSIFIERS.values()})

Choose = Callable[[Diversifier, Sequence[Candidate], int], list[int]]
"""Return the indexes of at most k candidates, in order of choice."""


def fast_choice(part: Diversifier, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Choose by the diversifier itself, which may run kernels."""
    return part.choose(candidates, k)


class PolicyChooser:
    """The choices of a policy: its decay turns matches into candidates, of which it chooses."""

    def __init__(self, policy: Policy, choose: Choose = plain_choice) -> None:
        self._policy = policy
        self._choose = choose
        self.k = policy.k
        self.best_only = policy.diversify.name == "none"
        self.steady = is_steady(policy.decay, policy.diversify)
        self._user_defined = not {type(policy.decay), type(policy.diversify)} <= _REGISTERED

    def choose(self, matches: Sequence[Match], now_us: int) -> list[tuple[Match, float]]:
        """Return at most k matches with their ranks, in order of choice."""
        candidates, part = self._candidates(matches, now_us), self._policy.diversify
        chosen = self._choose(part, candidates, self.k)
        if self._user_defined:
            chosen = _checked_choice(part.name, chosen, len(candidates), self.k)
        return [(matches[i], candidates[i].rank) for i in chosen]

    def ranked(self, matches: Sequence[Match], now_us: int) -> list[tuple[Match, float]]:
        """Return all matches with their fresh ranks, best first."""
        pairs = list(zip(matches, self._candidates(matches, now_us), strict=True))
        pairs.sort(key=lambda pair: best_first(pair[1]))
        return [(match, candidate.rank) for match, candidate in pairs]

    def divrank(self, matches: Sequence[Match], now_us: int) -> float:
        """Return the diversity-aware rank of a set (PREF Def. 10)."""
        return plain_divrank(self._policy.diversify, self._candidates(matches, now_us))

    def _candidates(self, matches: Sequence[Match], now_us: int) -> list[Candidate]:
        decay = self._policy.decay
        candidates = [
            Candidate(
                match.event,
                decay.fresh(match.score, match.event.published_us, now_us),
                decay.key(match.score, match.event.published_us),
            )
            for match in matches
        ]
        if self._user_defined:
            for candidate in candidates:
                event = candidate.event.id
                check_summable(f"the fresh rank of {event} by {decay.name}", candidate.rank)
                _check_key(f"the key of {event} by {decay.name}", candidate.key)
        return candidates


def _check_key(name: str, key: Any) -> None:
    """Refuse a key that cannot be compared; it may be infinite."""
    if not isinstance(key, int | float) or math.isnan(key):
        raise TidingsError(f"{name} must be a number, not {shown(key)}")


def _checked_choice(name: str, chosen: Sequence[Any], count: int, k: int) -> list[int]:
    """Return the choice of a user-defined part, if it is at most k different candidates."""
    indexes = [index for index in chosen if isinstance(index, int) and 0 <= index < count]
    if len(indexes) != len(chosen) or len(set(indexes)) != len(indexes) or len(indexes) > k:
        raise TidingsError(
            f"diversifier {name} must choose at most {k} different indexes below {count}, "
            f"not {shown(chosen)}"
        )
    return indexes


class Feed:
    """Turns the matches of one subscriber, offered in order of publication, into deliveries.

    By default choices are made by definition, without kernels; so this is the reference for
    windows in arrays.
    """

    def __init__(self, subscriber: Subscriber, choose: Choose = plain_choice) -> None:
        self.subscriber = subscriber
        policy = subscriber.policy
        self._chooser = PolicyChooser(policy, choose)
        self._window = policy.window.open(self._chooser)
        self._rules = self._opened_rules(subscriber)
        self._delivered = 0
        self._numbered = getattr(policy.window, "count", None) == "published"

    def _opened_rules(self, subscriber: Subscriber) -> RuleChain | None:
        if not subscriber.policy.rules:
            return None
        chain = RuleChain(subscriber.policy.rules, self._chooser)
        chain.paused = subscriber.paused
        return chain

    def check(self, match: Match) -> None:
        """Refuse a match that the window cannot place, before anything has changed."""
        if self._numbered:
            sequence_of(match)

    def offer(self, match: Match, now: Moment) -> list[Delivery]:
        """Offer a match published at `now`."""
        return self._deliver(self._window.offer(match, now), now)

    def advance(self, now: Moment) -> list[Delivery]:
        """Move the clock to `now`."""
        return self._deliver(self._window.advance(now), now)

    def replace(self, subscriber: Subscriber, now: Moment) -> None:
        """Continue with other rules, or pause or resume; the rest of the policy is the same."""
        old, self.subscriber = self._rules, subscriber
        if old is not None and old.rules == subscriber.policy.rules:
            old.paused = subscriber.paused
            return
        self._rules = self._opened_rules(subscriber)
        if old is not None or self._rules is not None:
            none = RuleChain((), self._chooser)
            self._rules = self._rules or none
            self._rules.adopt(old or none, now.us)

    def pause(self, *, paused: bool) -> None:
        """Pause or resume: dropped events do not count as received."""
        if self._rules is not None:
            self._rules.paused = paused

    @property
    def deadline(self) -> int | None:
        """The first instant at which a rule releases something."""
        return self._rules.deadline if self._rules is not None else None

    def take_verdicts(self) -> list[Verdict]:
        """Return the verdicts of the rules since the last call."""
        return self._rules.take_verdicts() if self._rules is not None else []

    def current(self, now: Moment) -> list[Delivery]:
        """Return the current list, on demand; positions are in order, sequences 0."""
        return [self._delivery(pick, 0) for pick in self._window.current(now)]

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""
        state = {"delivered": self._delivered, "window": self._window.snapshot()}
        return state | ({"rules": self._rules.snapshot()} if self._rules else {})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replace the state by a snapshot."""
        delivered = snapshot_fields.whole(state, "delivered")
        self._window.restore(snapshot_fields.field(state, "window"))
        if self._rules is None and "rules" in state:  # something is owed by rules that are gone
            self._rules = RuleChain((), self._chooser)
        if self._rules is not None:
            self._rules.restore(snapshot_fields.field(state, "rules"))
        self._delivered = delivered

    def _deliver(self, picks: list[Pick], now: Moment) -> list[Delivery]:
        if self._rules is not None:
            picks = self._rules.offer(picks, now.us)
        first = self._delivered + 1
        self._delivered += len(picks)
        return [self._delivery(pick, number) for number, pick in enumerate(picks, start=first)]

    def _delivery(self, pick: Pick, sequence: int) -> Delivery:
        return Delivery(
            subscriber=self.subscriber.id,
            event=pick.match.event.id,
            rank=pick.rank,
            position=pick.position,
            window=pick.window,
            matched=pick.match.matched,
            sequence=sequence,
            delivered_us=pick.at_us,
            content_json=pick.match.event.content_json,
        )
