"""A matcher without an object for each subscription: arrays that can be mapped from a file."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple, cast

import numpy as np

from tidings.compiled.array_file import Reader, Writer
from tidings.compiled.array_types import Int32s, Int64s
from tidings.errors import InvalidPolicy
from tidings.index.access.index import Access
from tidings.index.access.kernels.validate import Posed
from tidings.index.access.memtable import Tail
from tidings.index.access.query import Found, Holding, Question, Scored
from tidings.index.access.scratch import Desk
from tidings.index.access.segment import Segment
from tidings.index.access.snapshot import State
from tidings.index.access.vocabulary import Vocabulary
from tidings.index_files.string_table import Texts
from tidings.index_files.subscriber_bundle import Member
from tidings.index_files.subscriber_table import SubscriberTable
from tidings.model.records import Event
from tidings.rank.bulk.protocol import Extent, Way
from tidings.rank.bulk.ranker import rank_all
from tidings.rank.bulk.ranker_files import read_ways, write_ways
from tidings.rank.matcher import Matcher
from tidings.rank.matches import Matches
from tidings.score import Scorer
from tidings.score.exact import Exact
from tidings.score.relaxed import Relaxed

NOTHING_POSED: Final = Posed(np.empty(0, np.uint8), np.empty(0, np.int32), np.zeros(1, np.int32))
"""What an index without a segment checks."""


class Owned(NamedTuple):
    """The ranks, in the one segment, of what each person owns: from its start to the next."""

    starts: Int64s
    ranks: Int32s

    def of(self, owner: int) -> Int32s:
        """Give the ranks of one person."""
        return self.ranks[self.starts[owner] : self.starts[owner + 1]]


class _Table(NamedTuple):
    """Subscriptions by number, of which only the ids are kept."""

    owners: Sequence[None]
    ids: Texts


class Base:
    """Answers as a `Matcher` does. Numbers of people are in order of names, subscriptions of ids.

    It is for one thread. Members may be dropped, in the memory of this process; none can come.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        segments: tuple[Segment, ...],
        ids: Texts,
        ways: Sequence[Way],
        owned: Owned,
    ) -> None:
        self.ids = ids
        self._ways, self._owned = ways, owned
        table = cast(Any, _Table(cast(Any, range(len(ids))), ids))
        self._state = State(vocabulary, table, segments, Tail(), 0, 0)
        self._desk = Desk()

    def write(self, writer: Writer) -> None:
        """Add everything to a file; who was dropped is there again."""
        state, people = self._state, len(self._owned.starts) - 1
        writer.value("people", people)
        writer.texts("ids", self.ids.column)
        writer.array("owned.starts", self._owned.starts)
        writer.array("owned.ranks", self._owned.ranks)
        state.vocabulary.write(writer.within("vocabulary"))
        writer.value("segments", len(state.segments))
        for each in state.segments:
            each.write(writer.within("segment"))
        write_ways(writer.within("ways"), self._ways, len(self.ids), people)

    @classmethod
    def read(cls, reader: Reader) -> "Base":
        """Return the base of a file, after all that kernels will follow in it was checked."""
        ids, people = Texts(reader.texts("ids")), reader.count("people")
        size = len(ids)
        ranks = reader.numbers("owned.ranks", size, max(1, size))
        reader.permutation("owned.ranks", ranks, size)
        owned = Owned(reader.starts("owned.starts", people, size), ranks)
        vocabulary = Vocabulary.read(reader.within("vocabulary"))
        segments, posed = tuple[Segment, ...](), NOTHING_POSED
        if reader.count("segments", 1):
            within = reader.within("segment")
            segment, posed = Segment.read(within, vocabulary.entries, vocabulary.slots)
            segments = (segment,)
        reader.require(len(posed.numbers) == size, "ids", "are not those of the segment")
        ways = read_ways(reader.within("ways"), Extent.of(people, posed))
        return cls(vocabulary, segments, ids, ways, owned)

    @property
    def people(self) -> int:
        """How many people it has numbers for."""
        return len(self._owned.starts) - 1

    def drop(self, owners: Iterable[int]) -> None:
        """Match for some people no longer. O(what they own)."""
        version = self._state.version + 1
        for owner in owners:
            for segment in self._state.segments:
                segment.kill(self._owned.of(owner), version)
        self._state = self._state._replace(version=version)

    def wanted(self, events: Sequence[Event]) -> Matches:
        """Give who wants which events, in numbers."""
        return rank_all(self, self._ways, events)

    def top_many(self, events: Sequence[Event], k: int, scorer: Scorer) -> list[list[Scored]]:
        """Give for each event the k best subscriptions; for the scorers that an index knows."""
        question = self._question(events)
        return question.tops(k) if isinstance(scorer, Exact) else question.relaxed(k)

    def matching_many(self, events: Sequence[Event]) -> Found:
        """Give what covers events."""
        return self._question(events).matching()

    def touching_many(self, events: Sequence[Event]) -> Holding:
        """Give what events touch."""
        return self._question(events).touching()

    def _question(self, events: Sequence[Event]) -> Question:
        if self._desk.worn:
            self._desk = Desk()
        return Question(self._state, events, self._desk)


