"""Ranks by the weights that hold (RPS, relaxed matching)."""

from collections.abc import Sequence

import numpy as np

from tidings.fanout.ledger import Layout, Ledger
from tidings.fanout.spans import Spans
from tidings.fanout.wanted import Wanted
from tidings.fanout.way import Asked, Owner
from tidings.kernels.exact_sum import PARTS
from tidings.kernels.weighing import PART, Floats, weigh_hits
from tidings.model import Subscription
from tidings.score import Scorer
from tidings.score.relaxed import Relaxed


class HeaviestGroup:
    """The best sum of weights of predicates that hold, over the groups of all subscriptions."""

    partial = True

    def __init__(self) -> None:
        self._ledger, self._parts = Ledger(), Spans(PART)

    def takes(self, scorer: Scorer) -> bool:
        """Take the relaxed scorer where it adds."""
        return isinstance(scorer, Relaxed) and scorer.aggregate == "sum"

    def lay(self, owners: Sequence[Owner]) -> None:
        """Write down the weights of all predicates, and to which groups they belong."""
        numbers = [number for owner in owners for number in owner.owned]
        whose = [owner.number for owner in owners for _ in owner.owned]
        self._ledger.lay(Layout.without_covers(numbers, whose, [0.0] * len(numbers)))
        for owner in owners:
            self._ledger.aggregate(owner.number, "max")
            for number, each in owner.owned.items():
                parts = [(w.weight, g) for g, group in enumerate(each.groups) for w in group]
                self._parts.put(number, np.array(parts, PART))

    def clear(self, numbers: Sequence[int]) -> None:
        """Forget subscriptions."""
        self._ledger.clear(numbers)
        self._parts.drop(numbers)

    def rank(self, asked: Asked) -> Wanted:
        """Weigh what holds of each subscription; the best counts for its owner."""
        held, worths = asked.held, np.empty(len(asked.held.numbers))
        pool = self._parts.pool(int(held.numbers.max(initial=-1)) + 1)
        weigh_hits(pool, held, _sureness(asked), np.empty(PARTS), worths)
        return self._ledger.rank(held.numbers, held.starts, worths)

    @property
    def nbytes(self) -> int:
        """Bytes of the records."""
        return self._ledger.nbytes + self._parts.nbytes


def _sureness(asked: Asked) -> Floats:
    """Give the probability of each predicate that holds; nothing, if all are certain."""
    if not any(event.probabilities for event in asked.events):
        return np.empty(0)
    found, held = np.ones(len(asked.held.parts)), asked.held
    for number, event in enumerate(asked.events):
        if event.probabilities:
            for hit in range(held.starts[number], held.starts[number + 1]):
                names = _attributes(asked.subscriptions[held.numbers[hit]])
                for at in range(held.part_starts[hit], held.part_starts[hit + 1]):
                    found[at] = event.probabilities.get(names[held.parts[at]], 1.0)
    return found


def _attributes(subscription: Subscription | None) -> list[str]:
    groups = subscription.groups if subscription else ()
    return [part.predicate.attribute for group in groups for part in group]
