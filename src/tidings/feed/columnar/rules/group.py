"""All subscribers with one policy that has rules: runs the kernel, and helps where it stops."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.exact_sum import PARTS
from tidings.compiled.jit import TypedKernel
from tidings.errors import described
from tidings.feed.columnar.deliveries import CohortDeliveries, IdTables
from tidings.feed.columnar.event_table import FeatureCache
from tidings.feed.columnar.kernels.layout import (
    DELIVERY_WIDTH,
    ORDER,
    ROW,
    EventColumns,
)
from tidings.feed.columnar.period_ends import NO_PERIODS
from tidings.feed.columnar.rules import codes
from tidings.feed.columnar.rules.compared_events import ComparedEvents
from tidings.feed.columnar.rules.kernels import layout
from tidings.feed.columnar.rules.kernels.chain import apply_rules
from tidings.feed.columnar.rules.kernels.compaction import (
    copy_held_sets,
    mark_events,
    release_rules,
)
from tidings.feed.columnar.rules.kernels.layout import (
    EVENT,
    HANDLE,
    HELD,
    NEXT,
    OUT,
    PICK,
    PLACE,
    SLAB,
    STOP,
    VERDICT_SUBSCRIBER,
    VERDICTS,
    WANTED,
    Picks,
    RuleArrays,
    RuleOutput,
    Turns,
)
from tidings.feed.columnar.rules.rows import RuleRows
from tidings.feed.columnar.rules.span_tables import NextEnds, SpanTables
from tidings.feed.columnar.rules.verdicts import VerdictColumns
from tidings.feed.single import PolicyChooser, fast_choice
from tidings.model.records import Match
from tidings.policy import Policy

APPLY_RULES: Final = TypedKernel(apply_rules)
_LARGEST_BUFFER: Final = 1 << 16
_FEW: Final = 64
"""Spare rows in the first buffers of a run, besides the expected ones."""


class RuleResult(NamedTuple):
    """The deliveries of a group, the verdicts of its rules, and the rows whose rules failed."""

    delivered: CohortDeliveries
    verdicts: VerdictColumns
    failed: dict[int, str]
    moved: Int32s  # rows whose deadlines have moved


class RunBuffers:
    """The output of the kernel in one run; full buffers are set aside, and larger ones follow.

    They belong to one run, so that its result is what was written, without a copy.
    """

    def __init__(self, deliveries: int, verdicts: int, turns: int) -> None:
        self.moved = np.empty(turns, np.int32)
        self.progress = np.zeros(layout.PROGRESS_WIDTH, np.int64)
        self._delivered, self._judged = list[_Written](), list[_Written]()
        self._deliveries = _Written.empty(deliveries, DELIVERY_WIDTH)
        self._verdicts = _Written.empty(verdicts, layout.VERDICT_WIDTH)

    @property
    def output(self) -> RuleOutput:
        """The buffers as the kernel takes them."""
        return RuleOutput(*self._deliveries, *self._verdicts, self.moved, self.progress)

    def make_room(self, deliveries: int, verdicts: int) -> None:
        """Begin new buffers where the current ones have no room for this many more rows."""
        progress = self.progress
        if progress[OUT] + deliveries > len(self._deliveries.figures):
            self._delivered.append(self._deliveries.first(int(progress[OUT])))
            self._deliveries, progress[OUT] = self._deliveries.larger(deliveries), 0
        if progress[VERDICTS] + verdicts > len(self._verdicts.figures):
            self._judged.append(self._verdicts.first(int(progress[VERDICTS])))
            self._verdicts, progress[VERDICTS] = self._verdicts.larger(verdicts), 0

    def written(self) -> tuple[Int64s, Float64s, Int64s, Float64s]:
        """Return the columns and ranks of all deliveries, and those of all verdicts."""
        delivered = [*self._delivered, self._deliveries.first(int(self.progress[OUT]))]
        judged = [*self._judged, self._verdicts.first(int(self.progress[VERDICTS]))]
        return (*_joined(delivered), *_joined(judged))


class _Written(NamedTuple):
    """Rows of a buffer: their columns, and the rank or figure of each."""

    columns: Int64s
    figures: Float64s

    @classmethod
    def empty(cls, size: int, width: int) -> "_Written":
        return cls(np.empty((size, width), np.int64), np.empty(size))

    def larger(self, least: int) -> "_Written":
        """Return a new buffer, up to a limit twice as large."""
        size = max(least, min(2 * len(self.figures), _LARGEST_BUFFER))
        return self.empty(size, self.columns.shape[1])

    def first(self, count: int) -> "_Written":
        """Return the first rows; a copy if a view would keep much more in memory."""
        columns, figures = self.columns[:count], self.figures[:count]
        if 2 * count < len(self.figures):
            return _Written(columns.copy(), figures.copy())
        return _Written(columns, figures)


def _joined(parts: Sequence[_Written]) -> _Written:
    if len(parts) == 1:
        return parts[0]
    return _Written(*map(np.concatenate, zip(*parts, strict=True)))


class RuleGroup:
    """The rules of the subscribers with one policy: `rows` have the state, the kernel decides."""

    def __init__(
        self,
        policy: Policy,
        owed: bool,
        tables: IdTables,
        features: FeatureCache,
    ) -> None:
        self.policy, self.owed, self._tables = policy, owed, tables
        rules = codes.rule_set(policy, owed)
        self.rules, self.places = rules, len(rules.codes.kind)
        self.rows = RuleRows(rules, tables)
        self.chooser = PolicyChooser(policy, fast_choice)
        self._compared = ComparedEvents(policy, self.rows, tables, features)
        self._span_tables = SpanTables(rules.calendars)
        self.ends = NextEnds(policy.rules)
        self._partials = np.zeros((2, PARTS))
        self._expected_verdicts = 0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def arrays(self) -> RuleArrays:
        """The arrays as the kernels take them."""
        rows, events = self.rows, self._tables.events
        return RuleArrays(
            rows.heads,
            rows.paused,
            rows.end,
            rows.lists,
            rows.rings,
            rows.held_pool(),
            rows.rank_pool(),
            rows.got_pool(),
            self.rules.codes,
            self.rules.chain,
            self._span_tables.columns,
            EventColumns(events.us, events.sequence, events.id_order, NO_PERIODS),
            self._compared.columns,
            self._compared.measured,
            self._compared.kept,
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
        self._compared.prepare(turns.row, picks)
        verdicts = self._expected_verdicts + self._expected_verdicts // 4 + _FEW
        buffers = RunBuffers(len(picks.rank) + _FEW, verdicts, len(turns.row))
        progress = buffers.progress
        progress[layout.JUDGED] = -1
        failed = dict[int, tuple[int, str]]()
        while True:
            APPLY_RULES(self.arrays, turns, picks, buffers.output)
            turn = int(progress[NEXT])
            if turn == len(turns.row):
                return self._result(buffers, turns, failed)
            row = int(turns.row[turn])
            try:
                self._provide(row, buffers, picks)
            except Exception as error:  # noqa: BLE001 - user-defined distances may raise anything
                self.reset(row)
                failed.setdefault(row, (int(turns.order[turn]), described(error)))
                progress[NEXT], progress[PICK] = turn + 1, turns.first[turn + 1]
                progress[layout.PREFERRED] = 0

    def _result(
        self, buffers: RunBuffers, turns: Turns, failed: dict[int, tuple[int, str]]
    ) -> RuleResult:
        columns, ranks, verdicts, figures = buffers.written()
        self._expected_verdicts = len(figures)
        for row, (order, _) in failed.items():
            self.reset(row)
            is_other = columns[:, ROW] != self.rows.subscriber[row]
            before = is_other | (columns[:, ORDER] < order)
            columns, ranks = columns[before], ranks[before]
        moved = int(buffers.progress[layout.MOVED])
        return RuleResult(
            CohortDeliveries(
                columns[:, ROW].copy(), columns, ranks, ranks, self.policy.window.name
            ),
            VerdictColumns(
                verdicts[:, VERDICT_SUBSCRIBER].copy(), verdicts, figures, self.policy.rules
            ),
            {int(self.rows.subscriber[row]): reason for row, (_, reason) in failed.items()},
            buffers.moved[:moved] if moved <= len(buffers.moved) else turns.row,
        )

    def _provide(self, row: int, buffers: RunBuffers, picks: Picks) -> None:
        """Provide what the kernel stopped for."""
        progress = buffers.progress
        stop, place = int(progress[STOP]), int(progress[PLACE])
        if stop == layout.ROOM:
            more, lines = int(progress[WANTED]), self.rows.lines(np.array([row]))
            buffers.make_room(more, int((self.rows.lists[lines, HELD] + 3 * more).sum()))
            self.rows.make_room(row, more)
        elif stop == layout.CALENDAR:
            self._span_tables.load(int(progress[layout.MISSING_US]))
        elif stop == layout.RANKS:
            self.rows.packed.learn(picks.rank[progress[PICK] :])
        elif stop == layout.CHOICE:
            progress[layout.PREFERRED] = 1 + self._choose(row * self.places + place)
        else:
            self._compared.measure(row)
            progress[layout.JUDGED] = progress[PICK]

    def _choose(self, line: int) -> int:
        """Move what the diversifier chooses to the front of a list; return how many it chose."""
        rows, cells = self.rows, self.rows.held_cells(np.array([line])).tolist()
        subscriber = int(self.rows.subscriber[line // self.places])
        matches = [self.match(subscriber, cell) for cell in cells]
        chosen = self.chooser.choose(matches, int(self.rows.end[line]))
        place_of = {match.event.id: place for place, match in enumerate(matches)}
        first = [place_of[match.event.id] for match, _ in chosen]
        order = np.array([*first, *sorted({*range(len(cells))} - {*first})])
        start = int(rows.lists[line, SLAB])
        for array in (rows.held_nth, rows.held_value):
            array[start : start + len(cells)] = array[start + order]
        return len(first)

    def match(self, subscriber: int, cell: int) -> Match:
        """Return the match in a cell."""
        tables, row = self._tables, self.rows.held_cell[cell]
        event = tables.events.event(int(row[EVENT]))
        matched = tables.matched.ids(int(row[HANDLE]))
        score = float(self.rows.held_score[cell])
        return Match(tables.subscribers.names[subscriber], event, score, matched)

    def mark_slots(self, alive: Int32s) -> None:
        """Mark the event slots in use."""
        mark_events(self.arrays, alive)

    def copy_sets(self, old: Int32s, new: Int32s, used: int) -> int:
        """Copy the sets of matched subscriptions in use; return how much of `new` is used."""
        return int(copy_held_sets(self.arrays, old, new, used))
