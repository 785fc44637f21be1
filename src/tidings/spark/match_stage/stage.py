"""The match stage: from record batches of publications to rows for the buckets of subscribers.

For some events at a time, every bucket gets a row: a match batch, or a tick so that time passes
where nothing matches. Records that cannot be read travel along as dead letters, and in streams one
bucket gets the arrived rows themselves, for the late table. All of it is Arrow in, Arrow out, and
needs no session.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import Bools, Int32s, Int64s
from tidings.compiled.arrays import offsets
from tidings.compiled.jit import kernel, write_progress
from tidings.errors import InvalidPolicy, clipped, shown
from tidings.feed.policy_key import counts_published, unregistered
from tidings.formats.arrow import ReadEvents
from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.index_files.subscriber_table import hash_of
from tidings.model.dead_letter import BadRecord, Culprit, Failure, try_call
from tidings.model.event_columns import (
    UNNUMBERED,
    ColumnEvents,
    contents_of,
    ids_of,
    sequences_of,
    times_of,
)
from tidings.model.records import Event
from tidings.model.values import SECOND_US, format_time, parse_time_us
from tidings.policy import Policy
from tidings.rank.bulk.kernels.bucketize import (
    MATCHED,
    MATCHES,
    SUBSCRIBERS,
    SUBSCRIPTIONS,
    BucketedMatches,
    split_by_bucket,
)
from tidings.rank.bulk.protocol import Unranked
from tidings.rank.matches import Matches
from tidings.spark.bisect_failures import bisect
from tidings.spark.match_stage.event_watch import EventWatch, Observations
from tidings.spark.match_stage.match_batch import MatchBatch, texts_if_any
from tidings.spark.match_stage.matcher_source import MatcherSource
from tidings.spark.publications import ReadColumns
from tidings.spark.state_stage.outcomes import pack_rows

# Matching of some events, with the matches split by the buckets of their subscribers.
#
# Matches that cannot win their period may be pruned before they are sent: one is dropped if k
# better ones of the same batch are not older (it is outside the k-skyband of rank and time). If the
# state stage finds those k late, it finds the dropped one late as well, so deliveries stay the
# same. Only periods of time without diversity allow it: windows by count must count, a diversifier
# may prefer lower ranks, and other windows choose before the better ones come.

_OLDEST: Final = np.iinfo(np.int64).min


class UnrankedMatch(NamedTuple):
    """A match that its subscriber does not get because the subscriber's own scorer failed."""

    event: Event
    subscriber: str
    reason: str


class MatchesByBucket(NamedTuple):
    """Match batches of the buckets that have matches, and events that some subscriber misses.

    Subscribers that count publications get no event without a sequence number (`unnumbered`), and
    none gets an event that its own scorer could not rank (`unranked`). All others do.
    """

    batches: dict[int, MatchBatch]
    unnumbered: list[Event]
    unranked: list[UnrankedMatch]

    @property
    def matches(self) -> int:
        """Number of matches."""
        return sum(len(batch.matches.ranks) for batch in self.batches.values())


def match_by_bucket(
    matcher: OverlayMatcher, events: Sequence[Event], buckets: int, *, prune: bool = False
) -> MatchesByBucket:
    """Match events and split the matches; with `prune`, those that cannot win are left out."""
    failed: list[Unranked] = []
    matches, unnumbered = _drop_uncountable(matcher, events, matcher.match_many(events, failed))
    if prune:
        matches = prune_periods(matcher, events, matches)
    homes = (matcher.hashes % buckets).astype(np.int32)
    split, firsts, lengths = split_by_bucket(matches, homes, buckets, matcher.size)
    builder = _BatchBuilder(matcher, events, split)
    filled = np.flatnonzero(lengths[:, MATCHES]).tolist()
    batches = {bucket: builder.batch(firsts[bucket], lengths[bucket]) for bucket in filled}
    unranked = [
        UnrankedMatch(events[miss.event], _name(matcher, miss.owner), miss.reason)
        for miss in failed
    ]
    return MatchesByBucket(batches, unnumbered, unranked)


def _name(matcher: OverlayMatcher, number: int) -> str:
    return str(matcher.names.take(np.array([number])).to_pylist()[0])


