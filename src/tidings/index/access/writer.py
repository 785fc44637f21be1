"""Changes of the index: one writer at a time, and one background thread that merges.

Like a log-structured merge tree: changes go to the memtable, a full memtable becomes a segment, and
segments are merged so that each is more than twice as large as all after it. Every change ends with
a new snapshot that is swapped in at once; readers keep the one that they have.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.errors import InvalidSubscription
from tidings.index.access.description import AccessDescription
from tidings.index.access.encoding import EncodedSubscriptions, encode, joined, renumbered
from tidings.index.access.kernels.records import NEVER, OUTSIDE
from tidings.index.access.segment import Segment
from tidings.index.access.snapshot import (
    RECORDS,
    IdTable,
    Listener,
    Memtable,
    Snapshot,
    StoredConjunction,
    SubscriptionTable,
    checked_scores,
    conjunctions_of,
    stored_conjunctions,
)
from tidings.index.access.vocabulary import Vocabulary
from tidings.index.background import BackgroundMerge, release_free_memory
from tidings.index.protocol import own_score
from tidings.model.records import Subscription

# Merges of segments: tombstones are dropped, and unused predicates leave the vocabulary.


@dataclass(frozen=True)
class MergeJob:
    """Segments of a snapshot that become one; a full merge rebuilds the vocabulary as well."""

    snapshot: Snapshot
    segments: tuple[Segment, ...]
    full: bool

    @property
    def size(self) -> int:
        """How many subscriptions have to be read."""
        return sum(map(len, self.segments))

    def build(self) -> tuple[Segment, Vocabulary]:
        """Build the segment and its vocabulary; O(n log n). The snapshot is not changed."""
        version, vocabulary = self.snapshot.version, self.snapshot.vocabulary
        parts = [segment.encoded(version) for segment in self.segments]
        encoded = joined(parts, self.snapshot.table.ids)
        if self.full:
            encoded, vocabulary = compacted(encoded, vocabulary)
        merged = Segment(encoded, vocabulary)
        if any(segment.has_partial for segment in self.segments):
            merged.partial_view(version)  # so that the next query need not wait for it
        return merged, vocabulary


def compacted(
    encoded: EncodedSubscriptions, vocabulary: Vocabulary
) -> tuple[EncodedSubscriptions, Vocabulary]:
    """Return the same subscriptions in a vocabulary of the predicates that they use."""
    stamped = encoded.term >= 0
    terms = np.unique(np.concatenate([encoded.term[stamped], encoded.members]))
    slots = np.unique(encoded.slot[~stamped & (encoded.slot >= 0)])
    codes = np.unique(encoded.low[encoded.kind == OUTSIDE]).view(np.float64)
    fresh, moves = vocabulary.kept(terms, slots, codes)
    moved = renumbered(encoded, moves)
    fresh.count_uses(np.concatenate([moved.term, moved.members]), moved.slot[moved.term < 0])
    return moved, fresh


def rescored(
    parts: Sequence[tuple[Int64s, EncodedSubscriptions]],
    numbers: Sequence[int],
    scores: Float64s,
    ids: Sequence[str],
) -> EncodedSubscriptions:
    """Join subscriptions with new numbers and scores, each part with its positions in these."""
    new = np.array(numbers, np.int32)
    moved = [
        replace(encoded, numbers=new[positions], scores=scores[positions])
        for positions, encoded in parts
    ]
    return joined(moved, ids)


def segments_to_merge(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Return the segments to merge, if any: each must be more than double of all after it.

    A segment that is half dead is merged too.
    """
    after = 0
    chosen: tuple[Segment, ...] = ()
    for position in range(len(segments) - 1, -1, -1):
        segment, size = segments[position], len(segments[position])
        if (after and size <= 2 * after) or 2 * segment.dead > size:
            chosen = tuple(segments[position:])
        after += size
    return chosen


def copy_tombstones(merged: Segment, table: SubscriptionTable, homes: dict[int, Segment]) -> None:
    """Copy to a new segment the tombstones that its old ones got while it was built."""
    numbers = merged.numbers
    home, place = table.home[numbers], table.place[numbers]
    tombstones = np.full(len(merged), NEVER, np.int32)
    for serial in np.unique(home).tolist():
        ranks = np.flatnonzero(home == serial)
        tombstones[ranks] = homes[serial].tombstones[place[ranks]]
    merged.adopt(tombstones)


