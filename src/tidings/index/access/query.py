"""Queries against one snapshot of the index, and the scratch buffers of one reader."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int32s, Int64s
from tidings.compiled.arrays import offsets
from tidings.compiled.jit import TypedKernel
from tidings.index.access.encode_columns import encode_columns, joined
from tidings.index.access.kernels.match import (
    EventBatch,
    MatchScratch,
    SegmentView,
    append_by_event,
    match_events,
    scan_events,
    top_events,
)
from tidings.index.access.kernels.partial_match import (
    Hits,
    TouchScratch,
    relaxed_tops,
    touch_events,
)
from tidings.index.access.kernels.postings import LEVELS, WIDE
from tidings.index.access.kernels.records import CachedTerms, EncodedEvents, Stamps
from tidings.index.access.kernels.scan_blocks import EVENTS_TOGETHER, BlockScratch
from tidings.index.access.kernels.simd_blocks import SIDES
from tidings.index.access.segment import Segment
from tidings.index.access.snapshot import Snapshot
from tidings.index.access.terms import UNNAMED, FamilyTerms, OtherTerms
from tidings.index.access.vocabulary import Vocabulary, ordered
from tidings.model.event_columns import ColumnEvents, attached
from tidings.model.records import Event, Subscription
from tidings.model.values import Range, Token, tokens

Scored = tuple[str, float]
FIRST: Final = 1 << 12  # numbers for which room is reserved at first
MOST_EXPECTED: Final = 1 << 24  # numbers for which room is reserved because others needed it
LAST_EPOCH: Final = 2_000_000_000
TOGETHER: Final = 32  # rows whose records are tested together
MATCH_EVENTS: Final = TypedKernel(match_events)
SCAN_EVENTS: Final = TypedKernel(scan_events)
TOP_EVENTS: Final = TypedKernel(top_events)


class ScratchBuffers:
    """Arrays that are allocated once and grow; one query uses them at a time."""

    def __init__(self) -> None:
        self._arrays: dict[str, AnyArray] = {}
        self._epoch = np.zeros(2, np.int32)
        self._rows = np.zeros(TOGETHER, np.int32)
        self._undecided = np.zeros(EVENTS_TOGETHER, np.int64)
        self.counters = np.zeros(3, np.int64)  # see `MatchScratch`
        self.expected = 0  # numbers of an event, after the last query
        self.touched = 0  # predicates of an event that held, after the last query

    @property
    def exhausted(self) -> bool:
        """Whether the epochs are about to overflow."""
        return bool(self._epoch[0] > LAST_EPOCH)

    def stamps(self, snapshot: Snapshot, events: EncodedEvents, most_terms: int) -> Stamps:
        """Return stamps for events that stamp at most `most_terms` terms each."""
        terms, slots = snapshot.vocabulary.terms, snapshot.vocabulary.slots
        spans = events.spans.reshape(-1, 4)
        values = int((spans[:, 3] - spans[:, 2] + spans[:, 1] - spans[:, 0]).max(initial=0))
        uncertain = len(events.probabilities) > 0
        stamp = self._buffer("stamp", terms + 1 + slots, np.int32)
        return Stamps(
            self._epoch,
            stamp,
            terms,
            stamp[terms + 1 :],
            self._buffer("slot_span", 2 * slots, np.int32),
            self._buffer("term_probability", terms, np.float64) if uncertain else np.empty(0),
            self._buffer("slot_probability", slots, np.float64) if uncertain else np.empty(0),
            self._buffer("terms", most_terms, np.int32),
            self._buffer("slots", values, np.int32),
            self._buffer("upper", values, np.int64),
            self._buffer("lower", values, np.int64),
        )

    def scratch(
        self, snapshot: Snapshot, events: EncodedEvents, stamps: Stamps, k: int
    ) -> MatchScratch:
        """Return buffers to match, with a heap of k."""
        lists = len(stamps.terms) + LEVELS * len(stamps.slots)
        if events.upper is not events.lower or _has_several_values(events):
            # A hull may lead to all nodes of a tree: fewer than two per cell.
            lists += sum(int(segment.postings.cells.sum()) for segment in snapshot.segments) * 2
        return MatchScratch(
            stamps,
            self._buffer("taken", len(snapshot.table.subscriptions), np.int32),
            self._buffer("lists", WIDE * lists, np.int32),
            np.empty(k, np.int64),
            self._buffer("ranks", snapshot.memtable.count, np.int32),
            self._rows,
            self._block_scratch(snapshot.segments),
            self.counters,
        )

    def _block_scratch(self, segments: Sequence[Segment]) -> BlockScratch:
        """Return buffers to scan the blocks of any of these segments."""
        slots = blocks = 0
        for segment in segments:  # a generator would take longer, for every query
            slots = max(slots, len(segment.blocks.exact))
            blocks = max(blocks, len(segment.blocks.tested))
        return BlockScratch(
            self._buffer("codes", SIDES * EVENTS_TOGETHER * slots, np.uint8),
            self._undecided,
            self._buffer("masks", 2 * EVENTS_TOGETHER * blocks, np.int64),
        )

    def touch(self, ranks: int, checks: int) -> TouchScratch:
        """Return buffers to collect the checks that hold."""
        return TouchScratch(
            self._buffer("seen", ranks, np.int32),
            self._buffer("place", ranks, np.int32),
            self._buffer("touched", ranks, np.int32),
            self._buffer("counts", ranks, np.int32),
            self._buffer("bounds", ranks, np.float64),
            self._buffer("held", 2 * checks + 2, np.int32),
            self._buffer("partials", checks + 1, np.float64),
        )

    def _buffer(self, name: str, size: int, dtype: Any) -> AnyArray:
        buffer = self._arrays.get(name)
        if buffer is None or len(buffer) < size:
            buffer = self._arrays[name] = np.zeros(max(64, size + size // 4), dtype)
        return buffer


def _has_several_values(events: EncodedEvents) -> bool:
    """Return whether some slot may have several values in one event."""
    return bool((events.slots[1:] == events.slots[:-1]).any())


class FoundHits(NamedTuple):
    """Hits of a batch of events, with the subscriptions behind their numbers.

    `subscriptions` returns these also after they were removed.
    """

    hits: Hits
    table: Sequence[Any]

    def subscriptions(self, event: int) -> list[Subscription]:
        """Return the subscriptions of one event."""
        numbers = self.hits.numbers[self.hits.starts[event] : self.hits.starts[event + 1]]
        return [self.table[number] for number in numbers.tolist()]


class Query:
    """A batch of events, matched against one snapshot with one set of scratch buffers."""

    def __init__(
        self, snapshot: Snapshot, events: Sequence[Event], buffers: ScratchBuffers
    ) -> None:
        self._snapshot, self._buffers = snapshot, buffers
        self._count = len(events)
        encoded, cached, most_terms = encode_events(snapshot.vocabulary, events)
        self._encoded = encoded
        self.batch = EventBatch(encoded, cached, snapshot.vocabulary.counts)
        self._stamps = buffers.stamps(snapshot, encoded, most_terms)

    def matching(self) -> FoundHits:
        """Return the subscriptions that cover the events."""
        snapshot, scratch = self._snapshot, self.scratch(0)
        views = [segment.view(snapshot.version) for segment in snapshot.segments]
        parts = [self._match(MATCH_EVENTS, view, scratch) for view in views]
        if snapshot.size:
            ranks, starts = self._match(SCAN_EVENTS, self._memtable, scratch)
            parts.append((snapshot.memtable.records.ranks[2 * ranks], starts))
        numbers, starts = self._joined(parts)
        none = np.empty(0, np.int64), np.empty(0, np.int32)
        return FoundHits(Hits(starts, numbers, *none), snapshot.table.subscriptions)

    def touching(self) -> FoundHits:
        """Return the subscriptions of which some predicate holds, and which ones do."""
        scratch = self.scratch(0)
        parts = [self._touch(view, scratch) for view in self._partial_views()]
        hits = parts[0] if len(parts) == 1 else self._joined_partial(parts)
        return FoundHits(hits, self._snapshot.table.subscriptions)

    def tops(self, k: int) -> list[list[Scored]]:
        """Return for every event the k best by their own scores."""
        snapshot = self._snapshot
        k = min(k, len(snapshot.table.subscriptions))
        scratch = self.scratch(k)
        tops: list[list[Scored]] = [[] for _ in range(self._count)]
        least = np.full(self._count, -np.inf)  # by event: the score that the k-th has at least
        for segment in snapshot.segments:
            best = self._best(segment, scratch, k, least)
            tops = best if segment is snapshot.segments[0] else merged(tops, best, k, least)
        return merged(tops, self._memtable_best(least), k, least) if snapshot.size else tops

    def relaxed(self, k: int) -> list[list[Scored]]:
        """Return for every event the k best by the weights of the predicates that hold."""
        k = min(k, len(self._snapshot.table.subscriptions))
        scratch = self.scratch(k)
        tops: list[list[Scored]] = [[] for _ in range(self._count)]
        ids = self._snapshot.table.ids
        for view in self._partial_views() if k else ():
            out, scores = np.empty((self._count, k + 1), np.int64), np.empty((self._count, k))
            touch = self._touch_scratch(view)
            relaxed_tops(view, self.batch, scratch, touch, scores, out.ravel())
            best = named(view.records.ranks, out, scores, ids)
            tops = [top + more for top, more in zip(tops, best, strict=True)]
        return [nsmallest(k, top, key=best_first) for top in tops]

    @property
    def _memtable(self) -> SegmentView:
        snapshot = self._snapshot
        return snapshot.memtable.view(snapshot.size, snapshot.version, snapshot.table.ids)

    def scratch(self, k: int) -> MatchScratch:
        """Return buffers to match, with a heap of k."""
        return self._buffers.scratch(self._snapshot, self._encoded, self._stamps, k)

    def _partial_views(self) -> Iterator[SegmentView]:
        for segment in self._snapshot.segments:
            yield segment.partial_view(self._snapshot.version)
        if self._snapshot.size or not self._snapshot.segments:
            yield self._memtable

    def _touch_scratch(self, view: SegmentView) -> TouchScratch:
        return self._buffers.touch(len(view.records.offsets), len(view.weights.part))

    def _match(
        self, kernel: Any, view: SegmentView, scratch: MatchScratch
    ) -> tuple[Int32s, Int64s]:
        """Return numbers and starts of all events; resume with more room when that runs out."""
        room = max(FIRST, min(self._count * self._buffers.expected, MOST_EXPECTED))
        starts, out = np.zeros(self._count + 1, np.int64), np.empty(room, np.int32)
        done = 0
        while (done := kernel(view, self.batch, scratch, done, starts, out)) < self._count:
            filled, needed = int(starts[done]), int(starts[done + 1])
            # As if all events had as many matches as those so far, and a quarter more.
            projected = needed * self._count // (done + 1)
            out = _enlarged(out, filled, max(2 * len(out), projected + projected // 4))
        # To run out of room costs a second scan of the blocks; smaller segments need less of it.
        most = 5 * int((starts[1:] - starts[:-1]).max(initial=0)) // 4
        self._buffers.expected = max(most, 3 * self._buffers.expected // 4)
        return out[: starts[-1]], starts

    def _touch(self, view: SegmentView, scratch: MatchScratch) -> Hits:
        touch = self._touch_scratch(view)
        # An event that runs out of room is matched again: the last query tells what is enough.
        room = max(FIRST, min(self._count * self._buffers.touched, MOST_EXPECTED))
        out = Hits(
            np.zeros(self._count + 1, np.int64),
            np.empty(room, np.int32),
            np.zeros(room + 1, np.int64),
            np.empty(room, np.int32),
        )
        done = 0
        while (done := touch_events(view, self.batch, scratch, touch, done, out)) < self._count:
            wider = (_enlarged(column, len(column), 2 * len(column)) for column in out[1:])
            out = Hits(out.starts, *wider)
        size = int(out.starts[-1])
        parts = out.parts[: out.part_starts[size]]
        most = 5 * len(parts) // (4 * max(1, self._count))
        self._buffers.touched = max(most, 3 * self._buffers.touched // 4)
        return Hits(out.starts, out.numbers[:size], out.part_starts[: size + 1], parts)

    def _joined(self, parts: list[tuple[Int32s, Int64s]]) -> tuple[Int32s, Int64s]:
        """Join the numbers of several parts event by event."""
        if len(parts) == 1:
            return parts[0]
        starts = np.zeros(self._count + 1, np.int64)
        for _, part_starts in parts:
            starts += part_starts
        numbers, ends = np.empty(int(starts[-1]), np.int32), starts[:-1].copy()
        for part, part_starts in parts:
            append_by_event(part, part_starts, ends, numbers)
        return numbers, starts

    def _joined_partial(self, parts: list[Hits]) -> Hits:
        """Join all columns of several parts event by event."""
        numbers, starts = self._joined([(part.numbers, part.starts) for part in parts])
        sizes = [(np.diff(part.part_starts).astype(np.int32), part.starts) for part in parts]
        counts, _ = self._joined(sizes)
        held, _ = self._joined([(part.parts, part.part_starts[part.starts]) for part in parts])
        return Hits(starts, numbers, offsets(counts), held)

    def _best(
        self, segment: Segment, scratch: MatchScratch, k: int, least: Float64s
    ) -> list[list[Scored]]:
        """Return the k best of a segment that may be among the k best of all."""
        limits = np.full(self._count, len(segment), np.int32)
        if (least > -np.inf).any():  # else there is no bound yet
            limits[:] = np.searchsorted(-segment.scores, -least, "right")
        out = np.empty((self._count, k + 1), np.int64)
        view = segment.view(self._snapshot.version)
        TOP_EVENTS(view, self.batch, scratch, limits, out.ravel())
        ranks = np.where(np.arange(k) < out[:, :1], out[:, 1:], 0)
        if segment is self._snapshot.segments[0]:
            full = out[:, 0] == k
            least[full] = segment.scores[ranks[full, -1]]
        scores = segment.scores[ranks] if len(segment) else np.zeros((self._count, k))
        return named(segment.records.ranks, out, scores, self._snapshot.table.ids)

    def _memtable_best(self, least: Float64s) -> list[list[Scored]]:
        """Return the candidates of the memtable that may be among the k best of all."""
        memtable, ids = self._snapshot.memtable, self._snapshot.table.ids
        ranks, starts = self._match(SCAN_EVENTS, self._memtable, self.scratch(0))
        scores = memtable.scores[ranks]
        best: list[list[Scored]] = [[] for _ in range(self._count)]
        event = np.repeat(np.arange(self._count), np.diff(starts))
        for position in np.flatnonzero(scores >= least[event]).tolist():
            number = memtable.records.ranks[2 * ranks[position]]
            best[event[position]].append((ids[number], float(scores[position])))
        return best


def named(ranks: Int32s, out: Int64s, scores: Float64s, ids: Sequence[str]) -> list[list[Scored]]:
    """Return rows of a count and that many ranks as ids with their scores."""
    counts = out[:, 0]
    present = np.arange(scores.shape[1]) < counts[:, None]
    numbers = ranks[2 * out[:, 1:][present]].tolist()
    pairs = list(zip(map(ids.__getitem__, numbers), scores[present].tolist(), strict=True))
    ends = np.cumsum(counts).tolist()
    return [pairs[end - count : end] for end, count in zip(ends, counts.tolist(), strict=True)]


def merged(
    tops: list[list[Scored]], more: list[list[Scored]], k: int, least: Float64s
) -> list[list[Scored]]:
    """Merge more into the k best of every event, and raise the bounds of the k-th."""
    for event, new in enumerate(more):
        if new:
            tops[event] = sorted(tops[event] + new, key=best_first)[:k]  # merges ordered runs
            if len(tops[event]) == k:
                least[event] = tops[event][-1][1]
    return tops


def best_first(scored: Scored) -> tuple[float, str]:
    """Return the sort key of answers: the greater score, then the smaller id."""
    return (-scored[1], scored[0])


def _enlarged(array: AnyArray, filled: int, size: int) -> AnyArray:
    """Return an array of another size with a copy of the first `filled` values."""
    wider = np.empty(size, array.dtype)
    wider[:filled] = array[:filled]
    return wider


# Encodes events as numbers of an index's vocabulary.


class Encoding(NamedTuple):
    """Encoded events, the cached texts that they refer to, and the most terms one may stamp."""

    events: EncodedEvents
    cached: CachedTerms
    most_terms: int


def encode_events(vocabulary: Vocabulary, events: Sequence[Event]) -> Encoding:
    """Encode events; start again if another reader has replaced the full cache."""
    while True:
        cache = vocabulary.open_cache()
        if isinstance(events, ColumnEvents):
            encoded = encode_columns(vocabulary, events)
        else:
            encoded = _encoded(vocabulary, events)
        if vocabulary.cache is cache:
            vocabulary.events += len(events)
            # Of one event, `np.diff`, `np.any` and the like take longer than what they compute.
            most = int((encoded.spans[1::4] - encoded.spans[::4]).max(initial=0))
            return Encoding(encoded, cache.table, most * max(1, cache.longest))


def _encoded(vocabulary: Vocabulary, events: Sequence[Event]) -> EncodedEvents:
    """Encode events, from their columns where these are attached."""
    columns = attached(events)
    if columns is not None:
        return joined([encode_columns(vocabulary, part) for part in columns])
    encoder = _EventEncoder(vocabulary)
    for event in events:
        encoder.add(event)
    return encoder.encoded()


class _Uncertain(NamedTuple):
    """A run of items or values whose probability is not 1."""

    column: "array[Any]"
    first: int
    last: int
    probability: float


class _EventEncoder:
    """Collects the items and values of one event after the other."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.items, self.slots = array("i"), array("i")
        self.values, self.spans = array("d"), array("q")
        self.lower: dict[int, float] = {}  # of values that are ranges
        self.uncertain: list[_Uncertain] = []

    def add(self, event: Event) -> None:
        """Encode one event."""
        first, first_value = len(self.items), len(self.slots)
        if event.probabilities:
            self._add_uncertain(event)
        else:
            self._add(event, event.attributes)
        if self._vocabulary.absent:
            terms = list(self._vocabulary.absent.items())
            self.items.extend(~term for name, term in terms if name not in event.attributes)
        self.spans.extend((first, len(self.items), first_value, len(self.slots)))

    # A call per value would cost as much as the rest.
    def _add(self, event: Event, attributes: Mapping[str, Any]) -> None:  # noqa: C901
        """Encode attributes; strings and numbers, which most values are, on the fast path."""
        add_item, encoders = self.items.append, self._vocabulary.encoders
        add_slot, add_value = self.slots.append, self.values.append
        for name, value in attributes.items():
            encoder = encoders.get(name)
            if encoder is None:
                if name not in self._vocabulary.attributes:
                    continue
                encoder = self._vocabulary.encoder(name)
            kind = type(value)
            if encoder.others is not None:
                self._add_others(encoder.others, value)
            if kind is str:
                text = encoder.texts.get(value)
                if text is None:
                    text = self._vocabulary.cache_text(name, value)
                if text:
                    add_item(text)
            elif kind is float or kind is int:
                if encoder.slot >= 0:
                    add_slot(encoder.slot)
                    add_value(value)
                equal = encoder.equal
                if equal and (value if kind is float else float(value)) in equal:
                    add_item(~equal[float(value)])
            else:
                self._add_tokens(name, event)

    def _add_others(self, others: OtherTerms, value: Any) -> None:
        """Encode that a value is there, and the lists that a number is in."""
        if others.present >= 0 and value != ():
            self.items.append(~others.present)
        if others.lists is not None and type(value) in (int, float):
            self.items.extend(~term for term in others.lists.holding(float(value)))

    def _add_uncertain(self, event: Event) -> None:
        for name, value in event.attributes.items():
            before = len(self.items), len(self.slots)
            self._add(event, {name: value})
            if name in event.probabilities:
                for column, first in zip((self.items, self.slots), before, strict=True):
                    run = _Uncertain(column, first, len(column), event.probabilities[name])
                    self.uncertain.append(run)

    def encoded(self) -> EncodedEvents:
        """Return everything that was added, as arrays."""
        values = np.array(self.values, np.float64)
        upper = lower = ordered(values)
        if self.lower:
            ends = values.copy()
            ends[list(self.lower)] = list(self.lower.values())
            lower = ordered(ends)
        return EncodedEvents(
            np.array(self.spans, np.int64),
            np.array(self.items, np.int32),
            np.array(self.slots, np.int32),
            upper,
            lower,
            self._probabilities(),
        )

    def _add_tokens(self, name: str, event: Event) -> None:
        """Encode the tokens of an attribute by family: the values of a slot must be adjacent."""
        values = sorted(tokens(event.attributes[name]), key=_family)
        for token in values:
            self._add_token(name, token)
        if not values and name in self._vocabulary.absent:  # an empty list
            self.items.append(~self._vocabulary.absent[name])

    def _add_token(self, name: str, token: Token) -> None:
        family, key = token
        terms = self._vocabulary.attributes[name].get(family)
        if terms is None:
            return
        if isinstance(key, str):
            text = self._vocabulary.encoder(name).texts.get(key)
            self.items.append(self._vocabulary.cache_text(name, key) if text is None else text)
            return
        if isinstance(key, Range):
            self._add_range(terms, key)
            return
        self.items.extend(~term for term in terms.satisfied(key))
        if terms.slot >= 0:
            self.slots.append(terms.slot)
            value = terms.codes.get(key, UNNAMED) if family == "boolean" else float(key)
            self.values.append(value)

    def _add_range(self, terms: FamilyTerms, key: Range) -> None:
        """Encode a range; one that must be contained has its ends exchanged, see `records`."""
        low, high = key.span
        overlaps = key.mode == "overlaps"
        if overlaps or low == high:
            with self._vocabulary.lock:
                self.items.extend(~term for term in terms.within(low, high))
        if not overlaps or low == high:  # it can be excluded by a value that it includes
            with self._vocabulary.lock:
                self.items.extend(~term for term in terms.listing(low, high))
        if terms.slot >= 0:
            self.lower[len(self.slots)] = low if overlaps else high
            self.slots.append(terms.slot)
            self.values.append(high if overlaps else low)

    def _probabilities(self) -> Float64s:
        if not self.uncertain:
            return np.empty(0)
        probabilities = np.ones(len(self.items) + len(self.slots))
        for run in self.uncertain:
            shift = 0 if run.column is self.items else len(self.items)
            probabilities[shift + run.first : shift + run.last] = run.probability
        return probabilities


def _family(token: Token) -> str:
    return token[0]