def _drop_uncountable(
    matcher: OverlayMatcher, events: Sequence[Event], matches: Matches
) -> tuple[Matches, list[Event]]:
    """Drop matches of events without a sequence for subscribers that count; return these events."""
    bare = sequences_of(events) == UNNUMBERED
    counting = matcher.numbers(_counts)[:, 0].astype(np.bool_)
    if not (bare.any() and counting.any()):
        return matches, []
    event_of = matches.events
    dropped = bare[event_of] & counting[matches.subscribers]
    unnumbered = [events[position] for position in np.unique(event_of[dropped]).tolist()]
    return matches.only(~dropped), unnumbered


def _counts(policy: Policy | None) -> tuple[int]:
    return (policy is not None and counts_published(policy),)


class _BatchBuilder:
    """Builds the match batch of a bucket from slices of the split columns."""

    def __init__(
        self, matcher: OverlayMatcher, events: Sequence[Event], split: BucketedMatches
    ) -> None:
        self._matcher, self._events, self._split = matcher, events, split
        self._ids, self._us = ids_of(events), times_of(events)
        self._sequence = sequences_of(events)
        self._contents = texts_if_any(contents_of(events))
        self._forms: dict[int, str] = {}

    def batch(self, firsts: Int64s, lengths: Int64s) -> MatchBatch:
        """Return the match batch of a bucket, given where its columns start and their lengths."""
        split, first, begin = self._split, firsts[MATCHES], firsts[MATCHED]
        rows = slice(first, first + lengths[MATCHES])
        event_of = split.events[rows]
        starts = np.flatnonzero(np.diff(event_of, prepend=-1))
        subscribers = split.subscriber_names[first : first + lengths[SUBSCRIBERS]]
        subscriptions = split.subscription_names[begin : begin + lengths[SUBSCRIPTIONS]]
        compares = self._matcher.attributes[subscribers][split.subscribers[rows]]
        present = event_of[starts]
        return MatchBatch(
            [self._ids[position] for position in present.tolist()],
            self._us[present],
            self._sequence[present],
            list(self._write_forms(present, np.logical_or.reduceat(compares, starts).tolist()))
            if compares.any()
            else (),
            Matches(
                np.append(starts, lengths[MATCHES]),
                split.subscribers[rows],
                split.ranks[rows],
                offsets(split.sizes[rows]),
                split.matched[begin : begin + lengths[MATCHED]],
            ),
            self._matcher.names.take(subscribers),
            self._matcher.ids.take(subscriptions),
            texts_if_any(self._contents[position] for position in present.tolist())
            if self._contents
            else (),
        )

    def _write_forms(self, present: Int32s, needed: Sequence[bool]) -> Iterator[str]:
        """Yield the JSON text, without content, of events that are compared, else an empty text."""
        for position, is_needed in zip(present.tolist(), needed, strict=True):
            if is_needed and position not in self._forms:
                self._forms[position] = json.dumps(self._events[position].dict_without_content())
            yield self._forms[position] if is_needed else ""


class PrunablePeriod(NamedTuple):
    """Parameters of a policy that pruning needs; k = 0 means that it must not be pruned."""

    k: int = 0
    length_us: int = 1
    origin_us: int = 0

    @classmethod
    def of(cls, policy: Policy | None) -> "PrunablePeriod":
        """Return the periods of a policy, with k = 0 for a policy that does not allow pruning."""
        window: Any = policy.window if policy else None
        if policy is None or window.name != "periodic" or policy.diversify.name != "none":
            return cls()
        if window.length is None or window.length.us is None or unregistered(policy):
            return cls()
        return cls(policy.k, window.length.us, parse_time_us(window.origin))


def prune_periods(matcher: OverlayMatcher, events: Sequence[Event], matches: Matches) -> Matches:
    """Return the matches that may win; subscribers with at most k matches cost nothing more."""
    periods = matcher.numbers(PrunablePeriod.of)
    above_k = np.bincount(matches.subscribers, minlength=len(periods)) > periods[:, 0]
    rows = np.flatnonzero((above_k & (periods[:, 0] > 0))[matches.subscribers])
    if not len(rows):
        return matches
    us, recency = _recency(events)
    event = matches.events[rows]
    owner, rank = matches.subscribers[rows], matches.ranks[rows]
    k, length, origin = periods[owner].T
    period = (us[event] - origin) // length
    order = np.lexsort((recency[event], -rank, period, owner))
    edges = np.diff(owner[order], prepend=-1) != 0
    edges |= np.diff(period[order], prepend=period[order[0]]) != 0
    beaten = np.zeros(len(order), np.bool_)
    mark_beaten(np.cumsum(edges), us[event][order], k[order], beaten)
    mask = np.ones(len(matches.subscribers), np.bool_)
    mask[rows[order[beaten]]] = False
    return matches.only(mask)


