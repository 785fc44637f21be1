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
