"""Verdicts: what rules do with events that windows chose, and why.

Reasons are tuples of figures, which become sentences only when they are read: rules judge millions
of events, and few of the reasons are ever asked for.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from tidings.model.values import format_time, parse_time_us

Fate = Literal["held", "released", "dropped"]
_NAMED: Final = 5


class Verdict(NamedTuple):
    """The decision of a rule on an event that the window chose; `str` of the reason is a sentence.

    `until_us` is the time until which it is held at most. `other` is the event that it is too near
    to, or that took its place.
    """

    event: str
    rule: str
    fate: Fate
    at_us: int
    reason: object
    until_us: int | None = None
    other: str | None = None

    def __str__(self) -> str:
        """Return the verdict in words."""
        until = "" if self.until_us is None else f" until {format_time(self.until_us)}"
        return f"{self.fate} by {self.rule} at {format_time(self.at_us)}{until}: {self.reason}"

    @property
    def account(self) -> str:
        """The rule and its reason, as outcomes and dead letters state them."""
        return f"{self.rule}: {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, without the event."""
        until = None if self.until_us is None else format_time(self.until_us)
        return {
            "rule": self.rule,
            "fate": self.fate,
            "at": format_time(self.at_us),
            "until": until,
            "other": self.other,
            "reason": str(self.reason),
        }

    @classmethod
    def from_dict(cls, event: str, form: Mapping[str, Any]) -> "Verdict":
        """Return the verdict of a JSON form; its reason is a sentence already."""
        until_us = None if form["until"] is None else parse_time_us(form["until"])
        at_us = parse_time_us(form["at"])
        return cls(
            event, form["rule"], form["fate"], at_us, form["reason"], until_us, form["other"]
        )


class TooNear(NamedTuple):
    """The event is too near to one that the subscriber received."""

    other: str
    got_us: int
    distance: float
    least: float

    def __str__(self) -> str:
        """Return the reason in words."""
        return (
            f"its distance to {self.other}, got at {format_time(self.got_us)}, is "
            f"{self.distance:g}, below {self.least:g}"
        )


class BetterExpected(NamedTuple):
    """The rest of a quota is expected to go to better events, held or still to come."""

    above: int
    expected: float
    left: int

    def __str__(self) -> str:
        """Return the reason in words."""
        held = "1 that is held ranks" if self.above == 1 else f"{self.above} that are held rank"
        parts = [f"{held} higher"] if self.above else []
        parts += [f"{self.expected:.3g} better ones are expected"] if self.expected else []
        return f"{' and '.join(parts)}, with {self.left} left of the quota"


class QuotaSpent(NamedTuple):
    """Nothing is left of a quota."""

    n: int
    end_us: int

    def __str__(self) -> str:
        """Return the reason in words."""
        have = "1 has" if self.n == 1 else f"{self.n} have"
        return f"{have} passed in the period that ends at {format_time(self.end_us)}"


class Displaced(NamedTuple):
    """Better events, the last of them `other`, use up the rest of a quota."""

    left: int
    other: str | None

    def __str__(self) -> str:
        """Return the reason in words."""
        if not self.left:
            return f"{self.other} took the last of the quota"
        came = f" since {self.other} came" if self.other else ""
        return f"better ones take all {self.left} left of the quota{came}"


class Outranked(NamedTuple):
    """Other events of the quiet hours were chosen."""

    chosen: Sequence[str]

    def __str__(self) -> str:
        """Return the reason in words."""
        more = ", ..." if len(self.chosen) > _NAMED else ""
        return f"the quiet hours held better ones: {', '.join(self.chosen[:_NAMED])}{more}"
