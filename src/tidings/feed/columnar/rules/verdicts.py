"""Verdicts of rules as columns, turned into objects on demand."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Bools, Float64s, Int32s, Int64s
from tidings.feed.columnar.deliveries import IdTables
from tidings.feed.columnar.rules.kernels.layout import (
    DETAIL,
    EXPECTED,
    FILLS,
    LEFT,
    NONE,
    OTHER,
    OUTRANKED,
    QUIET_BEST,
    QUIET_HOURS,
    QUIET_OUTRANKED,
    REASON,
    TOO_NEAR,
    UNTIL,
    USED_UP,
    VERDICT_AT,
    VERDICT_EVENT,
    VERDICT_PLACE,
)
from tidings.rules import RulePart, Verdict
from tidings.rules.quiet import HOURS_ENDED, HOURS_QUIET
from tidings.rules.quota import PERIOD_ENDED
from tidings.rules.verdict import BetterExpected, Displaced, Fate, Outranked, QuotaSpent, TooNear

FATES: Final[dict[int, Fate]] = {
    TOO_NEAR: "dropped",
    EXPECTED: "held",
    OUTRANKED: "dropped",
    USED_UP: "dropped",
    FILLS: "released",
    QUIET_HOURS: "held",
    QUIET_OUTRANKED: "dropped",
    QUIET_BEST: "released",
}
_SENTENCES: Final = {FILLS: PERIOD_ENDED, QUIET_HOURS: HOURS_QUIET, QUIET_BEST: HOURS_ENDED}


class VerdictColumns(NamedTuple):
    """The verdicts of one run: the columns of `kernels.layout`, and more."""

    subscriber: Int64s
    columns: Int64s
    figures: Float64s
    rules: Sequence[RulePart]

    def counts(self) -> dict[tuple[int, str], int]:
        """Return how many verdicts each subscriber has of each rule."""
        places = len(self.rules)
        keys = self.subscriber * places + self.columns[:, VERDICT_PLACE]
        different, numbers = np.unique(keys, return_counts=True)
        counts = Counter[tuple[int, str]]()
        for key, number in zip(different.tolist(), numbers.tolist(), strict=True):
            counts[key // places, self.rules[key % places].name] += number
        return counts

    def reasons(self, tables: IdTables) -> list[str]:
        """Return the rule and the reason of each verdict in words; equal ones are written once."""
        figures = np.ascontiguousarray(self.figures).view(np.int64)
        telling = [VERDICT_PLACE, REASON, DETAIL, LEFT, OTHER]
        keys = np.column_stack([self.columns[:, telling], figures])
        _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        different = self._selected(first).objects(tables)
        texts = [verdict.account for _, _, verdict in different]
        return [texts[index] for index in inverse.ravel().tolist()]

    def mark_slots(self, alive: Int32s) -> None:
        """Mark the event slots that verdicts refer to."""
        alive[self.columns[:, VERDICT_EVENT]] = 1
        others = self.columns[:, OTHER]
        alive[others[others != NONE]] = 1
        details = self.columns[self.columns[:, REASON] == QUIET_OUTRANKED, DETAIL]
        alive[details[details != NONE]] = 1

    def objects(self, tables: IdTables) -> Iterator[tuple[int, int, Verdict]]:
        """Yield the number of the subscriber, the place of the rule, and the verdict."""
        columns = (self.subscriber, self.columns, self.figures)
        for subscriber, row, figure in zip(*(column.tolist() for column in columns), strict=True):
            place = row[VERDICT_PLACE]
            yield subscriber, place, _verdict(tables, self.rules[place], row, figure)

    def without(self, subscriber: int) -> "VerdictColumns":
        """Return the verdicts of all other subscribers."""
        return self._selected(self.subscriber != subscriber)

    def of_fate(self, fate: Fate) -> "VerdictColumns":
        """Return the verdicts of one fate."""
        reasons = [reason for reason in FATES if FATES[reason] == fate]
        return self._selected(np.isin(self.columns[:, REASON], reasons))

    def _selected(self, rows: Bools | Int64s) -> "VerdictColumns":
        return VerdictColumns(
            self.subscriber[rows], self.columns[rows], self.figures[rows], self.rules
        )


def _verdict(tables: IdTables, rule: RulePart, row: Sequence[int], figure: float) -> Verdict:
    other = None if row[OTHER] == NONE else tables.events.id(row[OTHER])
    return Verdict(
        event=tables.events.id(row[VERDICT_EVENT]),
        rule=rule.name,
        fate=FATES[row[REASON]],
        at_us=row[VERDICT_AT],
        reason=_reason(tables, rule, row, figure, other),
        until_us=None if row[UNTIL] == NONE else row[UNTIL],
        other=other,
    )


def _reason(
    tables: IdTables, rule: Any, row: Sequence[int], figure: float, other: str | None
) -> object:
    reason = row[REASON]
    if reason == TOO_NEAR and other is not None:
        return TooNear(other, row[DETAIL], figure, rule.min)
    if reason == EXPECTED:
        return BetterExpected(row[DETAIL], figure, row[LEFT])
    if reason == OUTRANKED:
        return Displaced(row[LEFT], other)
    if reason == USED_UP:
        return QuotaSpent(rule.n, row[DETAIL])
    if reason == QUIET_OUTRANKED:
        return Outranked([] if row[DETAIL] == NONE else [tables.events.id(row[DETAIL])])
    return _SENTENCES[reason]