class Sealed(NamedTuple):
    """All that a base file holds.

    Who ranks by something that has no compiled form is not in the base, but with the `others`.
    """

    base: Base
    people: SubscriberTable
    others: Sequence[Member]


def seal(given: Iterable[Member]) -> Sealed:
    """Make a base of members, whose names are in order. O(n log n), and objects while it is made.

    A policy without a written form is refused.
    """
    everybody = list(given)
    _check_written(everybody)
    compiled, others = list[Member](), list[Member]()
    for each in everybody:
        (others if _one_by_one(each) else compiled).append(each)
    compiled.sort(key=lambda each: (each.subscriber is None, each.name))
    people = [each.subscriber for each in compiled if each.subscriber]
    wanted = [(each, at) for at, member in enumerate(compiled) for each in member.subscriptions]
    wanted.sort(key=lambda pair: pair[0].id)
    matcher = Matcher(people, [each for each, _ in wanted], index="access")
    numbered = matcher.numbered
    assert numbered is not None
    index, fanout = numbered
    if index.state.size or len(index.state.segments) > 1:
        index.settle()
    ways = fanout.ways()
    if failed := matcher.set_aside.keys():
        return _with_others(everybody, failed)
    if any(way.partial for way in ways):
        for segment in index.state.segments:
            segment.partial(index.state.version)
    owners = np.array([at for _, at in wanted], np.int32)
    base = Base(
        index.state.vocabulary,
        index.state.segments,
        Texts.of([each.id for each, _ in wanted]),
        ways,
        _owned(index, owners, len(compiled)),
    )
    return Sealed(base, SubscriberTable.of([each.name for each in compiled], people), others)


def _one_by_one(member: Member) -> bool:
    scorer = member.subscriber.policy.scorer if member.subscriber else None
    return isinstance(scorer, Relaxed) and scorer.aggregate != "sum"


def _with_others(everybody: Sequence[Member], failed: AbstractSet[str]) -> Sealed:
    """Make a base without those who have no compiled form although their scorer has one."""
    sealed = seal(each for each in everybody if each.name not in failed)
    others = [*sealed.others, *(each for each in everybody if each.name in failed)]
    return sealed._replace(others=sorted(others, key=lambda each: each.name))


def _check_written(members: Iterable[Member]) -> None:
    """Refuse policies without a written form; equal objects are looked at once."""
    known = set[int]()
    for each in members:
        policy = each.subscriber.policy if each.subscriber else None
        if policy is None or id(policy) in known:
            continue
        known.add(id(policy))
        try:
            policy.to_dict()
        except InvalidPolicy as error:
            raise InvalidPolicy(f"subscriber {each.name} cannot be sealed: {error}") from None


def _owned(index: Access, owners: Int32s, people: int) -> Owned:
    numbers = [each.numbers for each in index.state.segments]
    by_rank = owners[np.concatenate([*numbers, np.empty(0, np.int32)])]
    starts = np.concatenate([[0], np.cumsum(np.bincount(by_rank, minlength=people))])
    return Owned(starts.astype(np.int64), np.argsort(by_rank, kind="stable").astype(np.int32))


def ranked_by_index(scorer: Scorer) -> bool:
    """Tell whether an index finds the best subscriptions by this scorer without looking at all."""
    return type(scorer) is Exact or (type(scorer) is Relaxed and scorer.aggregate == "sum")
