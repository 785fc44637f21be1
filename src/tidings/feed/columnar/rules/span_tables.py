"""Calendar spans for kernels, extended as time advances."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.feed.columnar.kernels.layout import FAR
from tidings.feed.columnar.rules.codes import LocalSpans
from tidings.feed.columnar.rules.kernels.layout import LATEST_WIDTH, CalendarSpans
from tidings.model.calendar import LocalPeriods, Period
from tidings.rules.quiet import Quiet
from tidings.rules.quota import Quota

_DAY_US: Final = 86_400_000_000
_FURTHEST_END_US: Final = 3 * _DAY_US
_MOST_SPANS: Final = 2_000
"""The most spans of a rule that are kept; beyond it, only those around the last question."""


class _KnownSpans(NamedTuple):
    """All spans of a calendar that touch the instants [low, high), one per row."""

    low: int
    high: int
    spans: Int64s

    def contains(self, us: int) -> bool:
        return self.low <= us < self.high

    def joined(self, other: "_KnownSpans") -> "_KnownSpans | None":
        """Return both as one; None if there is time between them, or if they are too many."""
        first, last = sorted((self, other), key=lambda known: known.low)
        if (
            self is _NOTHING
            or first.high != last.low
            or len(first.spans) + len(last.spans) > _MOST_SPANS
        ):
            return None
        # A span that touches both stands once.
        behind = last.spans[last.spans[:, 0] >= first.high]
        return _KnownSpans(first.low, last.high, np.concatenate([first.spans, behind]))


def _table(spans: Sequence[Period]) -> Int64s:
    return np.array(spans, np.int64).reshape(-1, 2)


_NOTHING: Final = _KnownSpans(0, 0, _table([]))


def _near(calendar: LocalSpans, known: _KnownSpans, us: int) -> _KnownSpans:
    """Return the spans around an instant, next to those that are known if it is near to them."""
    size = calendar.chunk_days * _DAY_US
    low = us - us % size
    high = low + size
    if known.high <= us < known.high + size:
        low = known.high
    elif known.low - size <= us < known.low:
        high = known.low
    elif isinstance(calendar, LocalPeriods):
        # After a long gap the next event may be as far away again, so that one period is enough.
        period = calendar.period(us)
        return _KnownSpans(*period, _table([period]))
    return _KnownSpans(low, high, _table(calendar.between(low, high)))


class SpanTables:
    """The spans of the rules of a group, by place, around the instants that were asked for.

    However far two instants are apart, nothing between them is looked up.
    """

    def __init__(self, calendars: Sequence[LocalSpans | None]) -> None:
        self._calendars = calendars
        self._known = dict.fromkeys(calendars, _NOTHING)
        self._before = dict(self._known)
        self.columns = self._columns()

    def load(self, us: int) -> None:
        """Add the spans of all rules around an instant, since most of them need theirs next."""
        for calendar, known in self._known.items():
            if calendar is None or known.contains(us):
                continue
            # Subscribers in turn release what they held long ago, and then take what is new.
            before = self._before[calendar]
            near = before if before.contains(us) else _near(calendar, known, us)
            joined = known.joined(near)
            if joined is None:
                self._before[calendar] = known
            self._known[calendar] = joined or near
        self.columns = self._columns()

    def _columns(self) -> CalendarSpans:
        tables = [self._known[calendar] for calendar in self._calendars]
        spans = np.concatenate([_NOTHING.spans, *(known.spans for known in tables)])
        sizes = [len(known.spans) for known in tables]
        return CalendarSpans(
            spans[:, 0].copy(),
            spans[:, 1].copy(),
            np.cumsum([0, *sizes], dtype=np.int64),
            np.array([known[:2] for known in tables], np.int64).reshape(-1, 2),
            np.zeros((len(sizes), LATEST_WIDTH), np.int64),
        )


class NextEnds:
    """The ends of the periods and quiet hours of some rules, at which they release events."""

    def __init__(self, rules: Sequence[Any]) -> None:
        self._quotas = [rule.calendar for rule in rules if isinstance(rule, Quota)]
        self._hours = [rule.spans for rule in rules if isinstance(rule, Quiet)]
        self._known = Period(0, 0)

    def after(self, us: int) -> int:
        """Return the first end after an instant; later than any instant if there is none."""
        if not self._known.start <= us < self._known.end:
            ends = [calendar.period(us).end for calendar in self._quotas]
            for spans in self._hours:
                near = spans.between(us, us + _FURTHEST_END_US)
                ends.append(min((span.end for span in near), default=us + _FURTHEST_END_US))
            self._known = Period(us, min(ends, default=FAR))
        return self._known.end
