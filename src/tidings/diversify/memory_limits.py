"""Choices that compare all pairs of candidates, and so need memory for all of them at once."""

from typing import Any, Final

from tidings.errors import InvalidPolicy, TidingsError

DENSE: Final = 10_000
"""Candidates of one choice; their distances and lists of neighbours take up to 3 GB."""
RULES: Final = frozenset({"disc", "maxdivrel", "optimal"})


def is_dense(part: Any) -> bool:
    """Tell whether a diversifier compares all pairs of the candidates at once."""
    return part.name in RULES


def check_dense(what: str, count: int, error: type[TidingsError] = InvalidPolicy) -> None:
    """Refuse to compare all pairs of more candidates than memory can be expected to hold."""
    if count > DENSE:
        raise error(f"{what} compares all pairs of at most {DENSE:,} candidates, not {count:,}")


def check_sets(count: int, k: int, most: int, error: type[TidingsError] = TidingsError) -> None:
    """Refuse to compare all sets of k of so many candidates if they are more than `most`.

    >>> check_sets(9, 3, most=5)
    Traceback (most recent call last):
    tidings.errors.TidingsError: the sets of 3 of 9 events are more than the limit optimal_sets = 5
    """
    sets, others = 1, min(k, count - k)
    for chosen in range(others):
        sets = sets * (count - chosen) // (chosen + 1)
        if sets > most:  # sets are at least 2 ** chosen, so that this ends soon
            raise error(
                f"the sets of {k:,} of {count:,} events are more than the limit "
                f"optimal_sets = {most:,}"
            )
