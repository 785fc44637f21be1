"""A matcher without an object per subscription: arrays that are mapped from a file.

Owners are numbered in order of name, subscribers before names without one; subscriptions in order
of id. A base is built once with an ordinary `Matcher`, whose access index and compiled rankers are
then kept as arrays.
"""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple, cast

import numpy as np

from tidings.compiled.array_file import Reader, Writer
from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.arrays import offsets
from tidings.errors import InvalidPolicy
from tidings.index.access.description import AccessDescription
from tidings.index.access.encoding import EncodedSubscriptions
from tidings.index.access.index import Access
from tidings.index.access.kernels.records import BETWEEN, NEVER
from tidings.index.access.kernels.validate import CheckedParts
from tidings.index.access.query import FoundHits, Query, Scored, ScratchBuffers
from tidings.index.access.segment import Segment
from tidings.index.access.snapshot import Memtable, Snapshot
from tidings.index.access.vocabulary import Vocabulary, unordered
from tidings.index.arguments import MAX_RESULTS
from tidings.index.boxes.protocol import BoxAnswers
from tidings.index_files.subscriber_bundle import SubscriberBundle
from tidings.index_files.subscriber_table import StringTable, SubscriberTable
from tidings.model.records import Event
from tidings.rank.bulk.protocol import IndexExtent, RankMethod
from tidings.rank.bulk.ranker import rank_events, read_methods, write_methods
from tidings.rank.matcher import Matcher
from tidings.rank.matches import Matches
from tidings.rank.target_index import (
    ASKED,
    MOST_CELLS,
    SAMPLE,
    LiveTargets,
    NumericRows,
    RangeColumns,
    least_seconds,
    live_targets,
)
from tidings.score import Scorer
from tidings.score.exact import Exact
from tidings.score.relaxed import Relaxed

# Boxes over the subscriptions of an index file, made from its columns without an object for each.
#
# They answer if every condition is a conjunction of numeric ranges; boxes have the numbers of their
# subscriptions, which are in order of id.

REPAID: Final = 32
"""Boxes are built once queries have reached one event for 32 subscriptions.

A box takes 2 us to build, and an event 40 us less if boxes answer it.
"""


class EncodedRanges(NamedTuple):
    """The ranges of all subscriptions, and the names of their attributes."""

    ranges: RangeColumns
    attributes: list[str]


def encoded_ranges(encoded: EncodedSubscriptions, vocabulary: Vocabulary) -> EncodedRanges | None:
    """Return the ranges of subscriptions that are all boxes; else None."""
    if len(encoded.owner) != len(encoded) or not len(encoded):
        return None  # some have several conjunctions, or none that can hold
    names = [name for name, families in vocabulary.attributes.items() if "number" in families]
    of_slot, of_term = np.full(vocabulary.slots, -1), np.full(vocabulary.terms, -1)
    equal_to = np.zeros(vocabulary.terms)
    for attribute, name in enumerate(names):
        family = vocabulary.attributes[name]["number"]
        if family.slot >= 0:
            of_slot[family.slot] = attribute
        terms = np.fromiter(family.equal.values(), np.int64, len(family.equal))
        of_term[terms] = attribute
        equal_to[terms] = np.fromiter(family.equal, np.float64, len(family.equal))
    is_term = encoded.term >= 0
    between = ~is_term & (encoded.slot >= 0) & (encoded.kind == BETWEEN)
    if not (is_term | between).all():
        return None
    attributes = np.empty(len(encoded.term), np.int64)
    attributes[is_term] = of_term[encoded.term[is_term]]
    attributes[between] = of_slot[encoded.slot[between]]
    low, high = unordered(encoded.low), unordered(encoded.high)
    low[is_term] = high[is_term] = equal_to[encoded.term[is_term]]
    boxes = np.repeat(encoded.numbers[encoded.owner].astype(np.int64), encoded.size)
    if (attributes < 0).any() or len(encoded) * len(names) > MOST_CELLS:
        return None
    has_range = np.zeros(len(encoded) * len(names), np.bool_)
    has_range[boxes * len(names) + attributes] = True
    if np.count_nonzero(has_range) < len(boxes):
        return None  # two ranges of a condition on one attribute
    weights = encoded.weight if len(encoded.weight) else np.ones(len(boxes))
    return EncodedRanges(RangeColumns(boxes, attributes, low, high, weights), names)