def _recency(events: Sequence[Event]) -> tuple[Int64s, Int64s]:
    """Return the times of events, and their positions with the newer, then the smaller id first."""
    us, ids = times_of(events), ids_of(events)
    order = sorted(range(len(events)), key=lambda event: (-int(us[event]), ids[event]))
    position = np.empty(len(events), np.int64)
    position[order] = np.arange(len(events))
    return us, position


@kernel
def mark_beaten(groups: Int64s, us: Int64s, k: Int64s, beaten: Bools) -> None:
    """Mark rows for which k rows before them in their group are not older; O(n k) at most.

    A group is contiguous, best rows first; its k is that of its first row. `newest` holds the k
    latest times so far in descending order, so its last one decides.
    """
    newest = np.empty(1, np.int64)
    group, size = -1, 0
    for row in range(len(groups)):
        if row == 0 or groups[row] != group:
            group, size = groups[row], k[row]
            newest = np.full(size, _OLDEST, np.int64)
        beaten[row] = newest[size - 1] != _OLDEST and newest[size - 1] >= us[row]
        place = size - 1
        if us[row] > newest[place] or newest[place] == _OLDEST:
            while place > 0 and us[row] > newest[place - 1]:
                newest[place] = newest[place - 1]
                place -= 1
            newest[place] = us[row]


MAX_ROWS: Final = 1 << 14
"""Most rows that are read at once."""

MAX_MATCHES: Final = 2_000_000
"""Number of matches to aim at in one call; a match takes some 100 bytes while it is sent."""

PART: Final = "tidings_part"
"""Column with the part of the subscribers that a row is for, if there are several parts."""

NOW: Final = "tidings_now"
"""Column with the time of the micro-batch in microseconds, in streams that check `future`."""

LAST: Final = "tidings_last"
"""Column that marks the rows of the last file of a stream that ends."""

BUCKET_ROWS: Final = pa.schema(
    {
        "bucket": pa.int32(),
        "kind": pa.string(),
        "published_us": pa.int64(),
        "sequence": pa.int64(),
        "body": pa.binary(),
    }
)
"""Rows between the stages: matches, a tick, a dead letter, rows as they arrived, or the end."""


class BatchSizer:
    """Chooses how many events are matched at once, by the matches per event so far of each part.

    The first batches are small because each of their events could match everything.
    """

    def __init__(self) -> None:
        self._rates: dict[int, float] = {}

    def split(
        self, part: int, matcher: OverlayMatcher, events: Sequence[Event]
    ) -> Iterator[Sequence[Event]]:
        """Yield the events in order, some at a time; report each batch before taking the next."""
        done = 0
        while done < len(events):
            rate = self._rates.get(part, matcher.size)
            size = max(1, int(MAX_MATCHES / (1 + rate)))
            yield events[done : done + size]
            done += size

    def report(self, part: int, events: int, matches: int) -> None:
        """Record how many matches a batch had."""
        self._rates[part] = matches / events


class ReadRows(NamedTuple):
    """The events and bad records of some rows, and the rows that may be late."""

    events: Sequence[Event]
    bad: list[BadRecord]
    rows: pa.RecordBatch


