"""Calendar spans for kernels, extended as time goes on."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.feed.columnar.kernels.layout import FAR
from tidings.feed.columnar.rules.codes import LocalSpans
from tidings.feed.columnar.rules.kernels.layout import LATEST_WIDTH, CalendarSpans
from tidings.model.calendar import Period
from tidings.rules.quiet import Quiet
from tidings.rules.quota import Quota

_DAY_US: Final = 86_400_000_000
_BEHIND_US: Final = 7 * _DAY_US
_AHEAD_US: Final = 35 * _DAY_US
_FURTHEST_END_US: Final = 3 * _DAY_US
_LONGEST_US: Final = 800 * _DAY_US
"""The most time that is kept; beyond it, only the time around the last question."""
_NO_SPANS: Final = np.zeros((0, 2), np.int64)


class SpanTables:
    """The spans of the rules of a group, by place, around the instants that were asked for."""

    def __init__(self, calendars: Sequence[LocalSpans | None]) -> None:
        self._calendars = calendars
        self._spans: list[Int64s] = [_NO_SPANS for _ in calendars]
        self._known = np.zeros((len(calendars), 2), np.int64)
        self.columns = self._columns()

    def load(self, place: int, us: int) -> None:
        """Add the spans around an instant."""
        calendar = self._calendars[place]
        assert calendar is not None
        low, high = us - _BEHIND_US, us + _AHEAD_US
        known_low, known_high = self._known[place].tolist()
        known = self._spans[place]
        together = min(low, known_low), max(high, known_high)
        if known_low == known_high or together[1] - together[0] > _LONGEST_US:
            known, together = _NO_SPANS, (low, high)
        else:  # what is known stays: only the time up to it is looked up
            low, high = min(low, known_high), max(high, known_low)
        spans = np.array(calendar.between(low, high), np.int64).reshape(-1, 2)
        before, after = known[known[:, 1] <= low], known[known[:, 0] >= high]
        self._spans[place] = np.concatenate([before, spans, after])
        self._known[place] = together
        self.columns = self._columns()

    def _columns(self) -> CalendarSpans:
        spans = np.concatenate([_NO_SPANS, *self._spans])
        sizes = [len(each) for each in self._spans]
        return CalendarSpans(
            spans[:, 0].copy(),
            spans[:, 1].copy(),
            np.cumsum([0, *sizes], dtype=np.int64),
            self._known.copy(),
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