class NumberTargets:
    """The k best subscriptions of events by number, through boxes once these pay. For one thread.

    They are built after queries for many events, and used if they are faster.
    """

    def __init__(self, segment: Segment, vocabulary: Vocabulary, exact: bool) -> None:
        self._segment, self._vocabulary, self._exact = segment, vocabulary, exact
        self._build_after = max(ASKED, len(segment) // REPAID)
        self._asked = 0
        self._boxes: LiveTargets | None = None

    def top_many(
        self, events: Sequence[Event], k: int, by_access: Callable[[Sequence[Event]], Any]
    ) -> BoxAnswers | None:
        """Return numbers and scores, or None if `by_access` is to answer."""
        if self._asked < self._build_after:
            self._asked += len(events)
            if self._asked >= self._build_after:
                self._build(events[:SAMPLE], k, by_access)
        if self._boxes is None or (rows := self._rows.of(events)) is None:
            return None
        return self.top_rows(rows, k)

    @property
    def attributes(self) -> list[str] | None:
        """The attributes of rows of numbers; None while there are no boxes."""
        return self._rows.names if self._boxes is not None else None

    def top_rows(self, rows: Float64s, k: int) -> BoxAnswers | None:
        """Return numbers and scores for rows of numbers, or None if there are no boxes for them."""
        if self._boxes is None or k * len(rows) > MAX_RESULTS:
            return None
        return self._boxes.top_many(rows, k)

    def drop(self, numbers: Int32s) -> None:
        """Leave subscriptions out from now on."""
        if self._boxes is not None:
            self._boxes.delete_many(numbers)

    def _build(
        self, sample: Sequence[Event], k: int, by_access: Callable[[Sequence[Event]], Any]
    ) -> None:
        segment = self._segment
        encoded = segment.picked(np.arange(len(segment)))
        source = encoded_ranges(encoded, self._vocabulary)
        if source is None:
            return
        size, rows = len(encoded), NumericRows(source.attributes)
        scores: Float64s | None = None
        if self._exact:
            scores = np.empty(size)
            scores[encoded.numbers] = encoded.scores
        boxes = live_targets(source.ranges.boxes(scores, size, len(source.attributes)))
        boxes.delete_many(segment.numbers[segment.tombstones < NEVER])

        def by_boxes() -> None:
            if (numbers := rows.of(sample)) is not None:
                boxes.top_many(numbers, k)

        if least_seconds(by_boxes) < least_seconds(lambda: by_access(sample)):
            self._rows, self._boxes = rows, boxes


_EMPTY_SEGMENT: Final = CheckedParts(
    np.empty(0, np.uint8), np.empty(0, np.int32), np.zeros(1, np.int32)
)
"""The extent of an index without a segment."""


class OwnedRanks(NamedTuple):
    """The positions, in the one segment, of the subscriptions of each owner.

    Those of owner o are ranks[starts[o] : starts[o + 1]].
    """

    starts: Int64s
    ranks: Int32s

    def of(self, owner: int) -> Int32s:
        """Return the positions of one owner."""
        return self.ranks[self.starts[owner] : self.starts[owner + 1]]


class _IdTable(NamedTuple):
    """The subscriptions of a snapshot by number, of which only the ids are kept."""

    subscriptions: Sequence[None]
    ids: StringTable


class MappedMatcher:
    """A matcher over mapped arrays that answers as `Matcher` does. It is for one thread.

    Owners can be dropped, in the memory of this process only; none can be added.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        segments: tuple[Segment, ...],
        ids: StringTable,
        rankers: Sequence[RankMethod],
        owned: OwnedRanks,
    ) -> None:
        self.ids = ids
        self._rankers, self._owned = rankers, owned
        table = cast(Any, _IdTable(cast(Any, range(len(ids))), ids))
        self._snapshot = Snapshot(vocabulary, table, segments, Memtable(), 0, 0)
        self._scratch = ScratchBuffers()
        self._targets: dict[bool, NumberTargets] = {}  # by whether they are for `exact`

    def write(self, writer: Writer) -> None:
        """Write everything, including owners that were dropped in this process."""
        state = self._snapshot
        writer.value("people", self.owners)
        writer.texts("ids", self.ids.column)
        writer.array("owned.starts", self._owned.starts)
        writer.array("owned.ranks", self._owned.ranks)
        state.vocabulary.write(writer.within("vocabulary"))
        writer.value("segments", len(state.segments))
        for segment in state.segments:
            segment.write(writer.within("segment"))
        write_methods(writer.within("ways"), self._rankers, len(self.ids), self.owners)

    @classmethod
    def read(cls, reader: Reader) -> "MappedMatcher":
        """Return the matcher of a file, once every number that kernels will follow is checked."""
        ids, owners = StringTable(reader.texts("ids")), reader.count("people")
        size = len(ids)
        ranks = reader.numbers("owned.ranks", size, max(1, size))
        reader.permutation("owned.ranks", ranks, size)
        owned = OwnedRanks(reader.starts("owned.starts", owners, size), ranks)
        vocabulary = Vocabulary.read(reader.within("vocabulary"))
        segments, checked = tuple[Segment, ...](), _EMPTY_SEGMENT
        if reader.count("segments", 1):
            within = reader.within("segment")
            segment, checked = Segment.read(within, vocabulary.terms, vocabulary.slots)
            segments = (segment,)
        reader.require(len(checked.numbers) == size, "ids", "are not those of the segment")
        rankers = read_methods(reader.within("ways"), IndexExtent.of(owners, checked))
        return cls(vocabulary, segments, ids, rankers, owned)

    def describe(self) -> AccessDescription:
        """Describe what the mapped index consists of; `print` it to read it."""
        segments = tuple(segment.describe() for segment in self._snapshot.segments)
        dead, nbytes = (
            sum(getattr(segment, name) for segment in segments) for name in ("dead", "nbytes")
        )
        return AccessDescription(len(self.ids), segments, 0, dead, False, 0, nbytes)

    @property
    def owners(self) -> int:
        """The number of owners, including those that were dropped."""
        return len(self._owned.starts) - 1

    def drop(self, owners: Iterable[int]) -> None:
        """Stop matching for some owners. O(their subscriptions)."""
        version = self._snapshot.version + 1
        for owner in owners:
            ranks = self._owned.of(owner)
            for segment in self._snapshot.segments:
                alive = ranks[segment.tombstones[ranks] == NEVER]
                for targets in self._targets.values():
                    targets.drop(segment.numbers[alive])
                segment.bury(ranks, version)
        self._snapshot = self._snapshot._replace(version=version)

    def match_many(self, events: Sequence[Event]) -> Matches:
        """Return the matches of events, all by number."""
        return rank_events(self, self._rankers, events)

    def top_many(self, events: Sequence[Event], k: int, scorer: Scorer) -> list[list[Scored]]:
        """Return the k best subscriptions of each event, by a scorer that the index supports."""
        query = self._query(events)
        return query.tops(k) if isinstance(scorer, Exact) else query.relaxed(k)

    def best_numbers(self, events: Sequence[Event], k: int, scorer: Scorer) -> BoxAnswers | None:
        """Return the same by number from boxes, or None while these are not worth building."""
        if not self._snapshot.segments:
            return None
        exact, (segment,) = isinstance(scorer, Exact), self._snapshot.segments
        if exact not in self._targets:
            self._targets[exact] = NumberTargets(segment, self._snapshot.vocabulary, exact)
        search, most = self._targets[exact].top_many, min(k, len(segment))
        return search(events, most, lambda some: self.top_many(some, most, scorer))

    def target_attributes(self, scorer: Scorer) -> list[str] | None:
        """Return the attributes that boxes compare; None while there are no boxes."""
        targets = self._targets.get(isinstance(scorer, Exact))
        return None if targets is None else targets.attributes

    def best_of_rows(self, rows: Float64s, k: int, scorer: Scorer) -> BoxAnswers | None:
        """Return the k best by number for rows of these attributes, or None without boxes."""
        targets = self._targets.get(isinstance(scorer, Exact))
        return None if targets is None else targets.top_rows(rows, min(k, len(self.ids)))

    def matching_many(self, events: Sequence[Event]) -> FoundHits:
        """Return the conjunctions that events satisfy."""
        return self._query(events).matching()

    def touching_many(self, events: Sequence[Event]) -> FoundHits:
        """Return the predicates that events satisfy, of conjunctions that may not hold."""
        return self._query(events).touching()

    def _query(self, events: Sequence[Event]) -> Query:
        if self._scratch.exhausted:
            self._scratch = ScratchBuffers()
        return Query(self._snapshot, events, self._scratch)


class BaseIndex(NamedTuple):
    """The content of a base file.

    Bundles whose policy has no compiled ranker are kept as objects in `uncompiled`.
    """

    matcher: MappedMatcher
    subscribers: SubscriberTable
    uncompiled: Sequence[SubscriberBundle]


def build_base(bundles: Iterable[SubscriberBundle]) -> BaseIndex:
    """Return a base of bundles, which come in order of name.

    O(n log n), with objects for all subscriptions while it is built. A policy that cannot be
    written is refused.
    """
    members = list(bundles)
    _check_writable(members)
    compiled, uncompiled = list[SubscriberBundle](), list[SubscriberBundle]()
    for bundle in members:
        (compiled if _has_compiled_ranker(bundle) else uncompiled).append(bundle)
    compiled.sort(key=lambda bundle: (bundle.subscriber is None, bundle.name))
    subscribers = [bundle.subscriber for bundle in compiled if bundle.subscriber]
    owned = [subscription for bundle in compiled for subscription in bundle.subscriptions]
    counts = np.array([len(bundle.subscriptions) for bundle in compiled], np.int64)
    ids = [subscription.id for subscription in owned]
    order = sorted(range(len(ids)), key=ids.__getitem__)
    matcher = Matcher(subscribers, map(owned.__getitem__, order), index="access")
    assert matcher.compiled is not None
    index, ranker = matcher.compiled
    if index.snapshot.size or len(index.snapshot.segments) > 1:
        index.settle()
    rankers = ranker.methods()
    if failed := matcher.set_aside.keys():
        return _build_without(members, failed)
    if any(ranker.partial for ranker in rankers):
        for segment in index.snapshot.segments:
            segment.partial_view(index.snapshot.version)
    owners = np.repeat(np.arange(len(compiled), dtype=np.int32), counts)
    mapped = MappedMatcher(
        index.snapshot.vocabulary,
        index.snapshot.segments,
        StringTable.of([*map(ids.__getitem__, order)]),
        rankers,
        _owned_ranks(index, owners[np.array(order, np.int64)], len(compiled)),
    )
    names = [bundle.name for bundle in compiled]
    return BaseIndex(mapped, SubscriberTable.of(names, subscribers), uncompiled)


def _has_compiled_ranker(bundle: SubscriberBundle) -> bool:
    scorer = bundle.subscriber.policy.scorer if bundle.subscriber else None
    return not isinstance(scorer, Relaxed) or scorer.aggregate == "sum"


def _build_without(members: Sequence[SubscriberBundle], failed: AbstractSet[str]) -> BaseIndex:
    """Return a base that leaves bundles uncompiled for which a compiled ranker failed."""
    base = build_base(bundle for bundle in members if bundle.name not in failed)
    uncompiled = [*base.uncompiled, *(bundle for bundle in members if bundle.name in failed)]
    return base._replace(uncompiled=sorted(uncompiled, key=lambda bundle: bundle.name))


def _check_writable(bundles: Iterable[SubscriberBundle]) -> None:
    """Refuse policies that cannot be written; a policy object that many share is checked once."""
    checked = set[int]()
    for bundle in bundles:
        policy = bundle.subscriber.policy if bundle.subscriber else None
        if policy is None or id(policy) in checked:
            continue
        checked.add(id(policy))
        try:
            policy.to_dict()
        except InvalidPolicy as error:
            raise InvalidPolicy(
                f"the policy of subscriber {bundle.name} cannot be written to an index file: "
                f"{error}"
            ) from None


def _owned_ranks(index: Access, owners: Int32s, size: int) -> OwnedRanks:
    numbers = [segment.numbers for segment in index.snapshot.segments]
    by_rank = owners[np.concatenate([*numbers, np.empty(0, np.int32)])]
    starts = offsets(np.bincount(by_rank, minlength=size))
    return OwnedRanks(starts.astype(np.int64), np.argsort(by_rank, kind="stable").astype(np.int32))


def ranked_by_index(scorer: Scorer) -> bool:
    """Return whether an index finds the best subscriptions by this scorer without a full scan."""
    return type(scorer) is Exact or (type(scorer) is Relaxed and scorer.aggregate == "sum")
