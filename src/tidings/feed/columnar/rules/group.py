"""All subscribers with one policy that has rules: the state of their rules in one set of arrays."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int32s, Int64s
from tidings.compiled.exact_sum import PARTS
from tidings.diversify.distance import checked_distance
from tidings.diversify.protocol import Distance
from tidings.errors import described
from tidings.feed.columnar.calendar_periods import NO_PERIODS
from tidings.feed.columnar.delivery_batch import CohortDeliveries, IdTables
from tidings.feed.columnar.event_features import NO_FEATURES, FeatureCache
from tidings.feed.columnar.kernels.decay import order_keys
from tidings.feed.columnar.kernels.layout import (
    DELIVERY_WIDTH,
    FAR,
    ORDER,
    ROW,
    EventColumns,
    Slabs,
)
from tidings.feed.columnar.kernels.layout import EVENT as PICKED_EVENT
from tidings.feed.columnar.ranked_cohort import concatenated_ranges, lengthened, take_last
from tidings.feed.columnar.rules import codes
from tidings.feed.columnar.rules.kernels import layout
from tidings.feed.columnar.rules.kernels.chain import apply_rules
from tidings.feed.columnar.rules.kernels.layout import (
    AT,
    END,
    EVENT,
    FRONT,
    HANDLE,
    HELD,
    NEXT,
    OUT,
    PICK,
    PLACE,
    RING,
    RING_CLASS,
    SIZE,
    SLAB,
    SLAB_CLASS,
    START,
    STOP,
    VERDICT_ROW,
    VERDICTS,
    WANTED,
    GotPool,
    HeldPool,
    MeasuredGaps,
    Picks,
    RankPool,
    RuleArrays,
    RuleOutput,
    Turns,
)
from tidings.feed.columnar.rules.kernels.upkeep import (
    compact_got,
    compact_held,
    compact_ranks,
    copy_held_sets,
    mark_events,
    release_rules,
)
from tidings.feed.columnar.rules.span_tables import SpanTables
from tidings.feed.columnar.rules.verdicts import VerdictColumns
from tidings.feed.single import PolicyChooser, fast_choice
from tidings.model.records import Match
from tidings.model.values import rounded
from tidings.policy import Policy

_FIRST_SIZE: Final = 16
HELD_POOLS: Final = ("held_cell", "held_rank", "held_score", "held_value")
GOT_POOLS: Final = ("got_us", "got_slot")
_LARGEST_BUFFER: Final = 1 << 16


class RuleResult(NamedTuple):
    """What the subscribers of a group get, what the rules did, and whose rules failed."""

    delivered: CohortDeliveries
    verdicts: VerdictColumns
    failed: dict[int, str]


class ListOrder(NamedTuple):
    """The order of a list of held events, and what it is sorted by, in that order."""

    places: Int64s
    values: Float64s


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
    """The rules of the subscribers with one policy, in arrays; see `kernels.layout`."""

    def __init__(
        self,
        policy: Policy,
        owed: bool,
        tables: IdTables,
        features: FeatureCache,
        buffer: RuleBuffer,
    ) -> None:
        self.policy, self.owed, self._tables, self._buffer = policy, owed, tables, buffer
        rules = self.rules = codes.rule_set(policy, owed)
        self.places = len(rules.codes.kind)
        self.chooser = PolicyChooser(policy, fast_choice)
        self.features = features.table(rules.compared, True) if rules.compared else None
        self.span_tables = SpanTables(rules.calendars)
        self.sent, self.deadline = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.paused, self.subscriber = np.zeros(0, np.int8), np.zeros(0, np.int32)
        self.span = np.zeros((0, layout.SPAN_WIDTH), np.int64)
        self.count = np.zeros((0, layout.COUNT_WIDTH), np.int32)
        self.held_cell = np.zeros((1, layout.CELL_WIDTH), np.int64)
        self.held_value, self.held_rank, self.held_score = (np.zeros(1) for _ in range(3))
        self.got_us, self.got_slot = np.zeros(0, np.int64), np.zeros(0, np.int32)
        self.rank = np.zeros(0)
        self.held_slabs, self.rank_slabs = codes.held_slabs(), codes.rank_slabs()
        self.got_slabs = codes.got_slabs()
        self._arrivals, self._partials = np.zeros(1, np.int64), np.zeros((2, PARTS))
        self._gaps = MeasuredGaps(np.full(self.places, -1), np.zeros(self.places))
        self._without_features = np.zeros(0, np.bool_)
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.sent) - len(self._free)

    @property
    def arrays(self) -> RuleArrays:
        """The arrays as the kernels take them."""
        events = self._tables.events
        held = (self.held_cell, self.held_value, self.held_rank, self.held_score)
        return RuleArrays(
            self.sent,
            self.deadline,
            self.paused,
            self.span,
            self.count,
            HeldPool(*held, self.held_slabs, self._arrivals),
            RankPool(self.rank, self.rank_slabs),
            GotPool(self.got_us, self.got_slot, self.got_slabs),
            self.rules.codes,
            self.rules.chain,
            self.span_tables.columns,
            EventColumns(events.us, events.sequence, events.id_order, NO_PERIODS),
            self.features.columns if self.features is not None else NO_FEATURES,
            self._gaps,
            self._partials,
        )

    @property
    def nbytes(self) -> int:
        """The bytes that the arrays of the rules hold."""
        rows = (self.sent, self.deadline, self.paused, self.subscriber, self._without_features)
        pools = (getattr(self, name) for name in (*HELD_POOLS, "rank", *GOT_POOLS))
        return sum(array.nbytes for array in (*rows, self.span, self.count, *pools))

    def enrol_many(self, numbers: Int64s) -> Int32s:
        """Return the rows of new rules for the numbers of subscribers."""
        if len(self._free) < len(numbers):
            self._add_rows(max(len(numbers), _FIRST_SIZE, len(self.sent) // 8))
        rows = take_last(self._free, len(numbers))
        self.subscriber[rows] = numbers
        return rows

    def _add_rows(self, more: int) -> None:
        """Add free rows; `sent`, by whose length rows are counted, grows last."""
        old = len(self.sent)
        size, lines = old + more, (old + more) * self.places
        free = range(size - 1, old - 1, -1)
        self.span, self.count = lengthened(self.span, lines), lengthened(self.count, lines)
        for name in ("subscriber", "paused", "_without_features", "deadline", "sent"):
            setattr(self, name, lengthened(getattr(self, name), size))
        self.deadline[old:] = FAR
        self.span[old * self.places :, [START, END]] = -FAR
        self.count[old * self.places :, [SLAB_CLASS, RING_CLASS]] = -1
        self._free += free

    def drop(self, row: int) -> None:
        """Forget the rules of a row, and free the row."""
        self.reset(row)
        self._free.append(row)

    def reset(self, row: int) -> None:
        """Forget what the rules of a row know and hold, but not whether it is paused."""
        paused = self.paused[row]
        release_rules(self.arrays, row)
        self._without_features[row], self.paused[row] = False, paused

    def lines(self, rows: Int64s | Int32s) -> Int64s:
        """Return the lines of some rows, in order."""
        places = np.arange(self.places)
        return (np.asarray(rows, np.int64)[:, None] * self.places + places).ravel()

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
        return self._result(parts, failed)

    def _result(self, parts: Sequence[Any], failed: dict[int, tuple[int, str]]) -> RuleResult:
        parts = parts or [self._buffer.copy(np.zeros(layout.PROGRESS_WIDTH, np.int64))]
        columns, ranks, verdicts, figures = (
            part[0] if len(part) == 1 else np.concatenate(part) for part in zip(*parts, strict=True)
        )
        for row, (order, _) in failed.items():
            self.reset(row)
            before = (columns[:, ROW] != row) | (columns[:, ORDER] < order)
            columns, ranks = columns[before], ranks[before]
        subscriber = self.subscriber[columns[:, ROW]].astype(np.int64)
        judged = self.subscriber[verdicts[:, VERDICT_ROW]].astype(np.int64)
        return RuleResult(
            CohortDeliveries(subscriber, columns, ranks, ranks, self.policy.window.name),
            VerdictColumns(judged, verdicts, figures, self.policy.rules),
            {int(self.subscriber[row]): reason for row, (_, reason) in failed.items()},
        )

    def _provide(self, row: int, progress: Int64s) -> None:
        """Provide what the kernel stopped for."""
        stop, place = int(progress[STOP]), int(progress[PLACE])
        if stop == layout.ROOM:
            self._make_room(row, int(progress[WANTED]))
        elif stop == layout.CALENDAR:
            self.span_tables.load(place, int(progress[layout.MISSING_US]))
        elif stop == layout.CHOICE:
            self._choose(row * self.places + place)
        else:
            self._measure(row)
            progress[layout.JUDGED] = progress[PICK]

    def _make_room(self, row: int, more: int) -> None:
        """Make room for more events in all lines of a row, and in the buffers."""
        count = self.count[row * self.places : (row + 1) * self.places].astype(np.int64)
        self._buffer.make_room(more, int((count[:, HELD] + 3 * more).sum()))
        lists = _cells(self.held_slabs, count[:, HELD] + more)
        self._reserve(self.held_slabs, lists, SLAB, compact_held, HELD_POOLS)
        ranks = _cells(self.rank_slabs, np.minimum(count[:, SIZE] + 1, layout.REMEMBERED))
        self._reserve(self.rank_slabs, ranks, RING, compact_ranks, ("rank",))
        if layout.DIFFERENT in self.rules.codes.kind:
            got = _cells(self.got_slabs, count[:, SIZE] + more)
            self._reserve(self.got_slabs, got, RING, compact_got, GOT_POOLS)

    def _reserve(
        self,
        slabs: Slabs,
        wanted: int,
        start: int,
        compact: Callable[[RuleArrays, Int64s], None],
        pools: Sequence[str],
    ) -> None:
        """Compact and lengthen pools so that so many cells are left."""
        if slabs.used[0] + wanted > len(getattr(self, pools[-1])):
            compact(self.arrays, np.argsort(self.span[:, start], kind="stable"))
            self._lengthen(pools, int(slabs.used[0]) + wanted)

    def _lengthen(self, pools: Sequence[str], least: int) -> None:
        size = least + least // 4  # lists and rings grow together, in the first days
        for name in pools:
            if size > len(getattr(self, name)):
                setattr(self, name, lengthened(getattr(self, name), size))

    def take_slab(self, slabs: Slabs, size: int, pools: Sequence[str]) -> tuple[int, int]:
        """Return the start and the class of a slab of a pool; class -1 for a size of 0."""
        if not size:
            return 0, -1
        size_class, start = int(np.searchsorted(slabs.capacity, size)), int(slabs.used[0])
        slabs.used[0] += slabs.capacity[size_class]
        self._lengthen(pools, int(slabs.used[0]))
        return start, size_class

    def give_slabs(
        self, slabs: Slabs, lines: Int64s, columns: tuple[int, int, int], pools: Sequence[str]
    ) -> None:
        """Assign slabs to lines by their sizes; columns are those of size, start and class."""
        size, start, slab_class = columns
        sizes = self.count[lines, size].astype(np.int64)
        # With room for one more, since most lists and rings grow soon.
        roomy = np.minimum(sizes + 1, slabs.capacity[-1])
        classes = np.where(sizes > 0, np.searchsorted(slabs.capacity, roomy), -1)
        lengths = np.where(sizes > 0, slabs.capacity[classes], 0)
        self.span[lines, start] = int(slabs.used[0]) + np.cumsum(lengths) - lengths
        self.count[lines, slab_class] = classes
        slabs.used[0] += lengths.sum()
        self._lengthen(pools, int(slabs.used[0]))

    def note_restored(self, rows: AnyArray) -> None:
        """Note that the features of events of some rows must be computed when they are used."""
        self._without_features[rows] = True

    def arrivals(self, count: int) -> Int64s:
        """Return numbers for events that are held from now on."""
        self._arrivals[0] += count
        return int(self._arrivals[0]) - count + 1 + np.arange(count)

    def list_order(
        self, lines: Int64s, cells: Int64s, ranks: Float64s, scores: Float64s
    ) -> ListOrder:
        """Return the order of held events of some lines, given line by line as they arrived."""
        events, slots, chain = self._tables.events, cells[:, EVENT], self.rules.chain
        us, kinds = events.us[slots], self.rules.codes.kind[lines % self.places]
        values = np.empty(len(slots))
        order_keys(chain.decay, scores.copy(), us, values)
        values = np.where(kinds == layout.QUIET, values, ranks)
        as_they_came = kinds == layout.OWED
        if not chain.best_only:
            as_they_came |= kinds == layout.QUIET
        by_id = np.where(as_they_came, np.arange(len(slots)), events.id_order[slots])
        by_time, by_value = np.where(as_they_came, 0, -us), np.where(as_they_came, 0.0, -values)
        places = np.lexsort((by_id, by_time, by_value, lines))
        return ListOrder(places, values[places])

    def _choose(self, line: int) -> None:
        """Let the diversifier choose from the held events of a line, and put the chosen first."""
        cells = self.held_cells(line)
        matches = [self.match(int(self.subscriber[line // self.places]), cell) for cell in cells]
        chosen = self.chooser.choose(matches, int(self.span[line, END]))
        place_of = {match.event.id: place for place, match in enumerate(matches)}
        first = [place_of[match.event.id] for match, _ in chosen]
        order = np.array([*first, *sorted({*range(len(cells))} - {*first})])
        for name in HELD_POOLS:
            pool = getattr(self, name)
            pool[cells] = pool[np.array(cells)[order]]
        self.count[line, SIZE] = len(first) + 1

    def held_cells(self, line: int) -> list[int]:
        """Return the cells of the held events of a line, in their order."""
        start = int(self.span[line, SLAB])
        return [*range(start, start + int(self.count[line, HELD]))]

    def match(self, subscriber: int, cell: int) -> Match:
        """Return the match in a cell."""
        tables, row = self._tables, self.held_cell[cell]
        event = tables.events.event(int(row[EVENT]))
        matched = tables.matched.ids(int(row[HANDLE]))
        score = float(self.held_score[cell])
        return Match(tables.subscribers.names[subscriber], event, score, matched)

    def _measure(self, row: int) -> None:
        """Measure the distances of the pick in cell 0 that kernels cannot."""
        events, at = self._tables.events, int(self.held_cell[0, AT])
        slot = int(self.held_cell[0, EVENT])
        for place in np.flatnonzero(self.rules.codes.measured).tolist():
            rule: Any = self.policy.rules[place]
            cells = self.got_cells(np.array([row * self.places + place]))
            expired = int((self.got_us[cells] <= at - rule.within.us).sum())
            gaps = [
                (self._distance(rule.distance, slot, other), -nth)
                for nth, other in enumerate(self.got_slot[cells[expired:]].tolist())
                if events.is_described(slot) and events.is_described(other)
            ]
            self._gaps.gap[place], nearest = min(gaps, default=(0.0, 1))
            self._gaps.nearest[place] = -nearest

    def _distance(self, distance: Distance, one: int, other: int) -> float:
        events = self._tables.events
        return rounded(checked_distance(distance, events.event(one), events.event(other)))

    def got_cells(self, lines: Int64s) -> Int64s:
        """Return the cells of the events that were got by some lines, oldest first."""
        return self._ring_cells(self.got_slabs, lines)

    def rank_cells(self, lines: Int64s) -> Int64s:
        """Return the cells of the ranks of some lines, oldest first."""
        return self._ring_cells(self.rank_slabs, lines)

    def _ring_cells(self, slabs: Slabs, lines: Int64s) -> Int64s:
        count = self.count[lines].astype(np.int64)
        size = count[:, SIZE]
        capacities = np.repeat(slabs.capacity[count[:, RING_CLASS]], size)
        offsets = concatenated_ranges(count[:, FRONT], size) % capacities
        return np.asarray(np.repeat(self.span[lines, RING], size) + offsets)

    def _add_features(self, rows: Int32s, picks: Picks) -> None:
        """Compute the features of events that are compared for the first time."""
        if self.features is None:
            return
        self._compare(picks.columns[:, PICKED_EVENT])
        if not self._without_features.any():
            return
        missing = np.unique(rows[self._without_features[rows]])
        self._without_features[missing] = False
        lines = self.lines(missing)
        kinds = np.tile(self.rules.codes.kind, len(missing))
        got = self.got_slot[self.got_cells(lines[kinds == layout.DIFFERENT])]
        held = concatenated_ranges(self.span[lines, SLAB], self.count[lines, HELD].astype(np.int64))
        self._compare(np.concatenate([got.astype(np.int64), self.held_cell[held, EVENT]]))

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

    def handles(self) -> Int32s:
        """Return the handles of all held events."""
        held = self.count[:, HELD].astype(np.int64)
        cells = concatenated_ranges(self.span[:, SLAB], held)
        handles: Int32s = self.held_cell[cells, HANDLE].astype(np.int32)
        return handles

    def copy_sets(self, old: Int32s, new: Int32s, used: int) -> int:
        """Copy the sets of matched subscriptions in use; return how much of `new` is used."""
        return int(copy_held_sets(self.arrays, old, new, used))


def _cells(slabs: Slabs, sizes: Int64s) -> int:
    """Return how many cells the smallest slabs take that hold these sizes."""
    classes = np.searchsorted(slabs.capacity, sizes)
    return int(slabs.capacity[np.minimum(classes, len(slabs.capacity) - 1)].sum())
