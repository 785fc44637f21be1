"""Windows small enough for brute force, where ties are common, and distances in exact fractions.

Nothing here comes from `tidings.diversify` but the classes that carry candidates.
"""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.protocol import Candidate
from tidings.model.records import Event

Between = Callable[[Event, Event], Fraction]

SIGMAS = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
RANKS = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
ATTRIBUTES = st.fixed_dictionaries(
    {},
    optional={
        "genre": st.sampled_from(["drama", "comedy", ["drama", "comedy"], ["comedy", "drama"]]),
        "director": st.sampled_from(["Allen", "Burton"]),
        "year": st.sampled_from([2003, 2004]),
    },
)


def candidate(id_: str, rank: float, published_at: float = 0, **attributes: Any) -> Candidate:
    return Candidate(Event(id_, attributes, published_at), rank, rank)


def square(
    times: Sequence[float], ranks: Sequence[float] = (0.5, 0.5, 0.5, 0.5)
) -> list[Candidate]:
    """a, b, c and d, of which only a-b and c-d are 1 apart, and all others 1/2."""
    corners = {"a": (1, 1), "b": (2, 2), "c": (1, 2), "d": (2, 1)}
    return [
        candidate(name, rank, time, x=x, y=y)
        for (name, (x, y)), rank, time in zip(corners.items(), ranks, times, strict=True)
    ]


# Publication times of a square's corners, and which of its two far pairs wins the tie.
SQUARE_TIES = [
    ((3, 3, 0, 4), "ab"),  # the larger sum of times
    ((0, 4, 3, 3), "cd"),
    ((2, 2, 0, 4), "cd"),  # of equal sums the newer member
    ((0, 4, 2, 2), "ab"),
    ((1, 2, 2, 1), "ab"),  # then the smaller ids
]


@st.composite
def windows(draw: st.DrawFn, min_size: int = 0, max_size: int = 6) -> list[Candidate]:
    """Few values, ranks and times, so most draws tie; ids do not follow the input order."""
    drawn = st.tuples(ATTRIBUTES, RANKS, st.integers(0, 2))
    rows = draw(st.lists(drawn, min_size=min_size, max_size=max_size))
    names = draw(st.permutations([f"e{i}" for i in range(len(rows))]))
    return [
        candidate(name, rank, time, **attributes)
        for name, (attributes, rank, time) in zip(names, rows, strict=True)
    ]


AWKWARD = st.sampled_from([0.0, 1e-9, 0.1, 0.2, 0.3, 1 / 3, 0.5, 0.7, 1.0, 250.0, 12345.678])
WIDE = st.fixed_dictionaries(
    {},
    optional={
        name: st.sampled_from([1, 2, 3, "x", ["x", "y"], ["y", "x"], [], True]) for name in "abcdef"
    },
)


@st.composite
def large_windows(draw: st.DrawFn, min_size: int = 0, max_size: int = 20) -> list[Candidate]:
    """Larger windows, ranks whose sums depend on their order, keys that need not be the ranks."""
    drawn = st.tuples(WIDE, AWKWARD, st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 3))
    rows = draw(st.lists(drawn, min_size=min_size, max_size=max_size))
    names = draw(st.permutations([f"e{i}" for i in range(len(rows))]))
    return [
        Candidate(Event(name, attributes, time), rank, key)
        for name, (attributes, rank, key, time) in zip(names, rows, strict=True)
    ]


def sets(event: Event) -> dict[str, frozenset[object]]:
    """Each attribute as the set of its values."""
    return {
        name: frozenset(value if isinstance(value, tuple) else [value])
        for name, value in event.attributes.items()
    }


def overlap(one: Event, other: Event) -> Fraction:
    """PREF Def. 7 with weights 1."""
    left, right = sets(one), sets(other)
    either = left.keys() | right.keys()
    equal = [name for name in left.keys() & right.keys() if left[name] == right[name]]
    return 1 - Fraction(len(equal), len(either)) if either else Fraction(0)


def jaccard(one: Event, other: Event) -> Fraction:
    """TKS 5.2.3."""
    left, right = (
        {(name, value) for name, values in sets(event).items() for value in values}
        for event in (one, other)
    )
    return 1 - Fraction(len(left & right), len(left | right)) if left | right else Fraction(0)


DISTANCES = st.sampled_from([(Overlap(), overlap), (Jaccard(), jaccard)])


def mean(numbers: Iterable[Fraction]) -> Fraction:
    values = list(numbers)
    return sum(values, Fraction(0)) / len(values) if values else Fraction(0)


def by_rank(candidate: Candidate) -> tuple[float, int, str]:
    """The tie order of semantics §3: higher rank, newer, smaller id."""
    return (-candidate.rank, -candidate.event.published_us, candidate.event.id)


def ids(candidates: Sequence[Candidate], chosen: Iterable[int]) -> list[str]:
    return [candidates[i].event.id for i in chosen]


def names(chosen: Iterable[Candidate]) -> list[str]:
    return [member.event.id for member in chosen]
