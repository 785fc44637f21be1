"""The matcher of a worker: a mapped base, overlaid by an ordinary matcher of later changes.

    numbers of owners          0 .. n - 1   in the base       n ..   in the overlay
    numbers of subscriptions   0 .. m - 1   in the base       m ..   in the overlay

A subscriber that changes moves from the base to the overlay as a whole, so each rank is computed on
one side only and equals the rank that one matcher of all would give.
"""

from collections.abc import Callable, Iterable, Sequence
from heapq import nsmallest
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.compiled.array_types import Bools, Float64s, Int64s, UInt32s
from tidings.errors import TidingsError
from tidings.feed.policy_key import needs_attributes
from tidings.index.access.description import AccessDescription
from tidings.index.access.query import Scored, best_first
from tidings.index.boxes.protocol import BoxAnswers
from tidings.index_files.mapped_matcher import BaseIndex, build_base, ranked_by_index
from tidings.index_files.subscriber_bundle import SubscriberBundle
from tidings.index_files.subscriber_table import OverlaidStrings, hashes_of
from tidings.model.records import Event
from tidings.policy import Policy
from tidings.rank.bulk.kernels.bucketize import sort_spans
from tidings.rank.bulk.protocol import Unranked
from tidings.rank.matcher import Matcher
from tidings.rank.matches import Matches, joined
from tidings.score import Scorer
from tidings.score.exact import Exact


class TargetColumns(NamedTuple):
    """How many subscriptions each event has, and the ids and scores of all, event by event."""

    counts: Int64s
    subscriptions: pa.LargeStringArray
    scores: Float64s


