"""The k best subscriptions of events through a box index, where conditions are numeric ranges.

    subscriptions -- one conjunction of ranges --> boxes (live: they can only die)
                  -- any other, or newer -------> rest  (an access index)

Both are asked, and their answers merged. Boxes are numbered in order of their ids, so that ties
come out by id. What the boxes cannot answer, or a change interrupts, the access index of the
matcher answers, which always holds everything.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import nsmallest
from operator import itemgetter
from threading import Lock, Thread
from time import perf_counter
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s
from tidings.errors import described
from tidings.index.access import Access
from tidings.index.access.query import Scored
from tidings.index.boxes.live.index import LiveBoxes
from tidings.index.boxes.protocol import Boxes
from tidings.index.protocol import own_score
from tidings.model.records import Event, Subscription, Weighted
from tidings.score.exact import Exact
from tidings.score.protocol import Scorer

LEAST: Final = 2_000
"""Fewer subscriptions are answered by the access index alone."""
ASKED: Final = 256
"""Events that are asked for before boxes are built, in the background."""
MOST_CELLS: Final = 1 << 25
"""The largest number of subscriptions times attributes: bounds take 16 bytes each."""
SAMPLE: Final = 64
"""Events that both indexes answer, to see which is faster."""
ROUNDS: Final = 3
FEW: Final = 8
"""Fewer events in a call are answered as one event is: by what is faster for one."""
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
        ranges = {one.id: ranges_of(one) for one in subscriptions}
        return cls(
            {name: found for name, found in sorted(ranges.items()) if found is not None},
            [one for one in subscriptions if ranges[one.id] is None],
        )

    @property
    def attributes(self) -> list[str]:
        """The attributes of all ranges, in order of their names."""
        return sorted({part.attribute for ranges in self.boxed.values() for part in ranges})


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


class TargetBoxes:
    """Boxes of the subscriptions that were there when it was built, and the rest."""

    def __init__(self, source: BoxSource, scores: Mapping[str, float] | None) -> None:
        self.names = np.array([*source.boxed, None], object)[:-1]
        self._place = {name: place for place, name in enumerate(source.boxed)}
        self._columns = {name: column for column, name in enumerate(source.attributes)}
        self._get = itemgetter(*self._columns) if len(self._columns) > 1 else None
        self._live = LiveBoxes(self._boxes(source, scores))
        self._rest, self._in_rest = Access(source.rest), {one.id for one in source.rest}
        self._exact, self.newer = scores is not None, 0

    def _boxes(self, source: BoxSource, scores: Mapping[str, float] | None) -> Boxes:
        shape = len(source.boxed), len(self._columns)
        low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
        weights = np.zeros(shape if scores is None else (0, 0))
        parts = [
            (place, self._columns[part.attribute], part.low, part.high, part.weight)
            for place, ranges in enumerate(source.boxed.values())
            for part in ranges
        ]
        rows, columns, *values = map(np.array, zip(*parts, strict=True))
        low[rows, columns], high[rows, columns] = values[0], values[1]
        if scores is not None:
            return Boxes(low, high, np.array([scores[name] for name in source.boxed]))
        weights[rows, columns] = values[2]
        return Boxes(low, high, weights)

    def __len__(self) -> int:
        return len(self._place)

    def change(self, added: Sequence[Subscription], removed: Sequence[str]) -> None:
        """Let boxes die, and change the rest; a repeated change has no effect."""
        gone = {*removed, *(one.id for one in added)}
        dead = [self._place.pop(name) for name in gone if name in self._place]
        if dead:
            self._live.delete_many(dead)
        if old := [*(gone & self._in_rest)]:
            self._rest.remove_many(old)
        self._in_rest -= gone
        self._rest.add_many(added)
        self._in_rest.update(one.id for one in added)
        self.newer += len(added)

    def top_many(self, events: Sequence[Event], k: int) -> list[list[Scored]] | None:
        """Return the k best for each event; None if some event is not made of single values."""
        rows = self._rows(events)
        if rows is None:
            return None
        ids, scores, counts = self._live.top_many(rows, k)
        found = [
            list(zip(names, values, strict=True))
            for names, values in zip(self.names[ids].tolist(), scores.tolist(), strict=True)
        ]
        for event in np.flatnonzero(counts < ids.shape[1]).tolist():
            del found[event][counts[event] :]
        if not self._in_rest:
            return found
        search = self._rest.top_many if self._exact else self._rest.top_relaxed_many
        pairs = zip(found, search(events, k), strict=True)
        return [nsmallest(k, one + other, key=_best_first) for one, other in pairs]

    def _whole_rows(self, events: Sequence[Event]) -> Float64s | None:
        """Return the rows of events that all have a number for every attribute, or None."""
        if self._get is None or any(event.probabilities for event in events):
            return None
        try:
            rows = [self._get(event.attributes) for event in events]
        except KeyError:
            return None
        plain = all(_NUMBERS.issuperset(map(type, row)) for row in rows)
        return np.array(rows, np.float64) if rows and plain else None

    def _rows(self, events: Sequence[Event]) -> Float64s | None:
        """Return events as rows of numbers, NaN where an attribute has no number."""
        whole = self._whole_rows(events)
        if whole is not None:
            return whole
        rows = np.full((len(events), len(self._columns)), np.nan)
        for row, event in zip(rows, events, strict=True):
            if event.probabilities:
                return None
            for name, value in event.attributes.items():
                column = self._columns.get(name)
                if column is None or type(value) in _OTHER_FAMILIES:
                    continue
                if type(value) not in _NUMBERS:
                    return None
                row[column] = value
        return rows


_NUMBERS: Final = frozenset({int, float})
_OTHER_FAMILIES: Final = frozenset({str, bool})
"""Values that satisfy no numeric range."""


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
        answers = self.structure if self.structure == "access" else f"{self.size:,} boxes"
        return f"{self.scorer}: {answers}, since {self.reason}."


class BoxChoice(NamedTuple):
    """Boxes that are worth using from a number of events in a call on, or None, with the reason."""

    boxes: TargetBoxes | None
    reason: str
    least: int = 1


@dataclass
class _Kind:
    """The boxes of a scorer: how often they were asked for, and why there are none or some."""

    asked: int = 0
    boxes: TargetBoxes | None = None
    least: int = 1  # events of a call from which on boxes are faster
    reason: str = "few events were asked for"
    building: Thread | None = None
    log: list[tuple[Sequence[Subscription], Sequence[str]]] = field(default_factory=list)
    worthless_below: int = 0


class Targets:
    """Answers `top` for many events by the faster of two indexes; any number of threads may ask.

    Boxes are built in the background after some events, by the scorer that was asked for, and
    used if they answer those events faster than the access index.
    """

    def __init__(self, access: Access, subscriptions: Mapping[str, Subscription]) -> None:
        self._access, self._subscriptions = access, subscriptions
        self._kinds = {True: _Kind(), False: _Kind()}
        self._lock, self._version = Lock(), 0

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
                    if kind.building is not None:
                        kind.log.append((added, removed))
                    if kind.boxes is not None:
                        kind.boxes.change(added, removed)
                        if GROWN * kind.boxes.newer > len(kind.boxes):
                            kind.boxes, kind.reason = None, "many subscriptions are newer"
        except BaseException:
            self._kinds = {True: _Kind(), False: _Kind()}
            raise
        finally:
            self._version += 1

    def settle(self) -> None:
        """Wait until nothing is being built."""
        for kind in [*self._kinds.values()]:
            if (thread := kind.building) is not None:
                thread.join()

    def describe(self) -> tuple[TargetChoice, ...]:
        """Return which index answers each scorer, and why."""
        return tuple(
            TargetChoice(
                "exact" if exact else "relaxed",
                "access" if kind.boxes is None else "boxes",
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
            if kind.building is not None or kind.boxes is not None:
                return
            kind.log.clear()
            # A copy of the dict is atomic, while another thread may change the subscriptions.
            present = list(dict(self._subscriptions).values())
            sample = list(events[-SAMPLE:])
            kind.building = Thread(
                target=self._build, args=(kind, exact, present, sample, k), daemon=True
            )
            kind.building.start()

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
            kind.building = None
            kind.log.clear()

    def _choose(
        self, exact: bool, present: Sequence[Subscription], sample: Sequence[Event], k: int
    ) -> BoxChoice:
        """Build boxes, and choose them if they answer a sample faster."""
        source = BoxSource.of(present)
        size = f"{len(source.boxed):,} boxes of {len(source.attributes)} attributes"
        if 2 * len(source.boxed) < len(present):
            found = f"{len(source.boxed):,} of {len(present):,}"
            return BoxChoice(None, f"{found} conditions are ranges")
        if len(source.boxed) * len(source.attributes) > MOST_CELLS:
            return BoxChoice(None, f"{size} would take too much memory")
        scores = {one.id: own_score(one) for one in present} if exact else None
        boxes = TargetBoxes(source, scores)
        if boxes.top_many(sample, k) is None:
            return BoxChoice(None, "the events have lists, ranges or probabilities")

        def times_as_fast(some: Sequence[Event]) -> float:
            ours = _least(lambda: boxes.top_many(some, k))
            return _least(lambda: self.by_access(some, k, exact)) / ours

        many, one = times_as_fast(sample), times_as_fast(sample[:1])
        ratio = f"{many:.1f} times as fast as access for {len(sample)} events, {one:.1f} for one"
        if many <= 1:
            return BoxChoice(None, f"boxes are {ratio}")
        return BoxChoice(boxes, f"they are {ratio}", 1 if one > 1 else FEW)


def _least(call: Callable[[], Any]) -> float:
    """Return the least seconds that a call takes."""
    seconds = []
    for _ in range(ROUNDS):
        started = perf_counter()
        call()
        seconds.append(perf_counter() - started)
    return min(seconds)
