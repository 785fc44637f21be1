"""What a diversifier is: the choice of k candidates that go together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from tidings.model import Event


@dataclass(frozen=True)
class Candidate:
    """An event with its (fresh) rank; `key` orders ranks, also where decay makes them vanish."""

    event: Event
    rank: float
    key: float


class Distance(Protocol):
    """How different two events are, from 0 to 1.

    Not rounded: that is done where values are compared, since three rounded thirds are not 1.
    """

    name: ClassVar[str]

    def between(self, one: Event, other: Event) -> float:
        """Give the distance; it is symmetric, and 0 between equal events."""


class Diversifier(Protocol):
    """A part of a policy; `sigma` and `distance` also serve the set rank of PREF Def. 10."""

    name: ClassVar[str]

    @property
    def sigma(self) -> float: ...
    @property
    def distance(self) -> Distance: ...

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Give the indexes of at most k candidates, in order of choice; all, if fewer than k."""


def best_first(candidate: Candidate) -> tuple[float, int, str]:
    """Give the order by rank: higher, then newer, then smaller id."""
    return (-candidate.key, -candidate.event.published_us, candidate.event.id)


def ranked(candidates: Sequence[Candidate]) -> list[int]:
    """Give all indexes, best rank first."""
    return sorted(range(len(candidates)), key=lambda i: best_first(candidates[i]))
