"""The events that the rule `different` compares: their features, and distances without a kernel.

Kernels measure overlap and Jaccard distances from rows of features. For any other distance they
stop at a pick, and `measure` finds the nearest received event.
"""

from typing import Any

import numpy as np

from tidings.compiled.array_types import Int32s, Int64s
from tidings.diversify.distance import checked_distance
from tidings.diversify.protocol import Distance
from tidings.feed.columnar.deliveries import IdTables
from tidings.feed.columnar.event_table import NO_FEATURES, FeatureCache
from tidings.feed.columnar.kernels.layout import EVENT as PICKED_EVENT
from tidings.feed.columnar.kernels.layout import FeatureColumns
from tidings.feed.columnar.rules.kernels import layout
from tidings.feed.columnar.rules.kernels.layout import (
    AT,
    EVENT,
    KEPT_SLOT,
    KeptGaps,
    MeasuredGaps,
    Picks,
)
from tidings.feed.columnar.rules.rows import RuleRows
from tidings.model.values import rounded
from tidings.policy import Policy


class ComparedEvents:
    """The events that the rules of a group compare, and the distances between them."""

    def __init__(
        self, policy: Policy, rows: RuleRows, tables: IdTables, features: FeatureCache
    ) -> None:
        self._rules, self._rows, self._events = policy.rules, rows, tables.events
        compared, places = rows.rules.compared, len(rows.rules.codes.kind)
        self._features = features.table(compared, True) if compared else None
        self.measured = MeasuredGaps(np.full(places, -1), np.zeros(places))
        self.kept = KeptGaps(
            np.zeros(layout.KEPT_WIDTH, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(1)
        )

    @property
    def columns(self) -> FeatureColumns:
        """The features as the kernels take them."""
        return self._features.columns if self._features is not None else NO_FEATURES

    def prepare(self, rows: Int32s, picks: Picks) -> None:
        """Compute the features of events that are compared for the first time in a run."""
        if self._features is None:
            return
        self._add(picks.columns[:, PICKED_EVENT].copy())
        self._add_restored(rows)
        # No gap is kept from run to run: a slot may have another event by then.
        size = len(self._events.us)
        if size > len(self.kept.gap):
            self.kept = self.kept._replace(turn=np.zeros(size, np.int64), gap=np.zeros(size))
        self.kept.state[KEPT_SLOT] = -1

    def _add_restored(self, rows: Int32s) -> None:
        """Compute the features of what restored rows refer to, before they are used."""
        state = self._rows
        if not state.any_restored:
            return
        missing = np.unique(rows[state.is_restored[rows]])
        state.is_restored[missing] = False
        state.any_restored = bool(state.is_restored.any())
        rings, held = state.ring_numbers(missing), state.held_cells(state.lines(missing))
        kinds = state.rules.codes.kind[rings % state.ringed]
        got = state.received(state.got_cells(rings[kinds == layout.DIFFERENT])).slot
        self._add(np.concatenate([got.astype(np.int64), state.held_cell[held, EVENT]]))

    def _add(self, slots: Int64s) -> None:
        """Compute the features of events; those of which only the id is known are near to none."""
        assert self._features is not None
        # One event is picked for many in a row, so that few are left without repeats.
        starts = np.flatnonzero(slots[1:] != slots[:-1]) + 1
        distinct = {*slots[starts].tolist(), *slots[:1].tolist()}
        known = sorted(filter(self._events.is_described, distinct))
        self._features.add(self._events, known)
        if len(known) < len(distinct):
            self._features.leave_out(sorted(distinct.difference(known)))

    def measure(self, row: int) -> None:
        """Find the nearest events to the pick in cell 0 by distances that kernels lack."""
        events, rows = self._events, self._rows
        slot, at = int(rows.held_cell[0, EVENT]), int(rows.held_cell[0, AT])
        for place in np.flatnonzero(rows.rules.codes.measured).tolist():
            rule: Any = self._rules[place]
            got = rows.received(rows.got_cells(np.array([row * rows.ringed + place])))
            expired = int((got.us <= at - rule.within.us).sum())
            # Of equally near ones the last counts, so places are negative for `min`.
            gaps = [
                (self._distance(rule.distance, slot, other), -nth)
                for nth, other in enumerate(got.slot[expired:].tolist())
                if events.is_described(slot) and events.is_described(other)
            ]
            self.measured.gap[place], nearest = min(gaps, default=(0.0, 1))
            self.measured.nearest[place] = -nearest

    def _distance(self, distance: Distance, one: int, other: int) -> float:
        pair = self._events.event(one), self._events.event(other)
        return rounded(checked_distance(distance, *pair))