@dataclass(frozen=True)
class MatchStage:
    """Reads events, matches them, and addresses the matches to buckets.

    The buckets of a part are those whose number is the part, modulo the number of parts. An event
    that is further ahead of the clock than `future_us` is a dead letter and moves no watermark; the
    clock is the column NOW, which is the same when a batch is replayed. A `watch` sees all events
    and which subscriptions match.
    """

    source: MatcherSource
    read: ReadEvents
    buckets: int
    prune: bool = False
    streams: bool = False
    future_us: int | None = None
    watch: EventWatch | None = None

    def __post_init__(self) -> None:
        if self.buckets % self.source.parts:
            raise InvalidPolicy(
                f"{self.buckets} buckets cannot be split over {self.source.parts} parts; "
                "make the buckets a multiple of the parts"
            )

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows of BUCKET_ROWS for record batches of publications; Spark calls it."""
        write_progress()  # a worker has no terminal
        with self.watch.watching() if self.watch is not None else nullcontext() as observed:
            yield from self._batches(batches, observed)

    def _batches(
        self, batches: Iterable[pa.RecordBatch], observed: Observations | None
    ) -> Iterator[pa.RecordBatch]:
        sizer = BatchSizer()
        for part, arrived in by_part(batches):
            matcher = self.source.matcher(part)
            if _is_last(arrived):
                yield pa.RecordBatch.from_pylist(self._end_rows(part), BUCKET_ROWS)
            events, bad, rows = self._read(arrived)
            if bad and part == 0:
                yield pa.RecordBatch.from_pylist([_dead_row(record) for record in bad], BUCKET_ROWS)
            if observed is not None and part == 0:
                observed.add_events(events)
            if events and self.streams and part == 0:
                yield pa.RecordBatch.from_pylist([self._arrived_row(events, rows)], BUCKET_ROWS)
            for some in sizer.split(part, matcher, events):
                for result in bisect(partial(self._match, matcher), some):
                    if isinstance(result, Culprit):
                        letter = _unmatched_row(result.item, result.reason)
                        yield pa.RecordBatch.from_pylist([letter], BUCKET_ROWS)
                        continue
                    sizer.report(part, len(result.items), result.result.matches)
                    if observed is not None:
                        buckets = result.result.batches.values()
                        observed.add_matches(batch.subscriptions for batch in buckets)
                    sent = self._rows(result.items, result.result, part)
                    yield pa.RecordBatch.from_pylist(sent, BUCKET_ROWS)

    def _end_rows(self, part: int) -> list[dict[str, Any]]:
        """Return the rows that tell the buckets of a part that the stream ends with this batch."""
        return [{**tick_row(bucket, 0, 0), "kind": "end"} for bucket in self._buckets_of(part)]

    def _buckets_of(self, part: int) -> range:
        return range(part, self.buckets, self.source.parts)

    def _read(self, rows: pa.RecordBatch) -> ReadRows:
        """Read rows; events too far ahead of the clock are bad records."""
        now_us = None
        if LAST in rows.schema.names:
            rows = rows.drop_columns([LAST])
        if NOW in rows.schema.names:
            now_us = rows.column(NOW)[0].as_py() if rows.num_rows else None
            rows = rows.drop_columns([NOW])
        latest_us = None if now_us is None or self.future_us is None else now_us + self.future_us
        columns = read_columns(self.read, rows)
        if columns is not None and (latest_us is None or columns.us.max(initial=0) <= latest_us):
            return ReadRows(columns, [], rows)
        records = list(self.read(rows))
        events = [record for record in records if isinstance(record, Event)]
        bad = [record for record in records if isinstance(record, BadRecord)]
        if now_us is None or latest_us is None or not events:
            return ReadRows(events, bad, rows)
        if max(event.published_us for event in events) <= latest_us:
            return ReadRows(events, bad, rows)
        ahead = [isinstance(e, Event) and e.published_us > latest_us for e in records]
        bad += [
            BadRecord(_form(record), self._ahead_reason(record, now_us), position)
            for position, (record, is_ahead) in enumerate(zip(records, ahead, strict=True), start=1)
            if is_ahead and isinstance(record, Event)
        ]
        events = [event for event in events if event.published_us <= latest_us]
        return ReadRows(events, bad, rows.filter(pa.array([not is_ahead for is_ahead in ahead])))

    def _ahead_reason(self, event: Event, now_us: int) -> str:
        seconds = (self.future_us or 0) / SECOND_US
        return (
            f"published_at {format_time(event.published_us)} is more than {seconds:g} s ahead of "
            f"the clock, which says {format_time(now_us)}; the option `future` sets how much"
        )

    def _match(self, matcher: OverlayMatcher, events: Sequence[Event]) -> MatchesByBucket:
        return match_by_bucket(matcher, events, self.buckets, prune=self.prune)

    def _arrived_row(self, events: Sequence[Event], rows: pa.RecordBatch) -> dict[str, Any]:
        """Return the row that carries the arrived rows to one bucket, for the late table."""
        oldest = int(times_of(events).min())
        row = tick_row(bucket_of(ids_of(events)[0], self.buckets), oldest, 0)
        return row | {"kind": "rows", "body": pack_rows(rows)}

    def _rows(
        self, events: Sequence[Event], matched: MatchesByBucket, part: int
    ) -> list[dict[str, Any]]:
        """Return a row for every bucket of a part, and the dead letters."""
        us = int(times_of(events).max())
        sequence = max(0, int(sequences_of(events).max()))
        return [
            *(
                _bucket_row(bucket, us, sequence, matched.batches.get(bucket))
                for bucket in self._buckets_of(part)
            ),
            *map(_unnumbered_row, matched.unnumbered),
            *map(_unranked_row, matched.unranked),
        ]


def read_columns(read: ReadEvents, rows: pa.RecordBatch) -> ColumnEvents | None:
    """Return the events of rows by column, where their reader and their types allow it."""
    return read.columns(rows) if isinstance(read, ReadColumns) else None


def _is_last(rows: pa.RecordBatch) -> bool:
    """Return whether some rows are of the last file of a stream."""
    return LAST in rows.schema.names and bool(pc.any(rows.column(LAST)).as_py())


def by_part(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield rows by part, at most MAX_ROWS at once; without the column PART, all are of part 0."""
    for batch in batches:
        if PART not in batch.schema.names:
            yield from ((0, rows) for rows in _slices(batch))
            continue
        parts = batch.column(PART).to_numpy(zero_copy_only=False)
        rows = batch.drop_columns([PART])
        for part in np.unique(parts).tolist():
            yield from ((part, some) for some in _slices(rows.filter(pa.array(parts == part))))


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    return (batch.slice(start, MAX_ROWS) for start in range(0, batch.num_rows, MAX_ROWS))


