"""A matcher without an object per subscription: arrays that are mapped from a file.

Owners are numbered in order of name, subscribers before names without one; subscriptions in order
of id. A base is built once with an ordinary `Matcher`, whose access index and compiled rankers are
then kept as arrays.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple, cast

import numpy as np

from tidings.compiled.array_file import Reader, Writer
from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.errors import InvalidPolicy
from tidings.index.access.description import AccessDescription
from tidings.index.access.index import Access
from tidings.index.access.kernels.records import NEVER
from tidings.index.access.kernels.validate import CheckedParts
from tidings.index.access.memtable import Memtable
from tidings.index.access.query import FoundHits, Query, Scored, ScratchBuffers
from tidings.index.access.segment import Segment
from tidings.index.access.snapshot import Snapshot
from tidings.index.access.vocabulary import Vocabulary
from tidings.index.boxes.protocol import BoxAnswers
from tidings.index_files.string_table import StringTable
from tidings.index_files.subscriber_bundle import SubscriberBundle
from tidings.index_files.subscriber_table import SubscriberTable
from tidings.index_files.target_boxes import NumberTargets
from tidings.model.records import Event
from tidings.rank.bulk.protocol import IndexExtent, RankMethod
from tidings.rank.bulk.ranker import rank_events, read_methods, write_methods
from tidings.rank.matcher import Matcher
from tidings.rank.matches import Matches
from tidings.score import Scorer
from tidings.score.exact import Exact
from tidings.score.relaxed import Relaxed

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
        dead, nbytes = (sum(getattr(one, name) for one in segments) for name in ("dead", "nbytes"))
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
    everyone = list(bundles)
    _check_writable(everyone)
    compiled, uncompiled = list[SubscriberBundle](), list[SubscriberBundle]()
    for bundle in everyone:
        (compiled if _has_compiled_ranker(bundle) else uncompiled).append(bundle)
    compiled.sort(key=lambda bundle: (bundle.subscriber is None, bundle.name))
    subscribers = [bundle.subscriber for bundle in compiled if bundle.subscriber]
    owned = [
        (subscription, owner)
        for owner, bundle in enumerate(compiled)
        for subscription in bundle.subscriptions
    ]
    owned.sort(key=lambda pair: pair[0].id)
    matcher = Matcher(subscribers, [subscription for subscription, _ in owned], index="access")
    assert matcher.compiled is not None
    index, ranker = matcher.compiled
    if index.snapshot.size or len(index.snapshot.segments) > 1:
        index.settle()
    rankers = ranker.methods()
    if failed := matcher.set_aside.keys():
        return _build_without(everyone, failed)
    if any(ranker.partial for ranker in rankers):
        for segment in index.snapshot.segments:
            segment.partial_view(index.snapshot.version)
    owners = np.array([owner for _, owner in owned], np.int32)
    mapped = MappedMatcher(
        index.snapshot.vocabulary,
        index.snapshot.segments,
        StringTable.of([subscription.id for subscription, _ in owned]),
        rankers,
        _owned_ranks(index, owners, len(compiled)),
    )
    names = [bundle.name for bundle in compiled]
    return BaseIndex(mapped, SubscriberTable.of(names, subscribers), uncompiled)


def _has_compiled_ranker(bundle: SubscriberBundle) -> bool:
    scorer = bundle.subscriber.policy.scorer if bundle.subscriber else None
    return not isinstance(scorer, Relaxed) or scorer.aggregate == "sum"


def _build_without(everyone: Sequence[SubscriberBundle], failed: AbstractSet[str]) -> BaseIndex:
    """Return a base that leaves bundles uncompiled for which a compiled ranker failed."""
    base = build_base(bundle for bundle in everyone if bundle.name not in failed)
    uncompiled = [*base.uncompiled, *(bundle for bundle in everyone if bundle.name in failed)]
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
    starts = np.concatenate([[0], np.cumsum(np.bincount(by_rank, minlength=size))])
    return OwnedRanks(starts.astype(np.int64), np.argsort(by_rank, kind="stable").astype(np.int32))


def ranked_by_index(scorer: Scorer) -> bool:
    """Return whether an index finds the best subscriptions by this scorer without a full scan."""
    return type(scorer) is Exact or (type(scorer) is Relaxed and scorer.aggregate == "sum")
