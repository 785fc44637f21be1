"""How one subscriber fares: plain publish/subscribe, which sends every match, beside Tidings."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from tidings.app.demo.subscribers import KIND, Role
from tidings.diversify import diversity
from tidings.engine.explain import Explanation
from tidings.model.records import Event


class Line(NamedTuple):
    """A film on somebody's list."""

    position: int
    rank: float
    film: Event
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        film = {"event": self.film.id, **{n: self.film.attributes[n] for n in ("title", "year")}}
        return {"position": self.position, "rank": self.rank, **film, "why": self.why}


@dataclass(frozen=True)
class Tally:
    """What a subscriber had so far: all matches, what was delivered, and the last k of each.

    `diversities` holds the diversity of both lists at the end of every batch.
    """

    role: Role
    matches: int = 0
    score_sum: float = 0.0
    delivered: frozenset[str] = frozenset()
    rank_sum: float = 0.0
    lines: tuple[Line, ...] = ()
    plain: tuple[Event, ...] = ()
    diversities: tuple[tuple[float, float], ...] = ()

    @property
    def share(self) -> float:
        """What part of all matches was delivered."""
        return len(self.delivered) / self.matches if self.matches else 0.0

    @property
    def mean_ranks(self) -> tuple[float, float]:
        """The mean score of all matches, and the mean rank of what was delivered."""
        return self.score_sum / (self.matches or 1), self.rank_sum / (len(self.delivered) or 1)

    @property
    def diversity(self) -> tuple[float, float]:
        """The diversity of the last k matches, and of the last k delivered."""
        return diversity(self.plain, KIND), diversity([line.film for line in self.lines], KIND)

    @property
    def mean_diversities(self) -> tuple[float, float]:
        """The same, averaged over the batches."""
        plain, ours = zip(*(self.diversities or [(0.0, 0.0)]), strict=True)
        return sum(plain) / len(plain), sum(ours) / len(ours)

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form; null where nothing was delivered."""
        return {
            "subscriber": self.role.name,
            "likes": self.role.likes,
            "gets": self.role.gets,
            "matches": self.matches,
            "delivered": len(self.delivered),
            "mean_rank": _pair(self.mean_ranks) if self.delivered else None,
            "mean_diversity": _pair(self.mean_diversities) if self.diversities else None,
            "diversity": _pair(self.diversity) if self.lines else None,
            "list": [line.to_dict() for line in self.lines],
        }


def _pair(both: tuple[float, float]) -> dict[str, float]:
    return {"plain": round(both[0], 4), "tidings": round(both[1], 4)}


def why(told: Explanation, role: Role) -> str:
    """Give what made the rank: the subscription whose score it is, or the predicates that add up.

    >>> from tidings.app.demo.subscribers import cast
    >>> from tidings.engine.explain import explain
    >>> from tidings.rank.matcher import Matcher
    >>> carson = next(role for role in cast() if role.name == "carson")
    >>> film = Event("m1", {"genre": "drama", "director": "T. Burton"}, 0)
    >>> why(explain(Matcher([carson.subscriber], carson.subscriptions), "carson", film), carson)
    "genre = 'drama' and director = 'T. Burton'"
    """
    matched = [reason for reason in told.reasons if reason.matched]
    if role.subscriber.policy.scorer.partial:
        return " + ".join(text for reason in matched for text in reason.holds)
    return " and ".join(next(each.holds for each in matched if each.score == told.rank))
