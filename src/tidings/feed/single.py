"""One subscriber's feed: freshness, window and diversity wired into deliveries."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidings.diversify import DIVERSIFIERS, Candidate, best_first, keep
from tidings.diversify.distance import check_summable
from tidings.errors import TidingsError, shown
from tidings.model.records import Delivery, Match
from tidings.policy import Policy, Subscriber, is_steady
from tidings.score import DECAYS
from tidings.window import Moment, Pick, snapshot_fields
from tidings.window.buffer import sequence_of

_OURS: Final = frozenset({*DECAYS.values(), *DIVERSIFIERS.values()})


class PolicyChooser:
    """What a policy chooses from matches: decay makes candidates, the diversifier a set."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.k = policy.k
        self.best_only = policy.diversify.name == "none"
        self.steady = is_steady(policy.decay, policy.diversify)
        self._keeper = keep(policy.diversify)
        self._foreign = not {type(policy.decay), type(policy.diversify)} <= _OURS

    def choose(self, matches: Sequence[Match], now_us: int) -> list[tuple[Match, float]]:
        """Choose at most k, in order of choice."""
        candidates = self._candidates(matches, now_us)
        chosen = self._keeper.choose(candidates, self.k)
        if self._foreign:
            chosen = _checked(self._policy.diversify.name, chosen, len(candidates), self.k)
        return [(matches[i], candidates[i].rank) for i in chosen]

    def ranked(self, matches: Sequence[Match], now_us: int) -> list[tuple[Match, float]]:
        """Give all of them, best fresh rank first."""
        pairs = list(zip(matches, self._candidates(matches, now_us), strict=True))
        pairs.sort(key=lambda pair: best_first(pair[1]))
        return [(match, candidate.rank) for match, candidate in pairs]

    def divrank(self, matches: Sequence[Match], now_us: int) -> float:
        """Give the diversity-aware rank of a set."""
        return self._keeper.divrank(self._candidates(matches, now_us))

    def _candidates(self, matches: Sequence[Match], now_us: int) -> list[Candidate]:
        decay = self._policy.decay
        found = [
            Candidate(
                each.event,
                decay.fresh(each.score, each.event.published_us, now_us),
                decay.key(each.score, each.event.published_us),
            )
            for each in matches
        ]
        if self._foreign:
            for each in found:
                check_summable(f"the fresh rank of {each.event.id} by {decay.name}", each.rank)
                _check_key(f"the key of {each.event.id} by {decay.name}", each.key)
        return found


def _check_key(what: str, key: Any) -> None:
    """Refuse a key that cannot be compared; it may be infinite."""
    if not isinstance(key, int | float) or math.isnan(key):
        raise TidingsError(f"{what} must be a number, not {shown(key)}")


def _checked(name: str, chosen: Sequence[Any], count: int, k: int) -> list[int]:
    """Return a choice of somebody's own, if it is at most k different ones of the candidates."""
    found = [each for each in chosen if isinstance(each, int) and 0 <= each < count]
    if len(found) != len(chosen) or len(set(found)) != len(found) or len(found) > k:
        raise TidingsError(
            f"diversifier {name} must choose at most {k} different indexes below {count}, "
            f"not {shown(chosen)}"
        )
    return found


class Feed:
    """Turns the matches of one subscriber, offered in order of publication, into deliveries.

    The in-process engine, Spark and replay all drive this object.
    """

    def __init__(self, subscriber: Subscriber) -> None:
        self.subscriber = subscriber
        self._window = subscriber.policy.window.open(PolicyChooser(subscriber.policy))
        self._delivered = 0
        self._numbered = getattr(subscriber.policy.window, "count", None) == "published"

    def check(self, match: Match) -> None:
        """Refuse a match that the window has no place for, before anything has changed."""
        if self._numbered:
            sequence_of(match)

    def offer(self, match: Match, now: Moment) -> list[Delivery]:
        """Take a match published at `now`."""
        return self._deliver(self._window.offer(match, now))

    def advance(self, now: Moment) -> list[Delivery]:
        """Say that the stream has come to `now`."""
        return self._deliver(self._window.advance(now))

    def current(self, now: Moment) -> list[Delivery]:
        """Give the list as it stands, on demand; positions are in order, sequences 0."""
        return [self._delivery(pick, 0) for pick in self._window.current(now)]

    def snapshot(self) -> dict[str, Any]:
        """Give the state as JSON."""
        return {"delivered": self._delivered, "window": self._window.snapshot()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        delivered, window = (
            snapshot_fields.whole(state, "delivered"),
            snapshot_fields.field(state, "window"),
        )
        self._window.restore(window)
        self._delivered = delivered

    def _deliver(self, picks: list[Pick]) -> list[Delivery]:
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
        )
