"""The k best subscriptions of events through a box index, where conditions are numeric ranges.

    subscriptions -- one conjunction of ranges --> boxes (live: they can only die)
                  -- any other, or newer -------> rest  (an access index)

Both are queried, and their answers merged. Boxes are numbered in order of their ids, so that ties
come out by id. What the boxes cannot answer, or a change interrupts, the access index of the
matcher answers, which always holds everything.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import chain
from operator import itemgetter
from threading import Lock
from time import thread_time
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from tidings.compiled.array_types import Bools, Float64s, Int64s
from tidings.compiled.arrays import offsets
from tidings.errors import described
from tidings.index.access import Access
from tidings.index.access.query import Scored
from tidings.index.arguments import MAX_RESULTS
from tidings.index.background import BackgroundMerge
from tidings.index.boxes.live import LiveBoxes
from tidings.index.boxes.protocol import BoxAnswers, Boxes
from tidings.index.intervals.auto import ExpectedUse, choose, stats_of
from tidings.index.intervals.kernels.topk_table import ListedColumns
from tidings.index.intervals.live.index import LiveIntervals
from tidings.index.intervals.protocol import rank_intervals
from tidings.index.intervals.topk_table import DEPTH, TopkTable
from tidings.index.protocol import own_score
from tidings.model.records import Event, Subscription, Weighted
from tidings.score.exact import Exact
from tidings.score.protocol import Scorer

LEAST: Final = 2_000
"""Fewer subscriptions are answered by the access index alone."""
ASKED: Final = 256
"""After queries for this many events, boxes are built in the background."""
MOST_CELLS: Final = 1 << 25
"""The largest number of subscriptions times attributes: bounds take 16 bytes each."""
SAMPLE: Final = 64
"""Events that both indexes answer, to see which is faster."""
ROUNDS: Final = 3
FEW: Final = 8
"""Fewer events in a call are answered as one event is: by what is faster for one."""
MOST_KEPT: Final = 1 << 17
"""The most pairs of an id and a score that are kept: they take 80 bytes each."""
GROWN: Final = 4
"""Boxes are built again once one subscription in 4 is newer than they are."""


class BoxRange(NamedTuple):
    """A numeric range, and its weight in relaxed matching."""

    attribute: str
    low: float
    high: float
    weight: float


class BoxSource(NamedTuple):
    """The subscriptions that are boxes, with their ranges, and the others."""

    boxed: Mapping[str, Sequence[BoxRange]]
    rest: Sequence[Subscription]

    @classmethod
    def of(cls, subscriptions: Sequence[Subscription]) -> "BoxSource":
        """Divide subscriptions."""
        by_id = {subscription.id: ranges_of(subscription) for subscription in subscriptions}
        return cls(
            {id: ranges for id, ranges in sorted(by_id.items()) if ranges is not None},
            [subscription for subscription in subscriptions if by_id[subscription.id] is None],
        )

    @property
    def attributes(self) -> list[str]:
        """The attributes of all ranges, in order of their names."""
        return sorted({part.attribute for ranges in self.boxed.values() for part in ranges})

    def columns(self) -> "RangeColumns":
        """Return the ranges as columns; boxes are numbered in order of their ids."""
        column = {name: number for number, name in enumerate(self.attributes)}
        parts = [
            (place, column[part.attribute], part.low, part.high, part.weight)
            for place, ranges in enumerate(self.boxed.values())
            for part in ranges
        ]
        return RangeColumns(*map(np.array, zip(*parts, strict=True)))


def ranges_of(subscription: Subscription) -> list[BoxRange] | None:
    """Return the ranges of a conjunction of numeric ranges on different attributes, or None."""
    if len(subscription.groups) != 1:
        return None
    active = [part for part in subscription.groups[0] if part.state == "active"]
    ranges = [_range(part) for part in active if _is_range(part)]
    different = {part.attribute for part in ranges}
    return ranges if ranges and len(active) == len(ranges) == len(different) else None


def _is_range(part: Weighted) -> bool:
    return part.predicate.family == "number" and part.predicate.operator in ("between", "=")


def _range(part: Weighted) -> BoxRange:
    operand = part.predicate.operand
    low, high = operand if isinstance(operand, tuple) else (operand, operand)
    return BoxRange(part.predicate.attribute, low, high, part.weight)


class RangeColumns(NamedTuple):
    """The ranges of all boxes as columns: an entry is a range of a box on an attribute."""

    box: Int64s
    attribute: Int64s
    low: Float64s
    high: Float64s
    weight: Float64s

    def boxes(self, scores: Float64s | None, size: int, attributes: int) -> Boxes:
        """Return the boxes, with scores or, if these are None, with the weights of the ranges."""
        low, high = np.full((size, attributes), -np.inf), np.full((size, attributes), np.inf)
        low[self.box, self.attribute], high[self.box, self.attribute] = self.low, self.high
        if scores is not None:
            return Boxes(low, high, scores)
        weights = np.zeros((size, attributes))
        weights[self.box, self.attribute] = self.weight
        return Boxes(low, high, weights)


class NumericRows:
    """Turns events into rows of numbers, one for each of some attributes."""

    def __init__(self, attributes: Sequence[str]) -> None:
        self._columns = {name: column for column, name in enumerate(attributes)}
        self._width = len(attributes)
        # `itemgetter` returns a single value instead of a tuple of one.
        self._get = itemgetter(*attributes) if self._width > 1 else None
        self.names = list(attributes)

    def of(self, events: Sequence[Event]) -> Float64s | None:
        """Return rows with NaN where an event has no number.

        None if some event has lists, ranges or probabilities.
        """
        attributes = [event.attributes for event in events if not event.probabilities]
        if len(attributes) < len(events):
            return None
        whole = self._whole_rows(attributes)
        return self._partial_rows(attributes) if whole is None else whole

    def _whole_rows(self, attributes: Sequence[Mapping[str, Any]]) -> Float64s | None:
        """Return the rows of events that all have a number for every attribute, or None.

        `struct` packs 20 numbers in 0.25 us; numpy takes 0.75 us, and a check of types 0.65.
        """
        rows = np.empty((len(attributes), self._width))
        try:
            if self._get is None:
                (name,) = self.names
                values = [event_attributes[name] for event_attributes in attributes]
            else:
                values = [*chain.from_iterable(map(self._get, attributes))]
            struct.pack_into(f"{rows.size}d", rows.data, 0, *values)
        except (KeyError, struct.error, OverflowError):
            return None
        # Booleans are packed as 0 and 1.
        if ((rows == 0) | (rows == 1)).any() and bool in map(type, values):
            return None
        return rows

    def _partial_rows(self, attributes: Sequence[Mapping[str, Any]]) -> Float64s | None:
        """Return the rows of events that may lack numbers, value by value."""
        columns, width = self._columns, self._width
        places, values = list[int](), list[float]()
        for row, values_by_name in enumerate(attributes):
            for name, value in values_by_name.items():
                column = columns.get(name)
                if column is None or type(value) in _OTHER_FAMILIES:
                    continue
                if type(value) not in _NUMBERS:
                    return None
                places.append(row * width + column)
                values.append(value)
        rows = np.full(len(attributes) * width, np.nan)
        rows[places] = values
        return rows.reshape(len(attributes), width)


_NUMBERS: Final = frozenset({int, float})
_OTHER_FAMILIES: Final = frozenset({str, bool})
"""Values that satisfy no numeric range."""


class LiveTargets(Protocol):
    """An index over boxes that supports deletions, and no other changes."""

    def top_many(self, rows: Any, k: int) -> BoxAnswers:
        """Return the k best boxes of each row."""

    def top_columns(self, rows: Any, k: int) -> ListedColumns:
        """Return the k best boxes of each row as columns."""

    def delete_many(self, ids: Any) -> None:
        """Delete boxes."""


class OneAttribute:
    """Boxes over one attribute with scores: intervals, which are searched in a tree.

    Until the first one dies, a table of the best of every cell answers, if it is small enough.
    """

    def __init__(self, boxes: Boxes) -> None:
        self._scores = boxes.worth
        intervals = rank_intervals(boxes.low[:, 0], boxes.high[:, 0], boxes.worth)
        self._intervals = LiveIntervals(intervals)
        choice = choose(stats_of(intervals, DEPTH), ExpectedUse())
        self._table = TopkTable(intervals) if choice.name == TopkTable.name else None
        self._listed = np.empty(0) if self._table is None else boxes.worth[self._table.lists.ids]

    def top_many(self, rows: Any, k: int) -> BoxAnswers:
        """Return the k best boxes of each row of one number."""
        table = self._table_for(rows, k)
        ids, counts = (self._intervals if table is None else table).top_many(rows[:, 0], k)
        return BoxAnswers(ids, self._scores[ids], counts)

    def top_columns(self, rows: Any, k: int) -> ListedColumns:
        """Return the same as columns."""
        table = self._table_for(rows, k)
        if table is None:
            return _columns(self.top_many(rows, k))
        return table.top_columns(rows[:, 0], k, self._listed)

    def _table_for(self, rows: Any, k: int) -> TopkTable | None:
        """Return the table if it has the answers to these rows, which must have no NaN."""
        table = self._table
        right = table is not None and k <= table.depth and not np.isnan(rows).any()
        return table if right else None

    def delete_many(self, ids: Any) -> None:
        """Delete boxes."""
        if len(ids):
            self._table = None
        self._intervals.delete_many(ids)


class SeveralAttributes(LiveBoxes):
    """Boxes over several attributes, or with weights."""

    def top_columns(self, rows: Any, k: int) -> ListedColumns:
        """Return the k best boxes of each row as columns."""
        return _columns(self.top_many(rows, k))


def _columns(answers: BoxAnswers) -> ListedColumns:
    """Return rows of answers as columns."""
    ids, scores, counts = answers
    if int(counts.sum()) < ids.size:
        present = np.arange(ids.shape[1]) < counts[:, None]
        ids, scores = ids[present], scores[present]
    return ListedColumns(offsets(counts), ids.ravel().astype(np.int32), scores.ravel())


def live_targets(boxes: Boxes) -> LiveTargets:
    """Return the fastest index over boxes that supports deletions."""
    if boxes.attributes == 1 and boxes.matching == "exact":
        return OneAttribute(boxes)
    return SeveralAttributes(boxes)


class TopColumns(NamedTuple):
    """The best subscriptions of some events, one after the other, and where each event starts.

    Subscriptions are dictionary-encoded: places in a list of ids, of which some occur.
    """

    starts: Int64s
    subscription: pa.DictionaryArray
    score: Float64s

    @classmethod
    def of(cls, tops: Sequence[Sequence[Scored]]) -> "TopColumns":
        """Return lists of pairs as columns."""
        pairs = [*chain.from_iterable(tops)]
        names = pa.array([name for name, _ in pairs], pa.string()).dictionary_encode()
        scores = np.array([score for _, score in pairs], np.float64)
        return cls(offsets(np.array([*map(len, tops)], np.int64)), names, scores)


class TargetBoxes:
    """Boxes of the subscriptions that were there when it was built, and the rest."""

    def __init__(self, source: BoxSource, scores: Mapping[str, float] | None) -> None:
        self._place = {name: place for place, name in enumerate(source.boxed)}
        attributes = source.attributes
        worth = None if scores is None else np.array([scores[name] for name in source.boxed])
        self._rows = NumericRows(attributes)
        size = len(source.boxed), len(attributes)
        self._live = live_targets(source.columns().boxes(worth, *size))
        self._rest = Access(source.rest)
        self._in_rest = {subscription.id for subscription in source.rest}
        self._exact, self.newer = scores is not None, 0
        self._known = KnownPairs(np.array([*source.boxed, None], object)[:-1])
        self._texts: pa.Array | None = None
        self.structure = "intervals" if isinstance(self._live, OneAttribute) else "boxes"

    def __len__(self) -> int:
        return len(self._place)

    def change(self, added: Sequence[Subscription], removed: Sequence[str]) -> None:
        """Delete boxes, and change the rest; a repeated change has no effect."""
        gone = {*removed, *(subscription.id for subscription in added)}
        dead = [self._place.pop(name) for name in gone if name in self._place]
        if dead:
            self._live.delete_many(dead)
        if old := [*(gone & self._in_rest)]:
            self._rest.remove_many(old)
        self._in_rest -= gone
        self._rest.add_many(added)
        self._in_rest.update(subscription.id for subscription in added)
        self.newer += len(added)

    def top_many(self, events: Sequence[Event], k: int) -> list[list[Scored]] | None:
        """Return the k best for each event.

        None if some event is not made of single values, or k is too large for rows of answers.
        """
        rows = None if k * len(events) > MAX_RESULTS else self._rows.of(events)
        if rows is None:
            return None
        answers = self._live.top_many(rows, k)
        boxed = self._known.pairs(answers) if self._exact else self._known.new_pairs(answers)
        for event in np.flatnonzero(answers.counts < answers.ids.shape[1]).tolist():
            del boxed[event][answers.counts[event] :]
        if not self._in_rest:
            return boxed
        search = self._rest.top_many if self._exact else self._rest.top_relaxed_many
        by_event = zip(boxed, search(events, k), strict=True)
        return [nsmallest(k, best + rest, key=_best_first) for best, rest in by_event]

    @property
    def attributes(self) -> Sequence[str] | None:
        """The attributes of rows of numbers; None if not every subscription is a box."""
        return None if self._in_rest else self._rows.names

    def top_rows(self, rows: Float64s, k: int) -> TopColumns | None:
        """Return the k best for each row of numbers; None if k is too large for rows of answers."""
        if k * len(rows) > MAX_RESULTS:
            return None
        starts, ids, scores = self._live.top_columns(rows, k)
        if self._texts is None:
            self._texts = pa.array(self._known.names, pa.string())
        names = pa.DictionaryArray.from_arrays(pa.array(ids), self._texts, safe=False)
        return TopColumns(starts, names, scores)


class KnownPairs:
    """The pairs of ids and fixed scores that were answers before, to be answers again.

    A new tuple takes 60 ns, a known one 20 ns; few subscriptions are the best of many events.
    """

    def __init__(self, names: Any) -> None:
        self.names = names
        self._clear()

    def _clear(self) -> None:
        size = len(self.names)
        self._kept = _KeptPairs(np.empty(size, object), np.zeros(size, np.bool_))

    def new_pairs(self, answers: BoxAnswers) -> list[list[Scored]]:
        """Return a row of pairs for each row of ids; those of the id -1 have no meaning."""
        rows = zip(self.names[answers.ids].tolist(), answers.scores.tolist(), strict=True)
        return [list(zip(names, scores, strict=True)) for names, scores in rows]

    def pairs(self, answers: BoxAnswers) -> list[list[Scored]]:
        """Return the same for boxes that always have the same scores."""
        ids, kept = answers.ids, self._kept  # another thread may start over
        missing = ~kept.present[ids] & (ids >= 0)
        if missing.any():
            if np.count_nonzero(kept.present) > MOST_KEPT:
                self._clear()
                kept, missing = self._kept, ids >= 0
            new, first = np.unique(ids[missing], return_index=True)
            names, values = self.names[new].tolist(), answers.scores[missing][first].tolist()
            for id, pair in zip(new.tolist(), zip(names, values, strict=True), strict=True):
                kept.pairs[id] = pair
            kept.present[new] = True
        rows: list[list[Scored]] = kept.pairs[ids].tolist()
        return rows


class _KeptPairs(NamedTuple):
    """A pair for each id, and whether there is one."""

    pairs: Any
    present: Bools


def _best_first(pair: Scored) -> tuple[float, str]:
    return -pair[1], pair[0]


@dataclass(frozen=True)
class TargetChoice:
    """The structure that finds the k best by one scorer, its size, and why it was chosen."""

    scorer: str
    structure: str
    size: int
    reason: str

    def __str__(self) -> str:
        counted = "" if self.structure == "access" else f"{self.size:,} "
        answers = counted + self.structure
        return f"{self.scorer}: {answers}, since {self.reason}."


class BoxChoice(NamedTuple):
    """Boxes that are worth using from a number of events in a call on, or None, with the reason."""

    boxes: TargetBoxes | None
    reason: str
    least: int = 1


@dataclass
class _Kind:
    """The boxes of a scorer: how many events were queried, and why boxes are used or not."""

    build: BackgroundMerge
    asked: int = 0
    boxes: TargetBoxes | None = None
    least: int = 1  # events of a call from which boxes are faster
    reason: str = "few events were asked for"
    log: list[tuple[Sequence[Subscription], Sequence[str]]] = field(default_factory=list)
    worthless_below: int = 0


class Targets:
    """Answers `top` for many events by the faster of two indexes; any number of threads may ask.

    After queries for some events by a scorer, its boxes are built in the background. They are used
    if they answer those events faster than the access index.
    """

    def __init__(self, access: Access, subscriptions: Mapping[str, Subscription]) -> None:
        self._access, self._subscriptions = access, subscriptions
        self._lock, self._version = Lock(), 0
        self._kinds = self._new_kinds()

    def _new_kinds(self) -> dict[bool, _Kind]:
        """Return the kinds, `exact` or not, before any event was asked for."""
        return {exact: _Kind(BackgroundMerge(self._lock)) for exact in (True, False)}

    def top_many(self, events: Sequence[Event], k: int, scorer: Scorer) -> list[list[Scored]]:
        """Return the k best by `exact`, or by the sum of `relaxed`, for each event."""
        exact = type(scorer) is Exact
        kind, version = self._kinds[exact], self._version
        boxes = kind.boxes
        if boxes is None:
            self._count(exact, events, k)
        elif len(events) >= kind.least and not version % 2:
            answers = boxes.top_many(events, k)
            if answers is not None and version == self._version:
                return answers
        return self.by_access(events, k, exact)

    def top_rows(
        self, rows_of: Callable[[Sequence[str]], Float64s | None], k: int, scorer: Scorer
    ) -> TopColumns | None:
        """Return the same as columns for events that are rows of numbers, if boxes answer them.

        `rows_of` returns the rows for some attributes, or None if the events are more than numbers.
        """
        kind, version = self._kinds[type(scorer) is Exact], self._version
        boxes = kind.boxes
        if boxes is None or boxes.attributes is None or version % 2:
            return None
        rows = rows_of(boxes.attributes)
        if rows is None or len(rows) < kind.least:
            return None
        answers = boxes.top_rows(rows, k)
        return answers if version == self._version else None

    def by_access(self, events: Sequence[Event], k: int, exact: bool) -> list[list[Scored]]:
        """Return the same answers, always by the access index."""
        search = self._access.top_many if exact else self._access.top_relaxed_many
        return search(events, k)

    @contextmanager
    def changing(
        self, added: Sequence[Subscription] = (), removed: Sequence[str] = ()
    ) -> Iterator[None]:
        """Follow a change of the access index; one that fails makes the boxes unknown."""
        self._version += 1
        try:
            yield
            with self._lock:
                for kind in self._kinds.values():
                    if kind.build.running:
                        kind.log.append((added, removed))
                    if kind.boxes is not None:
                        kind.boxes.change(added, removed)
                        if GROWN * kind.boxes.newer > len(kind.boxes):
                            kind.boxes, kind.reason = None, "many subscriptions are newer"
        except BaseException:
            self._kinds = self._new_kinds()
            raise
        finally:
            self._version += 1

    def settle(self) -> None:
        """Wait until nothing is being built."""
        for kind in [*self._kinds.values()]:
            kind.build.wait()

    def describe(self) -> tuple[TargetChoice, ...]:
        """Return which index answers each scorer, and why."""
        return tuple(
            TargetChoice(
                "exact" if exact else "relaxed",
                "access" if kind.boxes is None else kind.boxes.structure,
                len(self._subscriptions) if kind.boxes is None else len(kind.boxes),
                kind.reason,
            )
            for exact, kind in self._kinds.items()
        )

    def _count(self, exact: bool, events: Sequence[Event], k: int) -> None:
        """Count events; start building boxes once they are many."""
        kind, size = self._kinds[exact], len(self._subscriptions)
        kind.asked += len(events)
        if kind.asked < ASKED or size < max(LEAST, kind.worthless_below):
            return
        with self._lock:
            if kind.build.running or kind.boxes is not None:
                return
            kind.log.clear()
            # A copy of the dict is atomic, while another thread may change the subscriptions.
            present = list(dict(self._subscriptions).values())
            sample = list(events[-SAMPLE:])
            kind.build.start(lambda: self._build(kind, exact, present, sample, k))

    def _build(
        self,
        kind: _Kind,
        exact: bool,
        present: Sequence[Subscription],
        sample: Sequence[Event],
        k: int,
    ) -> None:
        """Build boxes, and publish them with all changes since if they are faster."""
        try:
            choice = self._choose(exact, present, sample, k)
        except Exception as error:  # noqa: BLE001 - the access index answers as before
            choice = BoxChoice(None, f"boxes cannot be built: {described(error)}")
        with self._lock:
            try:
                if choice.boxes is not None:
                    for added, removed in kind.log:
                        choice.boxes.change(added, removed)
            except Exception as error:  # noqa: BLE001 - the access index answers as before
                choice = BoxChoice(None, f"boxes cannot be changed: {described(error)}")
            kind.least, kind.reason, kind.asked = choice.least, choice.reason, 0
            kind.boxes = choice.boxes
            kind.worthless_below = 0 if choice.boxes is not None else 2 * len(present)
            kind.build.finish()
            kind.log.clear()

    def _choose(
        self, exact: bool, present: Sequence[Subscription], sample: Sequence[Event], k: int
    ) -> BoxChoice:
        """Build boxes, and choose them if they answer a sample faster."""
        source = BoxSource.of(present)
        size = f"{len(source.boxed):,} boxes of {len(source.attributes)} attributes"
        if 2 * len(source.boxed) < len(present):
            boxed = f"{len(source.boxed):,} of {len(present):,}"
            return BoxChoice(None, f"{boxed} conditions are ranges")
        if len(source.boxed) * len(source.attributes) > MOST_CELLS:
            return BoxChoice(None, f"{size} would take too much memory")
        scores = {target.id: own_score(target) for target in present} if exact else None
        boxes = TargetBoxes(source, scores)
        if boxes.top_many(sample, k) is None:
            return BoxChoice(None, "the events have lists, ranges or probabilities")

        def times_as_fast(some: Sequence[Event]) -> float:
            ours = least_seconds(lambda: boxes.top_many(some, k))
            return least_seconds(lambda: self.by_access(some, k, exact)) / ours

        many, single = times_as_fast(sample), times_as_fast(sample[:1])
        ratio = f"{many:.1f} times as fast as access for {len(sample)} events, {single:.1f} for one"
        if many <= 1:
            return BoxChoice(None, f"boxes are {ratio}")
        return BoxChoice(boxes, f"they are {ratio}", 1 if single > 1 else FEW)


def least_seconds(call: Callable[[], Any]) -> float:
    """Return the least seconds of this thread that a call takes, whatever else is running."""
    seconds = []
    for _ in range(ROUNDS):
        started = thread_time()
        call()
        seconds.append(thread_time() - started)
    return min(seconds)
