"""How well a fast choice agrees with a judge's, window for window (TKS 7.3.2)."""

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple


class Agreement(NamedTuple):
    """Two probabilities, over all that the judge chose.

    `diversity`: what the judge chose is chosen. `rank`: it even stands at the same place.
    """

    diversity: float
    rank: float


def agreement(
    choices: Iterable[tuple[Sequence[Hashable], Sequence[Hashable]]],
) -> Agreement:
    """Compare pairs of a choice and the judge's choice, both in order of rank.

    >>> agreement([("abc", "acd"), ("xy", "xy")])
    Agreement(diversity=0.8, rank=0.6)
    """
    both = same = whole = 0
    for chosen, judged in choices:
        both += len(set(chosen) & set(judged))
        same += sum(one == other for one, other in zip(chosen, judged, strict=False))
        whole += len(judged)
    return Agreement(both / whole, same / whole) if whole else Agreement(1.0, 1.0)
