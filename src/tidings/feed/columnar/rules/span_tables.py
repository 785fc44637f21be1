"""Calendar spans for kernels, extended as time advances."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.feed.columnar.kernels.layout import FAR
from tidings.feed.columnar.rules.codes import LocalSpans
from tidings.feed.columnar.rules.kernels.layout import LATEST_WIDTH, CalendarSpans
from tidings.model.calendar import Period
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


class SpanTables:
    """The spans of the rules of a group, by place, around the instants that were asked for.

    However far two instants are apart, nothing between them is looked up.
    """

    def __init__(self, calendars: Sequence[LocalSpans | None]) -> None:
        self._calendars = calendars
        self._known = [_NOTHING for _ in calendars]
        self._before = [_NOTHING for _ in calendars]
        self.columns = self._columns()

    def load(self, place: int, us: int) -> None:
        """Add the spans around an instant."""
        calendar, known = self._calendars[place], self._known[place]
        assert calendar is not None
        if known.contains(us):
            return
        if self._before[place].contains(us):
            # Subscribers in turn release what they held long ago, and then take what is new.
            self._known[place], self._before[place] = self._before[place], known
        else:
            size = calendar.chunk_days * _DAY_US
            low = us - us % size
            near = _KnownSpans(low, low + size, _table(calendar.between(low, low + size)))
            joined = known.joined(near)
            if joined is None:
                self._before[place] = known
            self._known[place] = joined or near
        self.columns = self._columns()

    def _columns(self) -> CalendarSpans:
        spans = np.concatenate([_NOTHING.spans, *(known.spans for known in self._known)])
        sizes = [len(known.spans) for known in self._known]
        return CalendarSpans(
            spans[:, 0].copy(),
            spans[:, 1].copy(),
            np.cumsum([0, *sizes], dtype=np.int64),
            np.array([known[:2] for known in self._known], np.int64).reshape(-1, 2),
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
