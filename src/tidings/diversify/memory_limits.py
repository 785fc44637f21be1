"""Limits of diversifiers that compare all pairs, or all sets, of candidates at once."""

from typing import Any, Final

from tidings.errors import InvalidPolicy, TidingsError

DENSE: Final = 10_000
"""Candidates of one choice; their distances and neighbour lists take up to 3 GB."""
DENSE_DIVERSIFIERS: Final = frozenset({"disc", "maxdivrel", "optimal"})


def is_dense(part: Any) -> bool:
    """Return whether a diversifier compares all pairs of the candidates at once."""
    return part.name in DENSE_DIVERSIFIERS


def check_dense(what: str, count: int, error: type[TidingsError] = InvalidPolicy) -> None:
    """Raise if `count` candidates have more pairs than memory can be expected to hold."""
    if count > DENSE:
        raise error(f"{what} compares all pairs of at most {DENSE:,} candidates, not {count:,}")


def check_keys(
    count: int, tables: int, most: int, error: type[TidingsError] = InvalidPolicy
) -> None:
    """Raise if a window of `count` events has more than `most` bands in all tables."""
    if count * tables > most:
        raise error(
            f"{count:,} events in {tables:,} tables of maxdivrel-lsh are more than the limit "
            f"lsh_keys = {most:,}"
        )


def check_sets(count: int, k: int, most: int, error: type[TidingsError] = TidingsError) -> None:
    """Raise if there are more than `most` sets of k of `count` candidates.

    >>> check_sets(9, 3, most=5)
    Traceback (most recent call last):
    tidings.errors.TidingsError: the sets of 3 of 9 events are more than the limit optimal_sets = 5
    """
    sets, size = 1, min(k, count - k)
    for chosen in range(size):
        sets = sets * (count - chosen) // (chosen + 1)
        if sets > most:  # sets is at least 2 ** chosen, so the loop ends soon
            raise error(
                f"the sets of {k:,} of {count:,} events are more than the limit "
                f"optimal_sets = {most:,}"
            )
