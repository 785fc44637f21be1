"""Ranks by whole matches: the most specific subscriptions (PREF Def. 5), or the best own score."""

from collections.abc import Sequence

import numpy as np

from tidings.compiled.array_file import Reader, Writer
from tidings.model.conditions.cover_bulk import strictly_covered
from tidings.rank.bulk.protocol import Asked, Extent, Owner
from tidings.rank.bulk.rank_table import Layout, Ledger
from tidings.rank.matches import Matches
from tidings.score import Scorer
from tidings.score.exact import Exact
from tidings.score.preference import Preference


class MostSpecific:
    """F over the prefranks of the matching subscriptions that strictly cover no other one.

    Which covers which is found once, for each owner whose subscriptions changed. Own scores (RPS)
    are the same with F = max, and with covers that do not count.
    """

    partial = False

    def __init__(self) -> None:
        self._ledger = Ledger()

    def write(self, writer: Writer, numbers: int, owners: int) -> None:
        """Add all records to a file."""
        self._ledger.write(writer, numbers, owners)

    @classmethod
    def read(cls, reader: Reader, extent: Extent) -> "MostSpecific":
        """Return the records of a file."""
        made = cls()
        made._ledger = Ledger.read(reader, extent.numbers, extent.owners)
        return made

    def takes(self, scorer: Scorer) -> bool:
        """Take preferences, with every aggregate, and own scores."""
        return type(scorer) in (Preference, Exact)

    def lay(self, owners: Sequence[Owner]) -> None:
        """Find worths and covers; a few instructions for most pairs of one owner."""
        numbers = np.array([n for owner in owners for n in owner.owned], np.int32)
        whose = np.array([owner.number for owner in owners for _ in owner.owned], np.int32)
        worths = [worth for owner in owners for worth in self._worths(owner)]
        conditions = [each.conjunctions for owner in owners for each in owner.owned.values()]
        found = strictly_covered(conditions, [near for owner in owners for near in _near(owner)])
        starts = found.starts.astype(np.int64)
        self._ledger.lay(Layout(numbers, whose, np.array(worths), starts, numbers[found.values]))

    def clear(self, numbers: Sequence[int]) -> None:
        """Forget subscriptions."""
        self._ledger.clear(numbers)

    def forget(self, owner: int) -> None:
        """Keep what the next owner of the number overwrites."""

    def rank(self, asked: Asked) -> Matches:
        """Rank in one pass over the matches."""
        return self._ledger.rank(asked.held.numbers, asked.held.starts)

    @property
    def nbytes(self) -> int:
        """Bytes of the records."""
        return self._ledger.nbytes

    def _worths(self, owner: Owner) -> list[float]:
        scorer, owned = owner.scorer, list(owner.owned.values())
        if isinstance(scorer, Preference):
            self._ledger.aggregate(owner.number, scorer.aggregate)
            return scorer.weighted_prefranks(owned, owner.subscriber.prefers)
        self._ledger.aggregate(owner.number, "max")
        return [1.0 if each.score is None else each.score for each in owned]


def _near(owner: Owner) -> list[int]:
    """Give equal numbers to subscriptions whose covers count, and else each its own."""
    if isinstance(owner.scorer, Preference):
        return [owner.number] * len(owner.owned)
    return [~number for number in owner.owned]
