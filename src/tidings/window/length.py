"""Lengths of windows: counts of events, or durations."""

from dataclasses import dataclass
from typing import Any, Final

from tidings.errors import InvalidPolicy, InvalidValue, shown
from tidings.model import validate
from tidings.model.values import SECOND_US, format_duration, parse_duration_us

_LONGEST_US: Final = 1_000 * 366 * 86_400 * SECOND_US
"""A thousand years."""
COUNTS: Final = ("matching", "published")


@dataclass(frozen=True)
class Length:
    """A count of events or a duration; exactly one of the two is set."""

    count: int | None = None
    us: int | None = None

    def to_form(self) -> int | str:
        """Return the form that users write."""
        return format_duration(self.us) if self.us is not None else self.count or 0


@validate.guarded_by(InvalidPolicy)
def length(what: str, value: Any) -> Length:
    """Return the length of a count (`100`) or a duration (`"30m"`, a timedelta); not 0.

    >>> length("length", "30m").us
    1800000000
    """
    if isinstance(value, Length):
        return value
    if isinstance(value, int):
        return Length(count=validate.count(what, value))
    try:
        us = parse_duration_us(value)
    except (InvalidValue, OverflowError) as error:
        raise InvalidPolicy(f"{what} is a count of events or a duration: {error}") from None
    if not 0 < us <= _LONGEST_US:
        raise InvalidPolicy(f"{what} is above 0 and at most a thousand years, not {shown(value)}")
    return Length(us=us)


def read_lengths(part: object, *names: str) -> None:
    """Replace the named parameters of a frozen part, counts or durations, by their lengths."""
    for name in names:
        object.__setattr__(part, name, length(name, getattr(part, name)))


def check_count(count: str, size: Length | None) -> None:
    """Check the kind of events that a length counts; "published" needs a length that is a count."""
    validate.choice("count", count, COUNTS)
    if count == "published" and (size is None or size.count is None):
        raise InvalidPolicy('count="published" needs a length that is a count')