def merged_snapshot(
    snapshot: Snapshot, merged: Segment, vocabulary: Vocabulary, young: Int32s
) -> Snapshot:
    """Return the snapshot after a full merge; subscriptions added meanwhile are encoded again."""
    old = snapshot.table
    alive = np.zeros(len(old.subscriptions), np.bool_)
    alive[merged.numbers[merged.tombstones > snapshot.version]] = True
    alive[young] = True
    table = old.kept(alive)
    segments = [merged] if len(merged) else []
    if len(young):
        added = list(filter(None, map(table.subscriptions.__getitem__, young.tolist())))
        segments.append(Segment(encode(added, young.tolist(), vocabulary), vocabulary))
    return Snapshot(vocabulary, table, tuple(segments), Memtable(), 0, snapshot.version)


SMALL: Final = 8192
"""Up to this many subscriptions are merged while the change waits; more by the thread."""

MOST_SEGMENTS: Final = 48
"""With more segments than this, changes wait for the merge that is running."""

FEW: Final = 64
"""Up to this many subscriptions of a change go to the memtable; more become a segment."""

SPARE_NUMBERS: Final = 1024
"""This many numbers may be unused, beyond as many as there are subscriptions."""


class _Stored(NamedTuple):
    """Subscriptions that are stored in one segment or memtable."""

    home: Segment | Memtable
    positions: Int64s  # among the numbers that were looked up
    ranks: Int64s  # within the home


