"""Quality of deliveries, compared with everything that plain publish/subscribe would have sent.

Running sums, a few operations per match or delivery: cheap enough to be always on.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from tidings.compiled.array_types import Bools, Float64s, Int64s
from tidings.compiled.arrays import distinct, grown
from tidings.diversify import Distance, EventHashes
from tidings.diversify.distance import Overlap
from tidings.diversify.hashed_distances import has_kernel
from tidings.engine.kernels.set_diversity import DeliveryRings, measure_deliveries
from tidings.feed.columnar.deliveries import DeliveryColumns, DeliveryNumbers
from tidings.model import validate
from tidings.model.records import Delivery, Event, Match
from tidings.model.values import SECOND_US
from tidings.rules import Verdict
from tidings.rules.verdict import Fate

Lookup = Callable[[str], Event | None]
_STRAY: Final = 64
"""Served subscriptions that were never matched, beyond which they are looked for."""
SPAN: Final = 10
"""How many deliveries of a subscriber count as one set."""
FLUSH: Final = 4096
"""Deliveries that are measured in one call of the kernel."""
FREE: Final = -1
"""The reference count of a slot without an event."""


@dataclass(frozen=True)
class Report:
    """The figures measured so far; a mean over nothing is None.

    `share` is the share of matches that were delivered, `mean_score` the mean over all matches,
    `mean_rank` the mean over the deliveries. `mean_age_s` is the age of events at delivery
    (freshness). `diversity` is that of sets (PREF Def. 8): the mean distance between deliveries to
    the same subscriber that are less than `SPAN` deliveries apart. `coverage` is the share of
    subscriptions with a match that received a delivery.

    Rules `held` chosen events for later and `released` them when they were due; an event that two
    rules hold counts twice. `dropped` counts chosen events that will never be delivered, and
    `dropped_by` counts them by rule; "pause" is the time in which a subscriber is paused.
    """

    matches: int
    delivered: int
    share: float | None
    mean_score: float | None
    mean_rank: float | None
    mean_age_s: float | None
    diversity: float | None
    coverage: float | None
    held: int = 0
    released: int = 0
    dropped: int = 0
    dropped_by: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return vars(self) | {"dropped_by": dict(self.dropped_by)}


class RunningMean:
    """A mean over the values added so far."""

    def __init__(self, total: float = 0.0, count: int = 0) -> None:
        self.sum, self.count = total, count

    def add(self, value: float, count: int = 1) -> None:
        """Add one value, or the sum of `count` values."""
        self.sum += value
        self.count += count

    @property
    def value(self) -> float | None:
        """The mean so far."""
        return self.sum / self.count if self.count else None


class Distances(NamedTuple):
    """The sum of the distances of some pairs of events, and the number of pairs."""

    sum: float = 0.0
    pairs: int = 0

    def plus(self, distances: float, pairs: int) -> "Distances":
        """Return the sums with those of more pairs."""
        return Distances(self.sum + distances, self.pairs + pairs)


class QualitySums(NamedTuple):
    """The sums behind a report: of all subscribers, or of one.

    `wanted` is the number of subscriptions with a match, `served` that of those with a delivery.
    """

    scores: RunningMean
    ranks: RunningMean
    ages_s: RunningMean
    distances: Distances
    wanted: int
    served: int

    def report(self) -> Report:
        """Return the figures."""
        matches, delivered = self.scores.count, self.ranks.count
        return Report(
            matches=matches,
            delivered=delivered,
            share=delivered / matches if matches else None,
            mean_score=self.scores.value,
            mean_rank=self.ranks.value,
            mean_age_s=self.ages_s.value,
            diversity=self.distances.sum / self.distances.pairs if self.distances.pairs else None,
            coverage=min(1.0, self.served / self.wanted) if self.wanted else None,
        )


class KnownEvents(NamedTuple):
    """The events of some deliveries as far as they are known, and which deliveries are of such."""

    events: Sequence[Event | None]
    known: Bools


class NumberedNames(NamedTuple):
    """Names by number; the generation changes when a number is reused."""

    names: Sequence[str]
    generation: int


class Quality:
    """Measures a stream: its matches first, then their deliveries.

    >>> quality = Quality()
    >>> event = Event("e1", {"genre": "drama"}, published_at=0)
    >>> quality.matched([Match("addison", event, 0.5, ("s1",)), Match("bob", event, 0.9, ("s2",))])
    >>> delivery = Delivery("bob", "e1", 0.9, 1, {}, ("s2",), 1, 3_000_000)
    >>> quality.delivered([delivery], lambda _: event)
    >>> report = quality.report()
    >>> (report.share, report.mean_score, report.mean_rank, report.mean_age_s, report.coverage)
    (0.5, 0.7, 0.9, 3.0, 0.5)
    """

    def __init__(self, distance: Distance | None = None, span: int = SPAN) -> None:
        self._sets = make_set_diversity(distance or Overlap(), span)
        self._scores, self._ranks, self._ages = (RunningMean() for _ in range(3))
        self._known_matched: set[str] = set()
        self._newly_matched: list[Sequence[str]] = []
        self._served: set[str] = set()
        self._removed_matched = self._removed_served = 0
        self._noted, self._noted_generation = np.zeros(0, np.bool_), 0  # of `_served`, by number
        self._fates: Counter[Fate] = Counter()
        self._dropped_by: Counter[str] = Counter()

    def matched(self, matches: Iterable[Match]) -> None:
        """Add matches."""
        for match in matches:
            self._scores.add(match.score)
            self.wanted(match.matched)

    def matched_rows(self, scores: Float64s) -> None:
        """Add matches as an array of their scores; `wanted` adds their subscriptions."""
        self._scores.add(float(scores.sum()), len(scores))

    def wanted(self, subscriptions: Iterable[str]) -> None:
        """Record that subscriptions matched; repeated calls have no effect."""
        self._matched.update(subscriptions)

    def newly_wanted(self, subscriptions: Sequence[str]) -> None:
        """Record that subscriptions matched, most of them for the first time."""
        self._newly_matched.append(subscriptions)

    @property
    def _matched(self) -> set[str]:
        """The present subscriptions that matched; new ones are added when all are asked for."""
        while self._newly_matched:
            self._known_matched.update(self._newly_matched.pop())
        return self._known_matched

    @property
    def matched_subscriptions(self) -> AbstractSet[str]:
        """The ids of the present subscriptions that matched."""
        return self._matched

    def delivered(self, deliveries: Iterable[Delivery], event_of: Lookup) -> None:
        """Add deliveries; age and diversity are measured for events that can be looked up."""
        ranks, count, ages_us, aged = 0.0, 0, 0, 0
        event_id, event = "", None
        for delivery in deliveries:
            ranks += delivery.rank
            count += 1
            self._served.update(delivery.matched)
            if delivery.event != event_id:  # most deliveries of a call are of one event
                event_id, event = delivery.event, event_of(delivery.event)
            if event is not None:
                ages_us += delivery.delivered_us - event.published_us
                aged += 1
                self._sets.add(delivery.subscriber, event)
        self._add_deliveries(RunningMean(ranks, count), RunningMean(ages_us / SECOND_US, aged))

    def delivered_columns(self, deliveries: DeliveryColumns, events: KnownEvents) -> None:
        """Add deliveries as `delivered` does, without a Python call for each."""
        numbers = deliveries.numbers
        assert numbers is not None  # only what is remembered has none
        self._note_served(numbers)
        rows = np.flatnonzero(events.known)
        published = np.array(
            [0 if known is None else known.published_us for known in events.events]
        )
        subscriber, event = numbers.subscriber[rows], deliveries.event[rows]
        ages_us = int((deliveries.delivered_us[rows] - published[event]).sum())
        names = NumberedNames(numbers.subscribers, numbers.generations[0])
        self._sets.add_many(names, subscriber, events.events, event)
        self._add_deliveries(
            RunningMean(float(deliveries.rank.sum()), len(deliveries)),
            RunningMean(ages_us / SECOND_US, len(rows)),
        )

    def _note_served(self, numbers: DeliveryNumbers) -> None:
        """Note the subscriptions of deliveries; those that were noted before take no time."""
        generation = numbers.generations[1]
        if generation != self._noted_generation:
            self._noted, self._noted_generation = self._noted[:0], generation
        self._noted = grown(self._noted, len(numbers.subscriptions), fill=False)
        new = distinct(numbers.matched[~self._noted[numbers.matched]], len(self._noted))
        if len(new):
            self._noted[new] = True
            self._served.update(map(numbers.subscriptions.__getitem__, new.tolist()))

    def _add_deliveries(self, ranks: RunningMean, ages_s: RunningMean) -> None:
        self._ranks.add(ranks.sum, ranks.count)
        self._ages.add(ages_s.sum, ages_s.count)
        matched = len(self._known_matched) + sum(map(len, self._newly_matched))
        if len(self._served) > 2 * matched + _STRAY:
            self._served &= self._matched  # windows may deliver what a removed subscription matched
            self._noted = self._noted[:0]

    def dropped(self, count: int, rule: str) -> None:
        """Add deliveries that a rule, or a pause, dropped when they were due."""
        if count:
            self._dropped_by[rule] += count

    def judged(self, verdicts: Iterable[Verdict]) -> None:
        """Add what rules did with chosen events."""
        for verdict in verdicts:
            self._fates[verdict.fate] += 1
            if verdict.fate == "dropped":
                self._dropped_by[verdict.rule] += 1

    def forget(self, subscriber: str) -> None:
        """Forget the last deliveries of a subscriber that left."""
        self._sets.forget(subscriber)

    def removed(self, subscriptions: Iterable[str]) -> None:
        """Replace the ids of removed subscriptions by counts."""
        self._noted = self._noted[:0]  # later deliveries of them are noted again
        for subscription in subscriptions:
            if subscription in self._matched:
                self._matched.remove(subscription)
                self._removed_matched += 1
            if subscription in self._served:
                self._served.remove(subscription)
                self._removed_served += 1

    def report(self) -> Report:
        """Return the figures measured so far."""
        sums = QualitySums(
            self._scores,
            self._ranks,
            self._ages,
            self._sets.total(),
            wanted=len(self._matched) + self._removed_matched,
            served=len(self._served) + self._removed_served,
        )
        return replace(
            sums.report(),
            held=self._fates["held"],
            released=self._fates["released"],
            dropped=self._dropped_by.total(),
            dropped_by=dict(sorted(self._dropped_by.items())),
        )


class SetDiversity(Protocol):
    """The distances of all pairs of deliveries to one subscriber that are less than a span apart.

    Their mean is div(L) of Def. 8 if L is all that a subscriber received, and no more than a span;
    otherwise it is the mean over the sliding sets of its last deliveries.
    """

    def add(self, subscriber: str, event: Event) -> None:
        """Add a delivery."""

    def add_many(
        self,
        subscribers: NumberedNames,
        subscriber: Int64s,
        events: Sequence[Event | None],
        event: Int64s,
    ) -> None:
        """Add deliveries in order: numbers of subscribers, and places in events."""

    def forget(self, subscriber: str) -> None:
        """Forget the deliveries of a subscriber that left; measured distances stay."""

    def total(self) -> Distances:
        """Return the distances of all subscribers."""

    def of(self, subscriber: str) -> Distances:
        """Return the distances of one subscriber."""


def make_set_diversity(distance: Distance, span: int = SPAN) -> SetDiversity:
    """Return a running set diversity, compiled if kernels implement the distance."""
    validate.count("span", span, low=2)
    return (
        CompiledSetDiversity(distance, span)
        if has_kernel(distance)
        else PlainSetDiversity(distance, span)
    )


def measure_sets(
    subscribers: Int64s, events: Int64s, delivered: Sequence[Event], count: int, span: int = SPAN
) -> Float64s:
    """Return for each of `count` subscribers the sum of distances, and the number of pairs.

    Deliveries are pairs of numbers, in order: a subscriber, and an event of `delivered`. This is
    the diversity of sets by overlap, measured in one call.
    """
    hashes, sums = EventHashes(Overlap(), of_process=True), np.zeros((count, 2))
    slots = np.asarray(hashes.add_many(delivered), np.int64)
    rings = DeliveryRings(np.zeros((count, span - 1), np.int32), np.zeros(count, np.int64))
    references = np.zeros(hashes.capacity, np.int64)
    measure_deliveries(hashes.rows, subscribers, slots[events], rings, references, sums)
    return sums


class PlainSetDiversity:
    """Set diversity as defined: any distance, pair by pair."""

    def __init__(self, distance: Distance, span: int = SPAN) -> None:
        self._distance, self._span = distance, span
        self._last: dict[str, deque[Event]] = {}
        self._sums: dict[str, Distances] = {}
        self._forgotten = Distances()

    def add(self, subscriber: str, event: Event) -> None:
        last = self._last.setdefault(subscriber, deque(maxlen=self._span - 1))
        distances = [self._distance.between(event, other) for other in last]
        self._sums[subscriber] = self.of(subscriber).plus(sum(distances), len(distances))
        last.append(event)

    def add_many(
        self,
        subscribers: NumberedNames,
        subscriber: Int64s,
        events: Sequence[Event | None],
        event: Int64s,
    ) -> None:
        for name, place in zip(subscriber.tolist(), event.tolist(), strict=True):
            known = events[place]
            assert known is not None
            self.add(subscribers.names[name], known)

    def forget(self, subscriber: str) -> None:
        self._last.pop(subscriber, None)
        self._forgotten = self._forgotten.plus(*self._sums.pop(subscriber, Distances()))

    def total(self) -> Distances:
        return reduce(lambda sums, added: sums.plus(*added), self._sums.values(), self._forgotten)

    def of(self, subscriber: str) -> Distances:
        return self._sums.get(subscriber, Distances())


class CompiledSetDiversity:
    """Set diversity by a kernel, some thousand deliveries per call.

    A subscriber takes 4 bytes for each delivery of a span; an event takes its hashes, once, while
    it is among the last deliveries of any subscriber.
    """

    def __init__(self, distance: Distance, span: int = SPAN) -> None:
        self._hashes = EventHashes(distance, of_process=True)
        self._slots: dict[str, int] = {}
        self._event_ids: dict[int, str] = {}
        self._known_rows: dict[str, int] = {}
        self._unlisted: list[Sequence[str]] = []  # subscribers of the next rows
        self._only_numbered = True  # all rows were found by numbers of one generation
        self._numbered_rows, self._row_generation = np.zeros(0, np.int64), 0
        self._free_rows: list[int] = []
        self._pending_rows: list[int] = []
        self._pending_events: list[Event] = []  # hashed together, when they are measured
        self._rings = DeliveryRings(np.zeros((0, span - 1), np.int32), np.zeros(0, np.int64))
        self._references = np.zeros(0, np.int64)
        self._sums = np.zeros((0, 2))
        self._forgotten = np.zeros(2)

    def add(self, subscriber: str, event: Event) -> None:
        self._pending_rows.append(self._row(subscriber))
        self._pending_events.append(event)
        if len(self._pending_rows) >= FLUSH:
            self._flush()

    def add_many(
        self,
        subscribers: NumberedNames,
        subscriber: Int64s,
        events: Sequence[Event | None],
        event: Int64s,
    ) -> None:
        self._flush()
        slots = np.zeros(len(events), np.int64)
        used = distinct(event, len(events)).tolist()
        present = [known for place in used if (known := events[place]) is not None]
        self._add_events([known for known in present if known.id not in self._slots])
        slots[used] = [self._slots[known.id] for known in present]
        self._measure(self._rows_of(subscribers, subscriber), slots[event])

    def _rows_of(self, subscribers: NumberedNames, numbers: Int64s) -> Int64s:
        """Return the rows of subscribers; those that had one in the last call need no lookup."""
        names, generation = subscribers
        if generation != self._row_generation:
            self._numbered_rows, self._row_generation = self._numbered_rows[:0], generation
            self._only_numbered = not (self._count_rows() or self._free_rows)
        self._numbered_rows = grown(self._numbered_rows, len(names), fill=-1)
        rows = self._numbered_rows[numbers]
        unknown = distinct(numbers[rows < 0], len(names))
        if not len(unknown):
            return rows
        new = list(map(names.__getitem__, unknown.tolist()))
        if self._only_numbered or (not self._free_rows and self._rows.keys().isdisjoint(new)):
            first = self._count_rows()
            self._unlisted.append(new)
            self._numbered_rows[unknown] = np.arange(first, first + len(new))
        else:
            self._numbered_rows[unknown] = [self._row(name) for name in new]
        return self._numbered_rows[numbers]

    @property
    def _rows(self) -> dict[str, int]:
        """The rows by subscriber; listing them takes longer than numbering them."""
        rows = self._known_rows
        for names in self._unlisted:
            rows.update(zip(names, range(len(rows), len(rows) + len(names)), strict=True))
        self._unlisted.clear()
        return rows

    def _count_rows(self) -> int:
        return len(self._known_rows) + sum(map(len, self._unlisted))

    def _row(self, subscriber: str) -> int:
        self._only_numbered = False
        row = self._rows.get(subscriber)
        if row is None:
            row = self._free_rows.pop() if self._free_rows else len(self._rows)
            self._rows[subscriber] = row
        return row

    def forget(self, subscriber: str) -> None:
        row = self._rows.get(subscriber)
        if row is None:
            return
        self._flush()
        self._only_numbered = False
        ring, counts = self._rings
        self._references[ring[row, : min(int(counts[row]), ring.shape[1])]] -= 1
        counts[row] = 0
        self._forgotten += self._sums[row]
        self._sums[row] = 0
        self._free_rows.append(self._rows.pop(subscriber))

    def total(self) -> Distances:
        self._flush()
        distances, pairs = self._forgotten + self._sums.sum(axis=0)
        return Distances(float(distances), int(pairs))

    def of(self, subscriber: str) -> Distances:
        self._flush()
        row = self._rows.get(subscriber)
        return (
            Distances()
            if row is None
            else Distances(float(self._sums[row, 0]), int(self._sums[row, 1]))
        )

    def _flush(self) -> None:
        """Measure the pending deliveries."""
        if self._pending_rows:
            rows, events = self._pending_rows, self._pending_events
            self._pending_rows, self._pending_events = [], []
            new = dict[str, Event]()
            for event in events:
                if event.id not in self._slots:
                    new.setdefault(event.id, event)
            if new:
                self._add_events(list(new.values()))
            slots = [self._slots[event.id] for event in events]
            self._measure(np.array(rows, np.int64), np.array(slots, np.int64))

    def _measure(self, rows: Int64s, slots: Int64s) -> None:
        """Measure deliveries, then remove the events that no ring refers to."""
        self._reserve_rows()
        measure_deliveries(
            self._hashes.rows, rows, slots, self._rings, self._references, self._sums
        )
        for slot in np.flatnonzero(self._references == 0).tolist():
            self._hashes.remove(slot)
            self._references[slot] = FREE
            del self._slots[self._event_ids.pop(slot)]

    def _add_events(self, events: Sequence[Event]) -> list[int]:
        """Add new events; return their slots."""
        slots = self._hashes.add_many(events)
        self._slots.update((event.id, slot) for event, slot in zip(events, slots, strict=True))
        self._event_ids.update((slot, event.id) for event, slot in zip(events, slots, strict=True))
        self._references = grown(self._references, self._hashes.capacity, fill=FREE)
        self._references[slots] = 0
        return slots

    def _reserve_rows(self) -> None:
        ring, counts = self._rings
        rows = self._count_rows() + len(self._free_rows)
        self._rings = DeliveryRings(grown(ring, rows), grown(counts, rows))
        self._sums = grown(self._sums, rows)
