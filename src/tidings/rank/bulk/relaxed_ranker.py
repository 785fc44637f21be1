"""Ranks by the weights that hold (RPS, relaxed matching)."""

from collections.abc import Sequence

import numpy as np

from tidings.compiled.array_file import MOST, Reader, Writer
from tidings.compiled.array_types import Float64s
from tidings.compiled.exact_sum import PARTS
from tidings.model.records import Subscription
from tidings.rank.bulk.kernels.relaxed import PART, Pool, weigh_hits
from tidings.rank.bulk.protocol import Asked, Extent, Owner
from tidings.rank.bulk.rank_table import MOST_WORTH, Layout, Ledger
from tidings.rank.bulk.span_pool import Spans
from tidings.rank.matches import Matches
from tidings.score import Scorer
from tidings.score.relaxed import Relaxed


class Attributes:
    """Numbers of attribute names, with how many predicates use each; unused ones are given again.

    >>> names = Attributes()
    >>> names.take("year"), names.take("genre"), names.take("year")
    (0, 1, 0)
    >>> names.release([0, 0])
    >>> names.find("year"), names.take("title")
    (-1, 0)
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._uses: list[int] = []
        self._free: list[int] = []

    @classmethod
    def of(cls, names: Sequence[str], uses: Sequence[int]) -> "Attributes":
        """Return attributes by number, each with its uses; an unused one may have any name."""
        made = cls()
        made._names, made._uses = list(names), list(uses)
        made._numbers = {name: at for at, name in enumerate(names) if uses[at]}
        made._free = [at for at, count in enumerate(uses) if not count]
        return made

    def names(self) -> list[str]:
        """Return the names by number; that of a number without uses is empty."""
        return [name if used else "" for name, used in zip(self._names, self._uses, strict=True)]

    def take(self, name: str) -> int:
        """Return the number of a name, used once more."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = self._next()
            self._names[number] = name
        self._uses[number] += 1
        return number

    def find(self, name: str) -> int:
        """Return the number of a name, or -1 if no predicate uses it."""
        return self._numbers.get(name, -1)

    def release(self, numbers: Sequence[int]) -> None:
        """Count one use less of each number."""
        for number in numbers:
            self._uses[number] -= 1
            if not self._uses[number]:
                del self._numbers[self._names[number]]
                self._free.append(number)

    def _next(self) -> int:
        if self._free:
            return self._free.pop()
        self._names.append("")
        self._uses.append(0)
        return len(self._names) - 1


class HeaviestGroup:
    """The best sum of weights of predicates that hold, over the groups of all subscriptions."""

    partial = True

    def __init__(self) -> None:
        self._ledger, self._parts = Ledger(), Spans(PART)
        self._attributes = Attributes()

    def write(self, writer: Writer, numbers: int, owners: int) -> None:
        """Add all records to a file."""
        self._ledger.write(writer, numbers, owners)
        self._parts.write(writer.within("parts"), numbers)
        writer.texts("attributes", self._attributes.names())

    @classmethod
    def read(cls, reader: Reader, extent: Extent) -> "HeaviestGroup":
        """Return the records of a file."""
        made, within = cls(), reader.within("parts")
        made._ledger = Ledger.read(reader, extent.numbers, extent.owners)
        made._parts = Spans.read(within, PART, extent.numbers)
        names = reader.texts("attributes").strings().to_pylist()
        attributes = made._parts.values["attribute"]
        within.finite("values", made._parts.values["weight"], MOST_WORTH)
        within.within_bounds("values", attributes, len(names))
        made._attributes = Attributes.of(
            names, np.bincount(attributes, minlength=len(names)).tolist()
        )
        within.within_bounds("values", made._parts.values["group"], MOST)
        fits = (made._parts.firsts < 0) | (extent.most_parts < made._parts.sizes)
        within.require(fits.all(), "sizes", "are smaller than the records of the index need")
        return made

    def takes(self, scorer: Scorer) -> bool:
        """Take the relaxed scorer where it adds."""
        return type(scorer) is Relaxed and scorer.aggregate == "sum"

    def lay(self, owners: Sequence[Owner]) -> None:
        """Write down the weights of all predicates, and to which groups they belong."""
        numbers = [number for owner in owners for number in owner.owned]
        whose = [owner.number for owner in owners for _ in owner.owned]
        self._ledger.lay(Layout.without_covers(numbers, whose, [0.0] * len(numbers)))
        for owner in owners:
            self._ledger.aggregate(owner.number, "max")
            for number, each in owner.owned.items():
                self._release(number)
                self._parts.put(number, np.array(self._weights(each), PART))

    def clear(self, numbers: Sequence[int]) -> None:
        """Forget subscriptions."""
        self._ledger.clear(numbers)
        for number in numbers:
            self._release(number)
        self._parts.drop(numbers)

    def forget(self, owner: int) -> None:
        """Keep what the next owner of the number overwrites."""

    def rank(self, asked: Asked) -> Matches:
        """Weigh what holds of each subscription; the best counts for its owner."""
        held, worths = asked.held, np.empty(len(asked.held.numbers))
        pool = self._parts.pool(int(held.numbers.max(initial=-1)) + 1)
        weigh_hits(pool, held, self._sureness(asked, pool), np.empty(PARTS), worths)
        return self._ledger.rank(held.numbers, held.starts, worths)

    @property
    def nbytes(self) -> int:
        """Bytes of the records."""
        return self._ledger.nbytes + self._parts.nbytes

    def _weights(self, subscription: Subscription) -> list[tuple[float, int, int]]:
        """Give of each predicate the weight, and the numbers of its group and its attribute."""
        return [
            (part.weight, at, self._attributes.take(part.predicate.attribute))
            for at, group in enumerate(subscription.groups)
            for part in group
        ]

    def _release(self, number: int) -> None:
        """Give back the attributes of a subscription that is written anew or dropped."""
        held = self._parts.get(number)
        if len(held):
            self._attributes.release(held["attribute"].tolist())

    def _sureness(self, asked: Asked, pool: Pool) -> Float64s:
        """Give the probability of each predicate that holds; nothing, if all are certain."""
        if not any(event.probabilities for event in asked.events):
            return np.empty(0)
        held, found = asked.held, np.ones(len(asked.held.parts))
        first = np.repeat(pool.firsts[held.numbers], np.diff(held.part_starts))
        places = np.flatnonzero(first >= 0)
        named = np.full(len(found), -1)
        named[places] = pool.parts["attribute"][(first + held.parts)[places]]
        ends = held.part_starts[held.starts]
        for event, begin, end in zip(asked.events, ends[:-1], ends[1:], strict=True):
            for name, sure in event.probabilities.items():
                of = self._attributes.find(name)
                found[begin:end][(named[begin:end] == of) & (of >= 0)] = sure
        return found
