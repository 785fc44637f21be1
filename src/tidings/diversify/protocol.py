"""What a diversifier is: the choice of k candidates that go together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from tidings.compiled.array_types import Float64s, Int64s
from tidings.model.records import Event


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


class Order(NamedTuple):
    """What decides between equals, for each candidate; kernels need no strings.

    `newest` is its place by newer publication, then smaller id; `times` its publication in
    microseconds; `names` any numbers that sort as the ids do. Ties between pairs and sets look at
    all three (semantics §5), those between single candidates at `newest` only.
    """

    newest: Int64s
    times: Int64s
    names: Int64s

    def at(self, places: Int64s) -> "Order":
        """Give the order of some candidates only; `newest` then has gaps, which do not matter."""
        return Order(self.newest[places], self.times[places], self.names[places])


class Diversifier(Protocol):
    """A part of a policy; `sigma` and `distance` also serve the set rank of PREF Def. 10."""

    name: ClassVar[str]

    @property
    def sigma(self) -> float: ...
    @property
    def distance(self) -> Distance: ...

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Give the indexes of at most k candidates, in order of choice; all, if fewer than k."""

    def pick(self, ranks: Float64s, keys: Float64s, order: Order, apart: Any, k: int) -> Int64s:
        """Choose as `choose` does, from arrays that a window keeps.

        `apart` holds the n x n distances of the candidates, or is an `Among` that names rows of a
        larger matrix; for `maxdivrel-lsh` it holds their bands, a row for each.
        """


def best_first(candidate: Candidate) -> tuple[float, int, str]:
    """Give the order by rank: higher, then newer, then smaller id."""
    return (-candidate.key, -candidate.event.published_us, candidate.event.id)


def ranked(candidates: Sequence[Candidate]) -> list[int]:
    """Give all indexes, best rank first."""
    return sorted(range(len(candidates)), key=lambda i: best_first(candidates[i]))
