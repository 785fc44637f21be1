"""Ranks by the weights of the predicates that hold (RPS, relaxed matching)."""

from collections.abc import Sequence

import numpy as np

from tidings.compiled.array_file import MOST, Reader, Writer
from tidings.compiled.array_types import Float64s
from tidings.compiled.exact_sum import PARTS
from tidings.model.records import Subscription
from tidings.rank.bulk.kernels.relaxed import PART, Spans, weigh_hits
from tidings.rank.bulk.protocol import IndexExtent, Owner, RankRequest
from tidings.rank.bulk.rank_table import MOST_WORTH, RankRows, RankTable
from tidings.rank.bulk.span_pool import SpanPool
from tidings.rank.matches import Matches
from tidings.score import Scorer
from tidings.score.relaxed import Relaxed


class AttributeNumbers:
    """Numbers of attribute names, with reference counts; unused numbers are reused.

    >>> names = AttributeNumbers()
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
    def of(cls, names: Sequence[str], uses: Sequence[int]) -> "AttributeNumbers":
        """Return attributes by number with their reference counts; unused names are ignored."""
        numbers = cls()
        numbers._names, numbers._uses = list(names), list(uses)
        numbers._numbers = {name: number for number, name in enumerate(names) if uses[number]}
        numbers._free = [number for number, count in enumerate(uses) if not count]
        return numbers

    def names(self) -> list[str]:
        """Return the names by number; that of an unused number is empty."""
        return [name if used else "" for name, used in zip(self._names, self._uses, strict=True)]

    def take(self, name: str) -> int:
        """Return the number of a name, and count one use more."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = self._next()
            self._names[number] = name
        self._uses[number] += 1
        return number

    def find(self, name: str) -> int:
        """Return the number of a name, or -1 if it is unused."""
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


class RelaxedMethod:
    """The best sum of weights of predicates that hold, over the groups of all subscriptions."""

    partial = True

    def __init__(self) -> None:
        self._table, self._parts = RankTable(), SpanPool(PART)
        self._attributes = AttributeNumbers()

    def write(self, writer: Writer, subscriptions: int, owners: int) -> None:
        """Write all records to a file."""
        self._table.write(writer, subscriptions, owners)
        self._parts.write(writer.within("parts"), subscriptions)
        writer.texts("attributes", self._attributes.names())

    @classmethod
    def read(cls, reader: Reader, extent: IndexExtent) -> "RelaxedMethod":
        """Return the method of a file."""
        method, within = cls(), reader.within("parts")
        method._table = RankTable.read(reader, extent.subscriptions, extent.owners)
        parts = method._parts = SpanPool.read(within, PART, extent.subscriptions)
        names = reader.texts("attributes").strings().to_pylist()
        attributes = parts.values["attribute"]
        within.finite("values", parts.values["weight"], MOST_WORTH)
        within.within_bounds("values", attributes, len(names))
        uses = np.bincount(attributes, minlength=len(names)).tolist()
        method._attributes = AttributeNumbers.of(names, uses)
        within.within_bounds("values", parts.values["group"], MOST)
        fits = (parts.firsts < 0) | (extent.largest_parts < parts.sizes)
        within.require(fits.all(), "sizes", "are smaller than the records of the index need")
        return method

    def supports(self, scorer: Scorer) -> bool:
        """Return whether this is the relaxed scorer with the aggregate `sum`."""
        return type(scorer) is Relaxed and scorer.aggregate == "sum"

    def update(self, owners: Sequence[Owner]) -> None:
        """Write the weights of all predicates, and the groups they belong to."""
        numbers = [number for owner in owners for number in owner.subscriptions]
        whose = [owner.number for owner in owners for _ in owner.subscriptions]
        self._table.put(RankRows.without_covers(numbers, whose, [0.0] * len(numbers)))
        for owner in owners:
            self._table.set_aggregate(owner.number, "max")
            for number, subscription in owner.subscriptions.items():
                self._release(number)
                self._parts.put(number, np.array(self._weights(subscription), PART))

    def remove(self, numbers: Sequence[int]) -> None:
        self._table.remove(numbers)
        for number in numbers:
            self._release(number)
        self._parts.drop(numbers)

    def forget(self, owner: int) -> None:
        """Keep the record, which the next owner of the number overwrites."""

    def rank(self, request: RankRequest) -> Matches:
        """Weigh each hit; the heaviest one of an owner is its rank."""
        hits, worths = request.hits, np.empty(len(request.hits.numbers))
        spans = self._parts.spans(int(hits.numbers.max(initial=-1)) + 1)
        weigh_hits(spans, hits, self._probabilities(request, spans), np.empty(PARTS), worths)
        return self._table.rank(hits, worths)

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + self._parts.nbytes

    def _weights(self, subscription: Subscription) -> list[tuple[float, int, int]]:
        """Return a record PART of each predicate: weight, group, attribute."""
        return [
            (part.weight, number, self._attributes.take(part.predicate.attribute))
            for number, group in enumerate(subscription.groups)
            for part in group
        ]

    def _release(self, number: int) -> None:
        """Release the attributes of a subscription that is rewritten or removed."""
        parts = self._parts.get(number)
        if len(parts):
            self._attributes.release(parts["attribute"].tolist())

    def _probabilities(self, request: RankRequest, spans: Spans) -> Float64s:
        """Return the probability of each predicate that holds; nothing if all are certain."""
        if not any(event.probabilities for event in request.events):
            return np.empty(0)
        hits, chances = request.hits, np.ones(len(request.hits.parts))
        first = np.repeat(spans.firsts[hits.numbers], np.diff(hits.part_starts))
        places = np.flatnonzero(first >= 0)
        attributes = np.full(len(chances), -1)
        attributes[places] = spans.values["attribute"][(first + hits.parts)[places]]
        ends = hits.part_starts[hits.starts]
        for event, begin, end in zip(request.events, ends[:-1], ends[1:], strict=True):
            for name, chance in event.probabilities.items():
                number = self._attributes.find(name)
                chances[begin:end][(attributes[begin:end] == number) & (number >= 0)] = chance
        return chances
