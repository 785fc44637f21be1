"""The protocols of diversifiers and distances, and the order of ties."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from tidings.compiled.array_types import Float64s, Int64s
from tidings.model.records import Event


@dataclass(frozen=True)
class Candidate:
    """An event with its fresh rank.

    `key` orders candidates by rank, also where decay makes the ranks themselves vanish.
    """

    event: Event
    rank: float
    key: float


class Distance(Protocol):
    """How different two events are, from 0 to 1.

    Distances are not rounded; values are, where they are compared. Three rounded thirds are not 1.
    """

    name: ClassVar[str]

    def between(self, one: Event, other: Event) -> float:
        """Return the distance; it is symmetric, and 0 between equal events."""


class TieOrder(NamedTuple):
    """The order of ties between candidates as numbers, so that kernels need no strings.

    `newest` is the place of each candidate by newer publication, then smaller id; `times` its
    publication time in microseconds; `names` any numbers that sort as the ids do. Ties between
    pairs and sets depend on all three (SEMANTICS 5), ties between single candidates on `newest`.
    """

    newest: Int64s
    times: Int64s
    names: Int64s

    def take(self, places: Int64s) -> "TieOrder":
        """Return the order of some candidates; gaps in `newest` do not matter."""
        return TieOrder(self.newest[places], self.times[places], self.names[places])


class Diversifier(Protocol):
    """A part of a policy; `sigma` and `distance` also define the set rank of PREF Def. 10."""

    name: ClassVar[str]

    @property
    def sigma(self) -> float: ...
    @property
    def distance(self) -> Distance: ...

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Return the indexes of at most k candidates, in order of choice; all if fewer than k."""

    def pick(self, ranks: Float64s, keys: Float64s, order: TieOrder, matrix: Any, k: int) -> Int64s:
        """Choose as `choose` does, from arrays.

        `matrix` holds the n x n distances of the candidates, or is a `Submatrix` that names rows of
        a larger one; for `maxdivrel-lsh` it holds the band keys, a row for each candidate.
        """


def best_first(candidate: Candidate) -> tuple[float, int, str]:
    """Return the sort key by rank: higher, then newer, then smaller id."""
    return (-candidate.key, -candidate.event.published_us, candidate.event.id)


def ranked(candidates: Sequence[Candidate]) -> list[int]:
    """Return all indexes, best rank first."""
    return sorted(range(len(candidates)), key=lambda i: best_first(candidates[i]))