class OverlayMatcher:
    """A base and the bundles that changed after it, as one matcher. It is for one thread."""

    def __init__(self, base: BaseIndex, changed: Iterable[SubscriberBundle] = ()) -> None:
        self._base, self._subscribers, uncompiled = base
        self._overlay = Matcher(index="access")
        self._dropped = np.zeros(len(self._subscribers), np.bool_)
        self.apply(uncompiled)
        if later := list(changed):
            self.apply(later)

    def apply(self, bundles: Sequence[SubscriberBundle]) -> None:
        """Replace bundles by name; no name may occur twice."""
        rows = [self._subscribers.find(bundle.name) for bundle in bundles]
        in_base = [row for row in rows if row >= 0]
        self._base.drop(in_base)
        self._subscribers.apply(bundles)
        self._dropped[in_base] = True
        for bundle in bundles:
            self._remove_from_overlay(bundle.name)
        for bundle in bundles:
            if bundle.subscriber:
                self._overlay.subscribe(bundle.subscriber)
        subscriptions = (
            subscription for bundle in bundles for subscription in bundle.subscriptions
        )
        for _, error in self._overlay.add_many(subscriptions):
            raise error
        self._renumber()

    def policy(self, name: str) -> Policy | None:
        """Return the policy of a subscriber, or None if there is no such subscriber."""
        return self._subscribers.policy(name)

    def match_many(
        self, events: Sequence[Event], unranked: list[Unranked] | None = None
    ) -> Matches:
        """Return the matches of events: subscribers by `names`, subscriptions by `ids`.

        The subscriptions of a match are in order of id. If `unranked` is given, a scorer that fails
        is added to it, with the number of its owner, and the other matches are returned.
        """
        in_base = self._base.match_many(events)
        in_base = _sorted_by(in_base, in_base.matched)
        if not len(self._overlay.subscriptions):
            return in_base
        failed: list[Unranked] = []
        overlaid = self._overlay.match_many(events, None if unranked is None else failed)
        owners, ids = len(self._subscribers), len(self._base.ids)
        if unranked is not None:
            unranked += (failure._replace(owner=failure.owner + owners) for failure in failed)
        overlaid = _sorted_by(overlaid, self._id_order[overlaid.matched])
        return joined(
            [
                in_base,
                overlaid._replace(
                    subscribers=overlaid.subscribers + owners, matched=overlaid.matched + ids
                ),
            ]
        )

    def top_many(self, events: Sequence[Event], k: int, scorer: Scorer) -> list[list[Scored]]:
        """Return the k best subscriptions of each event, ties by smaller id.

        A base supports only scorers that an index can search by; others need the subscriptions
        themselves.
        """
        if not ranked_by_index(scorer):
            if len(self._base.ids):
                raise TidingsError(
                    "subscriptions in index files are ranked by 'exact' or 'relaxed', not by "
                    f"{scorer!r}"
                )
            return [self._overlay.top(event, k, scorer) for event in events]
        exact = isinstance(scorer, Exact)
        search = self._index.top_many if exact else self._index.top_relaxed_many
        in_base, overlaid = self._base.top_many(events, k, scorer), search(events, k)
        pairs = zip(in_base, overlaid, strict=True)
        return [nsmallest(k, first + second, key=best_first) for first, second in pairs]

    def top_columns(self, events: Sequence[Event], k: int, scorer: Scorer) -> TargetColumns:
        """Return the result of `top_many` as columns, event by event."""
        if ranked_by_index(scorer) and not len(self._overlay.subscriptions):
            answers = self._base.best_numbers(events, k, scorer)
            if answers is not None:
                return self._columns(answers)
        tops = self.top_many(events, k, scorer)
        return TargetColumns(
            np.array([len(top) for top in tops], np.int64),
            pa.array([id for top in tops for id, _ in top], pa.large_string()),
            np.array([score for top in tops for _, score in top], np.float64),
        )

    def target_attributes(self, scorer: Scorer) -> list[str] | None:
        """Return the attributes that `top_rows` needs; None if it cannot answer."""
        if not ranked_by_index(scorer) or len(self._overlay.subscriptions):
            return None
        return self._base.target_attributes(scorer)

    def top_rows(self, rows: Float64s, k: int, scorer: Scorer) -> TargetColumns | None:
        """Return the result of `top_columns` for events that are rows of these attributes."""
        answers = self._base.best_of_rows(rows, k, scorer)
        return None if answers is None else self._columns(answers)

    def _columns(self, answers: BoxAnswers) -> TargetColumns:
        present = np.arange(answers.ids.shape[1]) < answers.counts[:, None]
        ids = self.ids.take(answers.ids[present])
        return TargetColumns(answers.counts, ids, answers.scores[present])

    def _remove_from_overlay(self, name: str) -> None:
        if name in self._overlay.subscribers:
            self._overlay.unsubscribe(name)
        for subscription in self._overlay.subscriptions_of(name):
            self._overlay.remove(subscription.id)

    def _renumber(self) -> None:
        """Assign numbers to the overlay that follow those of the base. O(overlay)."""
        compiled = self._overlay.compiled
        assert compiled is not None
        self._index, self._ranker = compiled
        ids = self._index.snapshot.table.ids
        self._id_order = np.empty(len(ids), np.int64)
        self._id_order[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
        names = self._ranker.names
        self.names = OverlaidStrings(self._subscribers.names, pa.array(names, pa.large_string()))
        self.ids = OverlaidStrings(self._base.ids, pa.array(ids, pa.large_string()))
        self.attributes = self.flags(needs_attributes)
        self._numbers: dict[Any, Int64s] = {}
        self.hashes: UInt32s = np.concatenate([self._subscribers.hashes, hashes_of(names)])

    @property
    def beside(self) -> int:
        """The number of subscriptions in the overlay."""
        return len(self._overlay.subscriptions)

    def describe(self) -> AccessDescription:
        """Describe the index of the base; `print` it to read it."""
        return self._base.describe()

    @property
    def size(self) -> int:
        """The number of subscriptions that have a number, including dropped ones."""
        return len(self.ids)

    def flags(self, test: Callable[[Policy], bool]) -> Bools:
        """Return for each owner whether it is present and its policy passes a test."""
        policies = self._overlay_policies
        overlaid = np.array([policy is not None and test(policy) for policy in policies], np.bool_)
        return np.concatenate([self._subscribers.flags(test) & ~self._dropped, overlaid])

    def numbers(self, of: Callable[[Policy | None], Sequence[int]]) -> Int64s:
        """Return for each owner some numbers that depend on its policy; they are cached."""
        if of not in self._numbers:
            overlaid = np.array([*map(of, self._overlay_policies), of(None)], np.int64)[:-1]
            self._numbers[of] = np.concatenate([self._subscribers.numbers(of), overlaid])
        return self._numbers[of]

    @property
    def _overlay_policies(self) -> list[Policy | None]:
        return [self._subscribers.changed[name] for name in self._ranker.names]


def in_memory_matcher(bundles: Iterable[SubscriberBundle]) -> OverlayMatcher:
    """Return a matcher without a base, for few bundles or policies that cannot be written."""
    return OverlayMatcher(build_base([]), bundles)


def _sorted_by(matches: Matches, keys: npt.NDArray[Any]) -> Matches:
    """Return matches with the subscriptions of each in order of their keys."""
    matched = matches.matched.copy()
    sort_spans(matches.matched_starts, keys.astype(np.int64), matched)
    return matches._replace(matched=matched)