def tick_row(bucket: int, us: int, sequence: int) -> dict[str, Any]:
    """Return the row that informs a bucket of the time and number that the stream has reached."""
    return {"bucket": bucket, "kind": "tick", "published_us": us, "sequence": sequence}


def _bucket_row(bucket: int, us: int, sequence: int, batch: MatchBatch | None) -> dict[str, Any]:
    row = tick_row(bucket, us, sequence)
    return row if batch is None else row | {"kind": "matches", "body": batch.pack()}


def _dead_row(bad: BadRecord, **about: str) -> dict[str, Any]:
    row = {"bucket": 0, "kind": "dead", "published_us": 0, "sequence": 0}
    return row | {"body": json.dumps(bad.to_dict() | about).encode()}


def _unnumbered_row(event: Event) -> dict[str, Any]:
    """Build the dead letter for an event that some subscribers could not get.

    Every part may emit one, so it names its event.
    """
    reason = (
        "the event has no sequence, so subscribers whose windows count published events "
        '(count="published") did not get it; all others did'
    )
    return _dead_row(BadRecord(_form(event), reason, 0), event=event.id)


def _unmatched_row(event: Event, why: str) -> dict[str, Any]:
    """Build the dead letter for an event that cannot be matched; every part may emit one."""
    reason = clipped(f"the event cannot be matched: {why}")
    return _dead_row(BadRecord(_form(event), reason, 0), event=event.id)


def _unranked_row(match: UnrankedMatch) -> dict[str, Any]:
    """Build the dead letter for a match that its subscriber misses because its scorer failed."""
    name, event = shown(match.subscriber), shown(match.event.id)
    reason = f"subscriber {name} did not get event {event}: its scorer failed: {match.reason}"
    record = {"subscriber": match.subscriber, "event": match.event.id}
    return _dead_row(BadRecord(record, clipped(reason), 0), event=match.event.id)


def _form(event: Event) -> Mapping[str, Any]:
    form = try_call(event.to_dict)
    return {"id": event.id} if isinstance(form, Failure) else form


def bucket_of(subscriber: str, buckets: int) -> int:
    """Return the bucket of a subscriber, the same in every process."""
    return hash_of(subscriber) % buckets