class IndexWriter:
    """Turns changes into new snapshots and swaps them in."""

    def __init__(self, memtable_size: int | None = None) -> None:
        self._most = RECORDS if memtable_size is None else min(memtable_size, RECORDS)
        self._background = BackgroundMerge()
        self._lock = self._background.lock
        self._ids = IdTable()
        self._homes: dict[int, Segment] = {}  # by serial
        self._serial = 0
        self._listeners: list[Listener] = []
        self._job: MergeJob | None = None
        self.snapshot = Snapshot.empty()

    def __len__(self) -> int:
        return len(self._ids)

    def change(self, removed: Sequence[str], added: Sequence[Subscription]) -> None:
        """Remove and add subscriptions in one snapshot; on an invalid id nothing changes."""
        self._wait()
        with self._lock:
            dead = self._numbers(removed)
            self._check_ids(removed, added)
            few = len(added) <= FEW
            # Whatever may fail comes first: nothing has changed by then.
            vocabulary = self.snapshot.vocabulary
            written = added if few else []
            encoded = [conjunctions_of(subscription, vocabulary) for subscription in written]
            self._bury(removed, dead)
            numbers = list[int]()
            if added:
                numbers = self.snapshot.table.add(added)
                names = [subscription.id for subscription in added]
                self._ids.add(names, numbers, self.snapshot.table.ids)
            try:
                if few:
                    snapshot = self._with_few(added, numbers, encoded)
                else:
                    snapshot = self._with_segment(added, numbers)
            except BaseException:
                for subscription in added:
                    self._ids.remove(subscription.id, self.snapshot.table.ids)
                raise
            self._publish(snapshot, dead, numbers)
        if len(added) > SMALL:
            release_free_memory()

    def rescore(self, scores: Mapping[str, float]) -> None:
        """Change scores: records are copied, not encoded again."""
        self._wait()
        with self._lock:
            table, names = self.snapshot.table, [*scores]
            dead = self._numbers(names)
            held = [table.subscriptions.held[number] for number in dead]
            new = checked_scores(held, scores.values())
            few = len(dead) <= FEW
            stored = [self._conjunctions(number) for number in dead] if few else []
            parts = [] if few else self._encoded(dead)
            self._bury(names, dead)
            numbers = table.add_rescored(dead, new.tolist())
            self._ids.add(names, numbers, table.ids)
            snapshot = self.snapshot
            for number, score, conjunctions in zip(numbers, new.tolist(), stored, strict=False):
                snapshot = self._append(snapshot, number, score, conjunctions)
            if parts:
                segment = Segment(rescored(parts, numbers, new, table.ids), snapshot.vocabulary)
                snapshot = self._housed(snapshot, [*snapshot.segments, segment])
            self._publish(snapshot, dead, numbers)

    def listen(self, listener: Listener) -> None:
        """Add a listener, and tell it the present subscriptions."""
        with self._lock:
            subscriptions = self.snapshot.table.subscriptions
            numbers = self._ids.numbers().tolist()
            listener.on_added(numbers, subscriptions.many(numbers))
            self._listeners.append(listener)

    def subscription(self, number: int) -> Subscription | None:
        """Return the subscription that has a number now; None if there is none."""
        table = self.snapshot.table
        known = 0 <= number < len(table.ids)
        if not known or self._ids.find(table.ids[number], table.ids) != number:
            return None
        subscription: Subscription | None = table.subscriptions[number]
        return subscription

    def settle(self) -> None:
        """Merge everything into one segment, in a vocabulary of the predicates that it uses."""
        self._wait(for_all=True)
        with self._lock:
            self.snapshot = self._flushed(self.snapshot, self.snapshot.version)
            job = MergeJob(self.snapshot, self.snapshot.segments, full=True)
            if job.segments:
                self._swap(job, *job.build())

    def join(self) -> None:
        """Wait until no merge is running; one may start the next."""
        while self._background.running:
            self._background.wait()

    def describe(self) -> AccessDescription:
        """Describe what the current snapshot consists of."""
        snapshot = self.snapshot
        return AccessDescription(
            len(self),
            tuple(segment.describe() for segment in snapshot.segments),
            snapshot.memtable.count,
            sum(segment.dead for segment in snapshot.segments) + snapshot.memtable.dead,
            self._background.running,
            self._background.completed,
            self.nbytes,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the current snapshot."""
        snapshot = self.snapshot
        tables = snapshot.vocabulary.nbytes + snapshot.table.nbytes + self._ids.nbytes
        segments = sum(segment.nbytes for segment in snapshot.segments)
        return tables + snapshot.memtable.nbytes + segments

    def _wait(self, for_all: bool = False) -> None:
        """Wait while too much has to be merged, and raise the failure of the last merge."""
        while self._background.running and (for_all or len(self.snapshot.segments) > MOST_SEGMENTS):
            self.join()
        with self._lock:
            self._background.check_writable()

    def _numbers(self, names: Sequence[str]) -> list[int]:
        """Return the numbers of ids, all of which must be present."""
        ids, find = self.snapshot.table.ids, self._ids.find
        numbers = [find(name, ids) for name in names]
        if -1 in numbers:
            name = names[numbers.index(-1)]
            raise InvalidSubscription(f"there is no subscription {name!r}")
        return numbers

    def _check_ids(self, removed: Sequence[str], added: Sequence[Subscription]) -> None:
        names, ids = [subscription.id for subscription in added], self.snapshot.table.ids
        for changed in (removed, names):
            if len({*changed}) < len(changed):
                name = min(name for name, count in Counter(changed).items() if count > 1)
                raise InvalidSubscription(f"{name!r} occurs twice; a change takes an id once")
        if not len(self._ids):
            return
        present = [name for name in {*names} - {*removed} if self._ids.find(name, ids) >= 0]
        if present:
            raise InvalidSubscription(
                f"subscription {min(present)!r} already exists; replace it instead"
            )

    def _bury(self, removed: Sequence[str], numbers: list[int]) -> None:
        """Set tombstones for the next version."""
        table, version = self.snapshot.table, self.snapshot.version + 1
        for name in removed:
            self._ids.remove(name, table.ids)
        if len(numbers) <= FEW:
            for number in numbers:
                home = self._homes.get(int(table.home[number]), self.snapshot.memtable)
                home.bury(int(table.place[number]), version)
            return
        for stored in self._by_home(numbers):
            stored.home.bury(stored.ranks, version)

    def _by_home(self, numbers: Sequence[int]) -> Iterator[_Stored]:
        """Yield the numbers by the segment or memtable that stores them."""
        table = self.snapshot.table
        homes, places = table.home[numbers], table.place[numbers]
        for serial in np.unique(homes).tolist():
            positions = np.flatnonzero(homes == serial)
            home = self._homes.get(serial, self.snapshot.memtable)
            yield _Stored(home, positions, places[positions].astype(np.int64))

    def _encoded(self, numbers: Sequence[int]) -> list[tuple[Int64s, EncodedSubscriptions]]:
        """Return subscriptions as they are stored, with their positions among the numbers."""
        ids = self.snapshot.table.ids
        return [
            (stored.positions, stored.home.picked(stored.ranks, ids))
            for stored in self._by_home(numbers)
        ]

    def _conjunctions(self, number: int) -> list[StoredConjunction]:
        """Return the conjunctions of a number as they are stored."""
        table = self.snapshot.table
        home = self._homes.get(int(table.home[number]), self.snapshot.memtable)
        return stored_conjunctions(home, int(table.place[number]))

    def _with_few(
        self,
        added: Sequence[Subscription],
        numbers: list[int],
        encoded: list[list[StoredConjunction]],
    ) -> Snapshot:
        snapshot = self.snapshot
        for number, subscription, conjunctions in zip(numbers, added, encoded, strict=True):
            snapshot = self._append(snapshot, number, own_score(subscription), conjunctions)
        return snapshot

    def _append(
        self, snapshot: Snapshot, number: int, score: float, conjunctions: list[StoredConjunction]
    ) -> Snapshot:
        """Append a subscription to the memtable, or to a new one if that is full."""
        fits = snapshot.memtable.fits(conjunctions)
        if snapshot.memtable.count >= self._most or not fits:
            snapshot = self._flushed(snapshot, self.snapshot.version + 1)
            fits = snapshot.memtable.fits(conjunctions)
        if self._most and fits:
            rank = snapshot.memtable.append(number, score, conjunctions)
            snapshot.table.home[number], snapshot.table.place[number] = -1, rank
            return snapshot
        # Too large for any memtable: a segment of one.
        subscription = snapshot.table.subscriptions[number]
        segment = Segment(
            encode([subscription], [number], snapshot.vocabulary), snapshot.vocabulary
        )
        return self._housed(snapshot, [*snapshot.segments, segment])

    def _with_segment(self, added: Sequence[Subscription], numbers: list[int]) -> Snapshot:
        """Return the snapshot with a new segment."""
        snapshot = self.snapshot
        encoded = encode(added, numbers, snapshot.vocabulary)
        segment = Segment(encoded, snapshot.vocabulary)
        return self._housed(snapshot, [*snapshot.segments, segment])

    def _flushed(self, snapshot: Snapshot, version: int) -> Snapshot:
        """Return the snapshot with a segment instead of its memtable."""
        if not snapshot.memtable.count:
            return snapshot
        encoded = snapshot.memtable.encoded(version, snapshot.table.ids)
        snapshot = snapshot._replace(memtable=Memtable(), size=0)
        if not len(encoded):
            return snapshot
        snapshot.vocabulary.count_uses(encoded.term, encoded.slot)
        segment = Segment(encoded, snapshot.vocabulary)
        return self._housed(snapshot, [*snapshot.segments, segment])

    def _housed(self, snapshot: Snapshot, segments: list[Segment]) -> Snapshot:
        """Return the snapshot with these segments, the larger ones first; record their places.

        Allocations come first: if one fails, nothing has changed.
        """
        new = [segment for segment in segments if segment.serial < 0]
        places = [(segment.numbers.astype(np.intp), np.arange(len(segment))) for segment in new]
        serials = range(self._serial, self._serial + len(new))
        merging = self._job.segments if self._job else ()
        homes = {
            segment.serial: segment for segment in (*merging, *segments) if segment.serial >= 0
        }
        homes |= dict(zip(serials, new, strict=True))
        housed = snapshot._replace(segments=tuple(sorted(segments, key=len, reverse=True)))
        for serial, segment, (numbers, ranks) in zip(serials, new, places, strict=True):
            segment.serial = serial
            snapshot.table.home[numbers], snapshot.table.place[numbers] = serial, ranks
        self._serial, self._homes = serials.stop, homes
        return housed

    def _publish(self, snapshot: Snapshot, dead: Sequence[int], new: Sequence[int]) -> None:
        """Swap the next snapshot in; listeners see additions before, and removals after it."""
        for listener in self._listeners:
            if new:
                listener.on_added(new, snapshot.table.subscriptions.many(new))
        self.snapshot = snapshot.at(snapshot.version + 1 if dead else snapshot.version)
        for listener in self._listeners:
            if dead:
                listener.on_removed(dead)
        self._merge_due()

    def _merge_due(self) -> None:
        """Merge the segments that are due: small segments at once, larger ones in the thread.

        The change is complete by now, so a failure is raised to the next writer.
        """
        if not len(self._ids):
            self._clear()
        try:
            while (job := self._due()) is not None and job.size <= SMALL:
                self._swap(job, *job.build())
            if job is not None and not self._background.running:  # else it looks again itself
                self._job = job
                self._background.start(partial(self._run, job))
                if not self._background.running:
                    self._job = None  # the thread could not start
        except Exception as failure:  # noqa: BLE001 - whatever it is, the next writer gets it
            self._background.report(failure)

    def _due(self) -> MergeJob | None:
        """Return the segments that are to be merged and are not being merged."""
        snapshot = self.snapshot
        dead = sum(segment.dead for segment in snapshot.segments)
        total = sum(map(len, snapshot.segments))
        # Subscriptions that were added and removed within the memtable leave only their numbers.
        numbers = len(snapshot.table.ids) - len(snapshot.table.free)
        full = 2 * dead > total or numbers > 2 * len(self._ids) + SPARE_NUMBERS
        busy = self._job.segments if self._job else ()
        if full and not busy:
            self.snapshot = snapshot = self._flushed(snapshot, snapshot.version)
            return MergeJob(snapshot, snapshot.segments, full=True)
        chosen = segments_to_merge(
            [segment for segment in snapshot.segments if segment not in busy]
        )
        if not chosen or (busy and sum(map(len, chosen)) > SMALL):
            return None
        return MergeJob(snapshot, chosen, full=False)

    def _run(self, job: MergeJob) -> None:
        """Merge in the background, swap, and go on with what is due by then."""
        try:
            built = job.build()
            with self._lock:
                if self._job is job:
                    self._swap(job, *built)
                self._job = None
                self._background.finish()
                self._merge_due()
        except BaseException:
            with self._lock:
                self._job = None
            raise
        finally:
            release_free_memory()

    def _swap(self, job: MergeJob, merged: Segment, vocabulary: Vocabulary) -> None:
        """Replace the old segments by the new one; if that fails, nothing has changed."""
        copy_tombstones(merged, self.snapshot.table, self._homes)
        remaining = [segment for segment in self.snapshot.segments if segment not in job.segments]
        if job.full:
            self.snapshot = self._after_full_merge(merged, vocabulary, remaining)
        else:
            segments = [*remaining, *([merged] if len(merged) else [])]
            self.snapshot = self._housed(self.snapshot, segments)
        self._background.completed += 1

    def _after_full_merge(
        self, merged: Segment, vocabulary: Vocabulary, remaining: Sequence[Segment]
    ) -> Snapshot:
        """Return the snapshot after a full merge, with what was added since it started."""
        version = self.snapshot.version
        young = [segment.numbers[segment.tombstones > version] for segment in remaining]
        memtable = self.snapshot.memtable
        ranks = memtable.records.ranks[: 2 * memtable.count].reshape(-1, 2)
        young.append(ranks[ranks[:, 1] > version, 0])
        snapshot = merged_snapshot(self.snapshot, merged, vocabulary, np.concatenate(young))
        self._job = None
        return self._housed(snapshot, list(snapshot.segments))

    def _clear(self) -> None:
        """Release all memory, once the index is empty; a running merge becomes void."""
        if self.snapshot.table.ids:
            self._job = None
            self._homes = {}
            self._ids = IdTable()
            self.snapshot = Snapshot.empty(self.snapshot.version)
