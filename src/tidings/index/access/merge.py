"""Merges of segments: tombstones are dropped, and unused predicates leave the vocabulary."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.index.access.encoding import EncodedSubscriptions, encode, joined, renumbered
from tidings.index.access.kernels.records import NEVER, OUTSIDE
from tidings.index.access.memtable import Memtable
from tidings.index.access.segment import Segment
from tidings.index.access.snapshot import Snapshot
from tidings.index.access.subscription_table import SubscriptionTable
from tidings.index.access.vocabulary import Vocabulary


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
        segment = segments[position]
        if (after and len(segment) <= 2 * after) or 2 * segment.dead > len(segment):
            chosen = tuple(segments[position:])
        after += len(segment)
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
        added = [one for one in map(table.subscriptions.__getitem__, young.tolist()) if one]
        segments.append(Segment(encode(added, young.tolist(), vocabulary), vocabulary))
    return Snapshot(vocabulary, table, tuple(segments), Memtable(), 0, snapshot.version)
