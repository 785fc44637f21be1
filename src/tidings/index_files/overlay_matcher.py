"""What a worker serves: a base, and an ordinary matcher of all who changed since it was made."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.compiled.array_types import Bools, Int64s, UInt32s
from tidings.errors import TidingsError
from tidings.feed.policy_key import needs_attributes
from tidings.index.access.query import Scored, best_first
from tidings.index_files.mapped_matcher import Sealed, ranked_by_index, seal
from tidings.index_files.string_table import Texts
from tidings.index_files.subscriber_bundle import Member
from tidings.index_files.subscriber_table import hashes_of
from tidings.model.records import Event
from tidings.policy import Policy
from tidings.rank.bulk.kernels.bucketize import sort_spans
from tidings.rank.bulk.protocol import Unranked
from tidings.rank.matcher import Matcher
from tidings.rank.matches import Matches, joined
from tidings.score import Scorer
from tidings.score.exact import Exact


@dataclass(frozen=True)
class Names:
    """Texts by number: those of a base first, those of the young behind them."""

    old: Texts
    young: pa.LargeStringArray

    def take(self, numbers: npt.NDArray[Any]) -> pa.LargeStringArray:
        """Give the texts of numbers."""
        late = numbers >= len(self.old)
        if not late.any():
            return self.old.take(numbers)
        young = self.young.take(pa.array(numbers[late] - len(self.old)))
        order = np.argsort(np.argsort(late, kind="stable"), kind="stable")
        return pa.concat_arrays([self.old.take(numbers[~late]), young]).take(pa.array(order))


class Served:
    """Answers for a base and for members that came after it: as one matcher of all would.

    A member that changes leaves the base as a whole, so every rank is made of one side only. It is
    for one thread.
    """

    def __init__(self, sealed: Sealed, changed: Iterable[Member] = ()) -> None:
        self._base, self._people, others = sealed
        self._young = Matcher(index="access")
        self._gone = np.zeros(len(self._people), np.bool_)
        self.apply(others)
        if later := list(changed):
            self.apply(later)

    def apply(self, changed: Sequence[Member]) -> None:
        """Put members, each of another name, in the places of those that have their names."""
        gone = [at for each in changed if (at := self._people.find(each.name)) >= 0]
        self._base.drop(gone)
        self._people.apply(changed)
        self._gone[gone] = True
        for each in changed:
            self._forget(each.name)
        for each in changed:
            if each.subscriber:
                self._young.subscribe(each.subscriber)
        for _, error in self._young.add_many(s for each in changed for s in each.subscriptions):
            raise error
        self._number()

    def policy(self, name: str) -> Policy | None:
        """Give the policy of a subscriber; None if there is no such subscriber."""
        return self._people.policy(name)

    def wanted(self, events: Sequence[Event], unranked: list[Unranked] | None = None) -> Matches:
        """Give who wants which events: people by `names`, subscriptions by `ids`, those in order.

        The subscriptions of a match are in the order of their ids. Where `unranked` is given, a
        scorer that fails is noted there, with the number of its owner, and the others go on.
        """
        old = self._base.wanted(events)
        if not len(self._young.subscriptions):
            return _in_order(old, old.matched)
        failed: list[Unranked] = []
        young = self._young.wanted(events, None if unranked is None else failed)
        if unranked is not None:
            unranked += (each._replace(owner=each.owner + len(self._people)) for each in failed)
        young = _in_order(young, self._order[young.matched])
        people, ids = len(self._people), len(self._base.ids)
        shifted = young._replace(
            subscribers=young.subscribers + people, matched=young.matched + ids
        )
        return joined([_in_order(old, old.matched), shifted])

    def top_many(self, events: Sequence[Event], k: int, scorer: Scorer) -> list[list[Scored]]:
        """Give for each event the k best subscriptions, ties by smaller id.

        With a base, only by scorers that an index knows; others need the subscriptions themselves.
        """
        if not ranked_by_index(scorer):
            if len(self._base.ids):
                raise TidingsError(
                    f"sealed subscriptions are ranked by 'exact' or 'relaxed', not by {scorer!r}"
                )
            return [self._young.top(event, k, scorer) for event in events]
        best = self._index.top_many if isinstance(scorer, Exact) else self._index.top_relaxed_many
        return [
            nsmallest(k, one + other, key=best_first)
            for one, other in zip(
                self._base.top_many(events, k, scorer), best(events, k), strict=True
            )
        ]

    def _forget(self, name: str) -> None:
        if name in self._young.subscribers:
            self._young.unsubscribe(name)
        for each in self._young.subscriptions_of(name):
            self._young.remove(each.id)

    def _number(self) -> None:
        """Give numbers to what is young; O(young)."""
        numbered = self._young.numbered
        assert numbered is not None
        self._index, self._fanout = numbered
        ids = self._index.state.table.ids
        self._order = np.empty(len(ids), np.int64)
        self._order[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
        self.names = Names(self._people.names, pa.array(self._fanout.names, pa.large_string()))
        self.ids = Names(self._base.ids, pa.array(ids, pa.large_string()))
        self.attributes = self.flags(needs_attributes)
        self._numbers: dict[Any, Int64s] = {}
        self.hashes: UInt32s = np.concatenate([self._people.hashes, hashes_of(self._fanout.names)])

    @property
    def size(self) -> int:
        """How many numbers subscriptions have, with those that are gone."""
        return len(self.ids.old) + len(self.ids.young)

    def flags(self, test: Callable[[Policy], bool]) -> Bools:
        """Tell by number of each person that is there whether its policy passes a test."""
        young = np.array([each is not None and test(each) for each in self._held], np.bool_)
        return np.concatenate([self._people.flags(test) & ~self._gone, young])

    def numbers(self, of: Callable[[Policy | None], Sequence[int]]) -> Int64s:
        """Give by number of each person some numbers of its policy; they are found once."""
        if of not in self._numbers:
            young = np.array([*map(of, self._held), of(None)], np.int64)[:-1]
            self._numbers[of] = np.concatenate([self._people.numbers(of), young])
        return self._numbers[of]

    @property
    def _held(self) -> list[Policy | None]:
        return [self._people.changed[name] for name in self._fanout.names]


def served(given: Iterable[Member]) -> Served:
    """Serve without a base: what is few enough to be objects, or has policies of its own."""
    return Served(seal([]), given)


def _in_order(wanted: Matches, keys: npt.NDArray[Any]) -> Matches:
    """Put the subscriptions of each match in the order of their keys."""
    matched = wanted.matched.copy()
    sort_spans(wanted.matched_starts, keys.astype(np.int64), matched)
    return wanted._replace(matched=matched)
