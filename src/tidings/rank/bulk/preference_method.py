"""Ranks by whole matches: the most specific subscriptions (PREF Def. 5), or the best own score."""

from collections.abc import Sequence

import numpy as np

from tidings.compiled.array_file import Reader, Writer
from tidings.model.conditions.cover_bulk import strictly_covered
from tidings.rank.bulk.protocol import IndexExtent, Owner, RankRequest
from tidings.rank.bulk.rank_table import RankRows, RankTable
from tidings.rank.matches import Matches
from tidings.score import Scorer
from tidings.score.exact import Exact
from tidings.score.preference import Preference


class PreferenceMethod:
    """F over the prefranks of the matching subscriptions that strictly cover no other one.

    Covers are computed once for each owner whose subscriptions changed. Own scores (RPS, exact) are
    the same with F = max, and with covers ignored.
    """

    partial = False

    def __init__(self) -> None:
        self._table = RankTable()

    def write(self, writer: Writer, subscriptions: int, owners: int) -> None:
        """Write all records to a file."""
        self._table.write(writer, subscriptions, owners)

    @classmethod
    def read(cls, reader: Reader, extent: IndexExtent) -> "PreferenceMethod":
        """Return the method of a file."""
        method = cls()
        method._table = RankTable.read(reader, extent.subscriptions, extent.owners)
        return method

    def supports(self, scorer: Scorer) -> bool:
        """Return whether this is the preference scorer, with any aggregate, or the exact one."""
        return type(scorer) in (Preference, Exact)

    def update(self, owners: Sequence[Owner]) -> None:
        """Compute worths and covers; a few instructions for most pairs of one owner."""
        numbers = np.array([n for owner in owners for n in owner.subscriptions], np.int32)
        whose = np.array([owner.number for owner in owners for _ in owner.subscriptions], np.int32)
        worths = [worth for owner in owners for worth in self._worths(owner)]
        conditions = [one.conjunctions for owner in owners for one in owner.subscriptions.values()]
        groups = [group for owner in owners for group in _cover_groups(owner)]
        covers = strictly_covered(conditions, groups)
        starts = covers.starts.astype(np.int64)
        rows = RankRows(numbers, whose, np.array(worths), starts, numbers[covers.values])
        self._table.put(rows)

    def remove(self, numbers: Sequence[int]) -> None:
        self._table.remove(numbers)

    def forget(self, owner: int) -> None:
        """Keep the record, which the next owner of the number overwrites."""

    def rank(self, request: RankRequest) -> Matches:
        """Rank in one pass over the hits."""
        return self._table.rank(request.hits)

    @property
    def nbytes(self) -> int:
        return self._table.nbytes

    def _worths(self, owner: Owner) -> list[float]:
        scorer, subscriptions = owner.scorer, list(owner.subscriptions.values())
        if isinstance(scorer, Preference):
            self._table.set_aggregate(owner.number, scorer.aggregate)
            return scorer.weighted_prefranks(subscriptions, owner.subscriber.prefers)
        self._table.set_aggregate(owner.number, "max")
        return [1.0 if one.score is None else one.score for one in subscriptions]


def _cover_groups(owner: Owner) -> list[int]:
    """Return the same number for subscriptions whose covers count, else a number of each."""
    if isinstance(owner.scorer, Preference):
        return [owner.number] * len(owner.subscriptions)
    return [~number for number in owner.subscriptions]
