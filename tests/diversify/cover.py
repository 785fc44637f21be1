"""Independent dominating sets by their definition (TKS Alg. 4.1), for disc and maxdivrel."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

from hypothesis import strategies as st
from tests.diversify.small import Between, by_rank

from tidings.diversify.protocol import Candidate

Gain = Callable[[Candidate, list[Candidate], Between], Fraction | float]

ALPHAS = st.sampled_from(
    [Fraction(alpha) for alpha in ("1/4", "1/3", "1/2", "2/3", "3/4", "1", "2")]
)


def near(one: Candidate, other: Candidate, alpha: Fraction, exact: Between) -> bool:
    return exact(one.event, other.event) <= alpha


def cover(window: list[Candidate], alpha: Fraction, exact: Between, gain: Gain) -> list[Candidate]:
    """While some are white: choose the one of largest gain over its white neighbours."""
    white, chosen = sorted(window, key=by_rank), []
    while white:

        def value(member: Candidate, white: list[Candidate] = white) -> Fraction | float:
            around = [q for q in white if q is not member and near(member, q, alpha, exact)]
            return gain(member, around, exact)

        best = max(white, key=value)
        chosen.append(best)
        white = [member for member in white if not near(member, best, alpha, exact)]
    return chosen


def cut(chosen: list[Candidate], k: int) -> list[Candidate]:
    """The k most relevant, in order of choice."""
    kept = sorted(chosen, key=by_rank)[:k]
    return [member for member in chosen if member in kept]


def fitting_cover(window: list[Candidate], k: int, exact: Between, gain: Gain) -> list[Candidate]:
    """Scan all alphas from far above the largest distance down to 0, also between distances."""
    apart = {exact(one.event, other.event) for one in window for other in window}
    marks = sorted({Fraction(0), Fraction(2), *apart})
    between = {(low + high) / 2 for low, high in pairwise(marks)}
    covers = [
        cover(window, alpha, exact, gain) for alpha in sorted({*marks, *between}, reverse=True)
    ]
    return next((cover_ for cover_ in covers if len(cover_) >= k), covers[-1])
