"""Calendar spans for kernels, extended as time goes on."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

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


class SpanTables:
    """The spans of the rules of a group, by place, around the instants that were asked for."""

    def __init__(self, calendars: Sequence[LocalSpans | None]) -> None:
        self._calendars = calendars
        self._spans: list[list[Period]] = [[] for _ in calendars]
        self._known = np.zeros((len(calendars), 2), np.int64)
        self.columns = self._columns()

    def load(self, place: int, us: int) -> None:
        """Add the spans around an instant."""
        calendar = self._calendars[place]
        assert calendar is not None
        low, high = us - _BEHIND_US, us + _AHEAD_US
        known_low, known_high = self._known[place].tolist()
        together = min(low, known_low), max(high, known_high)
        if known_low < known_high and together[1] - together[0] <= _LONGEST_US:
            low, high = together
        self._spans[place], self._known[place] = calendar.between(low, high), (low, high)
        self.columns = self._columns()

    def _columns(self) -> CalendarSpans:
        spans = np.array([span for each in self._spans for span in each], np.int64).reshape(-1, 2)
        sizes = [len(each) for each in self._spans]
        return CalendarSpans(
            spans[:, 0].copy(),
            spans[:, 1].copy(),
            np.cumsum([0, *sizes], dtype=np.int64),
            self._known.copy(),
            np.zeros((len(sizes), LATEST_WIDTH), np.int64),
        )


class NextEnds:
    """The next end of a period or of quiet hours of some rules, by whose end they may release."""

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
