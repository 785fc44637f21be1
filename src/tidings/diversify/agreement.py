"""Agreement of a fast choice with a reference choice, window by window (TKS 7.3.2)."""

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple


class Agreement(NamedTuple):
    """Two probabilities over all events of the reference choices.

    `diversity`: the event is chosen as well. `rank`: it is even at the same position.
    """

    diversity: float
    rank: float


def agreement(
    choices: Iterable[tuple[Sequence[Hashable], Sequence[Hashable]]],
) -> Agreement:
    """Compare pairs of a choice and its reference, both in order of rank.

    >>> agreement([("abc", "acd"), ("xy", "xy")])
    Agreement(diversity=0.8, rank=0.6)
    """
    shared = in_position = total = 0
    for chosen, reference in choices:
        shared += len(set(chosen) & set(reference))
        in_position += sum(a == b for a, b in zip(chosen, reference, strict=False))
        total += len(reference)
    return Agreement(shared / total, in_position / total) if total else Agreement(1.0, 1.0)
