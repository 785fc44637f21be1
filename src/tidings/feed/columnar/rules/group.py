"""All subscribers with one policy that has rules: runs the kernel, and helps where it stops."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.exact_sum import PARTS
from tidings.diversify.distance import checked_distance
from tidings.diversify.protocol import Distance
from tidings.errors import described
from tidings.feed.columnar.calendar_periods import NO_PERIODS
from tidings.feed.columnar.delivery_batch import CohortDeliveries, IdTables
from tidings.feed.columnar.event_features import NO_FEATURES, FeatureCache
from tidings.feed.columnar.kernels.layout import (
    DELIVERY_WIDTH,
    ORDER,
    ROW,
    EventColumns,
)
from tidings.feed.columnar.kernels.layout import EVENT as PICKED_EVENT
from tidings.feed.columnar.ranked_cohort import concatenated_ranges
from tidings.feed.columnar.rules import codes
from tidings.feed.columnar.rules.kernels import layout
from tidings.feed.columnar.rules.kernels.chain import apply_rules
from tidings.feed.columnar.rules.kernels.layout import (
    AT,
    END,
    EVENT,
    HANDLE,
    HELD,
    KEPT_ROW,
    NEXT,
    OUT,
    PICK,
    PLACE,
    SIZE,
    SLAB,
    STOP,
    VERDICT_ROW,
    VERDICTS,
    WANTED,
    KeptGaps,
    MeasuredGaps,
    Picks,
    RuleArrays,
    RuleOutput,
    Turns,
)
from tidings.feed.columnar.rules.kernels.upkeep import (
    copy_held_sets,
    mark_events,
    release_rules,
)
from tidings.feed.columnar.rules.rows import RuleRows
from tidings.feed.columnar.rules.span_tables import SpanTables
from tidings.feed.columnar.rules.verdicts import VerdictColumns
from tidings.feed.single import PolicyChooser, fast_choice
from tidings.model.records import Match
from tidings.model.values import rounded
from tidings.policy import Policy

_LARGEST_BUFFER: Final = 1 << 16


class RuleResult(NamedTuple):
    """What the subscribers of a group get, what the rules did, and whose rules failed."""

    delivered: CohortDeliveries
    verdicts: VerdictColumns
    failed: dict[int, str]
    moved: bool  # whether the deadline of some row is another one


class RuleBuffer:
    """The buffers that the kernel writes to; groups can share them."""

    def __init__(self) -> None:
        self.columns, self.ranks = np.zeros((256, DELIVERY_WIDTH), np.int64), np.zeros(256)
        self.verdicts, self.figures = np.zeros((256, layout.VERDICT_WIDTH), np.int64), np.zeros(256)

    def copy(self, progress: Int64s) -> tuple[Int64s, Float64s, Int64s, Float64s]:
        """Return copies of what is written, and begin again."""
        out, verdicts = int(progress[OUT]), int(progress[VERDICTS])
        progress[OUT] = progress[VERDICTS] = 0
        written = (self.columns[:out], self.ranks[:out])
        judged = (self.verdicts[:verdicts], self.figures[:verdicts])
        return tuple(part.copy() for part in (*written, *judged))  # type: ignore[return-value]

    def make_room(self, deliveries: int, verdicts: int) -> None:
        """Grow to what is needed, and up to a limit twofold each time."""
        size = max(deliveries, min(2 * len(self.ranks), _LARGEST_BUFFER))
        if size > len(self.ranks):
            self.columns, self.ranks = np.zeros((size, DELIVERY_WIDTH), np.int64), np.zeros(size)
        size = max(verdicts, min(2 * len(self.figures), _LARGEST_BUFFER))
        if size > len(self.figures):
            self.verdicts = np.zeros((size, layout.VERDICT_WIDTH), np.int64)
            self.figures = np.zeros(size)


class RuleGroup:
    """The rules of the subscribers with one policy: `rows` have the state, the kernel decides."""

    def __init__(
        self,
        policy: Policy,
        owed: bool,
        tables: IdTables,
        features: FeatureCache,
        buffer: RuleBuffer,
    ) -> None:
        self.policy, self.owed, self._tables, self._buffer = policy, owed, tables, buffer
        rules = codes.rule_set(policy, owed)
        self.rules, self.places = rules, len(rules.codes.kind)
        self.rows = RuleRows(rules, tables)
        self.chooser = PolicyChooser(policy, fast_choice)
        self.features = features.table(rules.compared, True) if rules.compared else None
        self._span_tables = SpanTables(rules.calendars)
        self._partials = np.zeros((2, PARTS))
        self._gaps = MeasuredGaps(np.full(self.places, -1), np.zeros(self.places))
        self._kept = KeptGaps(np.zeros(2, np.int64), np.zeros(0, np.int64), np.zeros(0))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def arrays(self) -> RuleArrays:
        """The arrays as the kernels take them."""
        rows, events = self.rows, self._tables.events
        return RuleArrays(
            rows.sent,
            rows.deadline,
            rows.paused,
            rows.span,
            rows.count,
            rows.held_pool(),
            rows.rank_pool(),
            rows.got_pool(),
            self.rules.codes,
            self.rules.chain,
            self._span_tables.columns,
            EventColumns(events.us, events.sequence, events.id_order, NO_PERIODS),
            self.features.columns if self.features is not None else NO_FEATURES,
            self._gaps,
            self._kept,
            self._partials,
        )

    def drop(self, row: int) -> None:
        """Forget the rules of a row, and free the row."""
        self.reset(row)
        self.rows.free(row)

    def reset(self, row: int) -> None:
        """Forget what the rules of a row know and hold, but not whether it is paused."""
        paused = self.rows.paused[row]
        release_rules(self.arrays, row)
        self.rows.is_restored[row], self.rows.paused[row] = False, paused

    def run(self, turns: Turns, picks: Picks) -> RuleResult:
        """Take turns, each of which passes on picks and moves the clock of a row."""
        self._add_features(turns.row, picks)
        progress, parts = np.zeros(layout.PROGRESS_WIDTH, np.int64), []
        progress[layout.JUDGED] = -1
        failed = dict[int, tuple[int, str]]()
        buffer = self._buffer
        while progress[NEXT] < len(turns.row):
            output = RuleOutput(
                buffer.columns, buffer.ranks, buffer.verdicts, buffer.figures, progress
            )
            apply_rules(self.arrays, turns, picks, output)
            parts.append(buffer.copy(progress))
            turn = int(progress[NEXT])
            if turn == len(turns.row):
                break
            row = int(turns.row[turn])
            try:
                self._provide(row, progress)
            except Exception as error:  # noqa: BLE001 - user-defined distances may raise anything
                self.reset(row)
                failed.setdefault(row, (int(turns.order[turn]), described(error)))
                progress[NEXT], progress[PICK] = turn + 1, turns.first[turn + 1]
        return self._result(parts, failed, bool(progress[layout.MOVED]))

    def _result(
        self, parts: Sequence[Any], failed: dict[int, tuple[int, str]], moved: bool
    ) -> RuleResult:
        parts = parts or [self._buffer.copy(np.zeros(layout.PROGRESS_WIDTH, np.int64))]
        columns, ranks, verdicts, figures = (
            part[0] if len(part) == 1 else np.concatenate(part) for part in zip(*parts, strict=True)
        )
        for row, (order, _) in failed.items():
            self.reset(row)
            before = (columns[:, ROW] != row) | (columns[:, ORDER] < order)
            columns, ranks = columns[before], ranks[before]
        subscriber = self.rows.subscriber[columns[:, ROW]].astype(np.int64)
        judged = self.rows.subscriber[verdicts[:, VERDICT_ROW]].astype(np.int64)
        return RuleResult(
            CohortDeliveries(subscriber, columns, ranks, ranks, self.policy.window.name),
            VerdictColumns(judged, verdicts, figures, self.policy.rules),
            {int(self.rows.subscriber[row]): reason for row, (_, reason) in failed.items()},
            moved or bool(failed),
        )

    def _provide(self, row: int, progress: Int64s) -> None:
        """Provide what the kernel stopped for."""
        stop, place = int(progress[STOP]), int(progress[PLACE])
        if stop == layout.ROOM:
            more, lines = int(progress[WANTED]), self.rows.lines(np.array([row]))
            self._buffer.make_room(more, int((self.rows.count[lines, HELD] + 3 * more).sum()))
            self.rows.make_room(row, more)
        elif stop == layout.CALENDAR:
            self._span_tables.load(place, int(progress[layout.MISSING_US]))
        elif stop == layout.CHOICE:
            self._choose(row * self.places + place)
        else:
            self._measure(row)
            progress[layout.JUDGED] = progress[PICK]

    def _choose(self, line: int) -> None:
        """Let the diversifier choose from the held events of a line, and put the chosen first."""
        cells = self.rows.held_cells(line)
        subscriber = int(self.rows.subscriber[line // self.places])
        matches = [self.match(subscriber, cell) for cell in cells]
        chosen = self.chooser.choose(matches, int(self.rows.span[line, END]))
        place_of = {match.event.id: place for place, match in enumerate(matches)}
        first = [place_of[match.event.id] for match, _ in chosen]
        order = np.array([*first, *sorted({*range(len(cells))} - {*first})])
        for name in self.rows.held.arrays:
            array = getattr(self.rows, name)
            array[cells] = array[np.array(cells)[order]]
        self.rows.count[line, SIZE] = len(first) + 1

    def match(self, subscriber: int, cell: int) -> Match:
        """Return the match in a cell."""
        tables, row = self._tables, self.rows.held_cell[cell]
        event = tables.events.event(int(row[EVENT]))
        matched = tables.matched.ids(int(row[HANDLE]))
        score = float(self.rows.held_score[cell])
        return Match(tables.subscribers.names[subscriber], event, score, matched)

    def _measure(self, row: int) -> None:
        """Measure the distances of the pick in cell 0 that kernels cannot."""
        events, rows = self._tables.events, self.rows
        slot, at = int(rows.held_cell[0, EVENT]), int(rows.held_cell[0, AT])
        for place in np.flatnonzero(self.rules.codes.measured).tolist():
            rule: Any = self.policy.rules[place]
            cells = rows.got_cells(np.array([row * self.places + place]))
            expired = int((rows.got_us[cells] <= at - rule.within.us).sum())
            gaps = [
                (self._distance(rule.distance, slot, other), -nth)
                for nth, other in enumerate(rows.got_slot[cells[expired:]].tolist())
                if events.is_described(slot) and events.is_described(other)
            ]
            self._gaps.gap[place], nearest = min(gaps, default=(0.0, 1))
            self._gaps.nearest[place] = -nearest

    def _distance(self, distance: Distance, one: int, other: int) -> float:
        events = self._tables.events
        return rounded(checked_distance(distance, events.event(one), events.event(other)))

    def _add_features(self, rows: Int32s, picks: Picks) -> None:
        """Compute the features of events that are compared for the first time."""
        if self.features is None:
            return
        self._compare(picks.columns[:, PICKED_EVENT])
        self._add_restored(rows)
        self._forget_gaps()

    def _add_restored(self, rows: Int32s) -> None:
        """Compute the features of what restored rows refer to, before they are used."""
        state = self.rows
        if not state.is_restored.any():
            return
        missing = np.unique(rows[state.is_restored[rows]])
        state.is_restored[missing] = False
        lines = state.lines(missing)
        kinds = np.tile(self.rules.codes.kind, len(missing))
        got = state.got_slot[state.got_cells(lines[kinds == layout.DIFFERENT])]
        sizes = state.count[lines, HELD].astype(np.int64)
        held = state.held_cell[concatenated_ranges(state.span[lines, SLAB], sizes), EVENT]
        self._compare(np.concatenate([got.astype(np.int64), held]))

    def _forget_gaps(self) -> None:
        """Keep no distances from run to run: a row of features may have another event by then."""
        assert self.features is not None
        size = len(self.features.columns.rows.starts)
        if size > len(self._kept.gap):
            size += size // 4
            self._kept = self._kept._replace(turn=np.zeros(size, np.int64), gap=np.zeros(size))
        self._kept.state[KEPT_ROW] = -1

    def _compare(self, slots: Int64s) -> None:
        """Compute the features of events; those of which only the id is known are near to none."""
        assert self.features is not None
        events = self._tables.events
        slots = np.unique(slots)
        known = np.array([events.is_described(slot) for slot in slots.tolist()], np.bool_)
        self.features.add(events, slots[known])
        self.features.leave_out(slots[~known])

    def mark_slots(self, alive: Int32s) -> None:
        """Mark the event slots in use."""
        mark_events(self.arrays, alive)

    def copy_sets(self, old: Int32s, new: Int32s, used: int) -> int:
        """Copy the sets of matched subscriptions in use; return how much of `new` is used."""
        return int(copy_held_sets(self.arrays, old, new, used))
