"""How each scorer ranks the hits of an event for all its owners at once: one class for each method.

PreferenceMethod    preference, exact    whole matches; one pass over the hits
RelaxedMethod       relaxed              weights of the predicates that hold
GraphMethod         graph                nodes and edges of the owners' graphs
PythonMethod        every other scorer   one call for each owner and event
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tidings.compiled.array_file import MOST, Reader, Writer
from tidings.compiled.array_types import AnyArray, Float64s
from tidings.compiled.arrays import grown, offsets
from tidings.compiled.exact_sum import PARTS
from tidings.index.access.kernels.validate import nodes_valid
from tidings.model.conditions.cover_bulk import strictly_covered
from tidings.model.conditions.predicate import Predicate
from tidings.model.dead_letter import Failure, try_call
from tidings.model.records import Event, Subscription
from tidings.rank.bulk.kernels.rank import (
    EDGE,
    GRAPH,
    NODE,
    PART,
    Graphs,
    GraphScores,
    GraphScratch,
    Spans,
    score_events,
    weigh_hits,
)
from tidings.rank.bulk.protocol import IndexExtent, Owner, RankRequest, Unranked
from tidings.rank.bulk.rank_table import EPOCHS, MOST_WORTH, RankRows, RankTable, SpanPool
from tidings.rank.matches import Matches
from tidings.score import Ranker, Scorer
from tidings.score.exact import Exact
from tidings.score.graph import Graph, PreferenceGraph, preference_graph
from tidings.score.preference import Preference
from tidings.score.protocol import checked_rank
from tidings.score.relaxed import Relaxed

# Ranks by whole matches: the most specific subscriptions (PREF Def. 5), or the best own score.


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
        conditions = [
            subscription.conjunctions
            for owner in owners
            for subscription in owner.subscriptions.values()
        ]
        groups = [group for owner in owners for group in _cover_groups(owner)]
        covers = strictly_covered(conditions, groups)
        rows = RankRows(numbers, whose, np.array(worths), covers.starts, numbers[covers.values])
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
        return [
            1.0 if subscription.score is None else subscription.score
            for subscription in subscriptions
        ]


def _cover_groups(owner: Owner) -> list[int]:
    """Return the same number for subscriptions whose covers count, else a number of each."""
    if isinstance(owner.scorer, Preference):
        return [owner.number] * len(owner.subscriptions)
    return [~number for number in owner.subscriptions]


# Ranks by the weights of the predicates that hold (RPS, relaxed matching).


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


# Ranks by preference graphs (TKS 4.2.1): the graphs of all subscribers in arrays.

NodeNumbers = Mapping[Predicate, int]


class GraphMethod:
    """One graph per owner: its nodes and edges, and which predicates are which nodes."""

    partial = True

    def __init__(self) -> None:
        self._table = RankTable()
        self._owners = np.full(64, -1, np.int32)
        self._graphs = np.zeros(64, GRAPH)
        self._parts = SpanPool(np.int32)
        self._nodes, self._edges = SpanPool(NODE), SpanPool(EDGE)
        self._epoch = np.zeros(1, np.int32)

    def write(self, writer: Writer, subscriptions: int, owners: int) -> None:
        """Write all graphs to a file, without stamps."""
        self._table.write(writer, subscriptions, owners)
        whose = np.full(subscriptions, -1, np.int32)
        whose[: len(self._owners)] = self._owners[:subscriptions]
        writer.array("whose", whose)
        graphs, present = np.zeros(owners, GRAPH), self._graphs[:owners]
        for name in ("share", "adds"):
            graphs[name][: len(present)] = present[name]
        writer.array("people", graphs)
        self._parts.write(writer.within("parts"), subscriptions)
        self._nodes.write(writer.within("nodes"), owners)
        self._edges.write(writer.within("edges"), owners)
        writer.arrays[f"{writer.prefix}nodes.values"]["stamp"] = 0

    @classmethod
    def read(cls, reader: Reader, extent: IndexExtent) -> "GraphMethod":
        """Return the method of a file; stamps must be 0, see `RankTable.read`."""
        method = cls()
        method._table = RankTable.read(reader, extent.subscriptions, extent.owners)
        method._owners = reader.array("whose", np.int32, extent.subscriptions)
        same = np.array_equal(method._owners, method._table.owners)
        reader.require(same, "whose", "differ from the owners of the rows")
        graphs = method._graphs = reader.array("people", GRAPH, extent.owners)
        reader.finite("people", graphs["share"], 1.0)
        reader.within_bounds("people", graphs["adds"], 2)
        unstamped = not (graphs["stamp"].any() or graphs["place"].any())
        reader.require(unstamped, "people", "are stamped")
        method._read_graphs(reader, extent)
        return method

    def _read_graphs(self, reader: Reader, extent: IndexExtent) -> None:
        """Read nodes and edges, and which predicates are which nodes."""
        self._parts = SpanPool.read(reader.within("parts"), np.int32, extent.subscriptions)
        self._nodes = SpanPool.read(reader.within("nodes"), NODE, extent.owners)
        self._edges = SpanPool.read(reader.within("edges"), EDGE, extent.owners)
        owned = self._owners >= 0
        fits = extent.largest_parts[owned] < self._parts.sizes[owned]
        present = self._parts.firsts[owned] >= 0
        reader.require(fits.all() and present.all(), "parts.sizes", "are smaller than is needed")
        whose = np.repeat(self._owners, self._parts.sizes)
        nodes, sizes = self._parts.values, np.append(self._nodes.sizes, 0)
        right = (nodes >= -1) & ((nodes < sizes[whose]) | (whose < 0))
        reader.require(right.all(), "parts.values", "lead to no node")
        checked = nodes_valid(extent.checked, np.where(owned, self._parts.firsts, -1), nodes)
        reader.require(checked, "parts.values", "lead to no node")
        owners = self._owners[owned]
        present = (self._nodes.firsts[owners] >= 0) & (self._edges.firsts[owners] >= 0)
        reader.require(present.all(), "nodes.firsts", "are missing for some owner")
        self._check_edges(reader)

    def _check_edges(self, reader: Reader) -> None:
        nodes, edges = self._nodes.values, self._edges.values
        room = np.repeat(self._edges.sizes, self._nodes.sizes)
        reader.within_bounds("nodes.values", nodes["first"], MOST)
        reader.within_bounds("nodes.values", nodes["size"], MOST)
        ends = nodes["first"].astype(np.int64) + nodes["size"]
        reader.require((ends <= room).all(), "nodes.values", "lead to no edge")
        reader.require(not nodes["stamp"].any(), "nodes.values", "are stamped")
        reader.finite("nodes.values", nodes["preference"], MOST_WORTH)
        reader.finite("edges.values", edges["weight"], MOST_WORTH)

    def supports(self, scorer: Scorer) -> bool:
        """Return whether this is the graph scorer."""
        return type(scorer) is Graph

    def update(self, owners: Sequence[Owner]) -> None:
        """Write the graphs of owners, in place where they fit."""
        for owner in owners:
            if isinstance(owner.scorer, Graph):
                self._update(owner, owner.scorer)

    def _update(self, owner: Owner, scorer: Graph) -> None:
        graph = preference_graph(owner.subscriptions.values())
        node_of = {part: node for node, part in enumerate(graph.preferences)}
        whose = owner.number if len(node_of) >= scorer.threshold else -1
        self._graphs = grown(self._graphs, owner.number + 1)
        self._owners = grown(self._owners, max(owner.subscriptions, default=-1) + 1, -1)
        for number, subscription in owner.subscriptions.items():
            self._owners[number] = whose
            self._parts.put(number, _nodes_of(subscription, node_of))
        numbers = list(owner.subscriptions)
        worths = [0.0] * len(numbers)
        self._table.put(RankRows.without_covers(numbers, [whose] * len(numbers), worths))
        self._table.set_aggregate(owner.number, "max")
        edges, firsts = _edges(graph, node_of)
        self._edges.put(owner.number, edges)
        self._nodes.put(owner.number, _nodes(graph, firsts))
        self._graphs["share"][owner.number] = scorer.lambda_
        self._graphs["adds"][owner.number] = scorer.aggregate == "sum"

    def remove(self, numbers: Sequence[int]) -> None:
        present = [number for number in numbers if number < len(self._owners)]
        self._owners[present] = -1
        self._parts.drop(present)
        self._table.remove(numbers)

    def forget(self, owner: int) -> None:
        """Release the graph of an owner."""
        self._nodes.drop([owner])
        self._edges.drop([owner])

    def rank(self, request: RankRequest) -> Matches:
        """Score the satisfied part of each graph that an event touches."""
        hits = request.hits
        self._owners = grown(self._owners, int(hits.numbers.max(initial=-1)) + 1, -1)
        size, parts = len(hits.numbers), len(hits.parts)
        scratch = GraphScratch(
            np.empty(2 * parts, np.int32),
            np.empty(size, np.int32),
            np.empty(parts, np.int32),
            np.empty(PARTS),
        )
        starts = np.zeros(len(hits.starts), np.int64)
        out = GraphScores(starts, np.empty(size, np.int32), np.empty(size))
        score_events(self._arrays(len(hits.starts)), hits, scratch, out)
        grouped = self._table.rank(hits)  # the same subscribers in the same order
        scored = grouped._replace(ranks=out.scores[: out.starts[-1]])
        return scored.only(scored.ranks > 0.0)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        held = (self._table, self._owners, self._graphs, self._parts, self._nodes, self._edges)
        return sum(part.nbytes for part in held)

    def _arrays(self, events: int) -> Graphs:
        nodes = self._nodes.spans(len(self._graphs))
        if self._epoch[0] > EPOCHS - events:
            self._graphs["stamp"] = nodes.values["stamp"] = self._epoch[0] = 0
        parts, edges = self._parts.spans(len(self._owners)), self._edges.spans(len(self._graphs))
        return Graphs(self._owners, parts, self._graphs, nodes, edges, self._epoch)


def _nodes_of(subscription: Subscription, node_of: NodeNumbers) -> AnyArray:
    """Return the node of each predicate in order of the groups; -1 for one that is not active."""
    parts = [part for group in subscription.groups for part in group]
    return np.array([node_of.get(part.predicate, -1) for part in parts], np.int32)


def _edges(graph: PreferenceGraph, node_of: NodeNumbers) -> tuple[AnyArray, AnyArray]:
    """Return the edges, each at the earlier of its nodes, and where those of each node start."""
    ends = sorted(
        (sorted((node_of[first], node_of[second])), weight)
        for (first, second), weight in graph.edges.items()
    )
    edges = np.zeros(len(ends), EDGE)
    edges["to"] = [to for (_, to), _ in ends]
    edges["weight"] = [weight for _, weight in ends]
    firsts = np.searchsorted([start for (start, _), _ in ends], np.arange(len(node_of) + 1))
    return edges, firsts


def _nodes(graph: PreferenceGraph, firsts: AnyArray) -> AnyArray:
    nodes = np.zeros(len(graph.preferences), NODE)
    nodes["preference"] = list(graph.preferences.values())
    nodes["first"], nodes["size"] = firsts[:-1], np.diff(firsts)
    return nodes


# Ranks one by one, for scorers without a compiled form.


@dataclass(frozen=True)
class Unprepared:
    """Stands for a scorer that could not be prepared; it fails only for matches of its owner."""

    error: Exception

    def rank(self, event: Event, hits: Sequence[Subscription]) -> float | None:
        """Raise the error of the preparation."""
        raise self.error

    def score(self, event: Event, hit: Subscription) -> float:
        """Raise the error of the preparation."""
        raise self.error


class _Ranked(NamedTuple):
    """One match: a subscriber, its rank, and the subscriptions that matched."""

    owner: int
    rank: float
    numbers: list[int]


class PythonMethod:
    """Calls each owner's own ranker, for scorers of whole matches, or for those of partial ones."""

    def __init__(self, *, partial: bool) -> None:
        self.partial = partial
        self._rankers: dict[int, Ranker] = {}
        self._owner: dict[int, int] = {}
        self.failed: dict[int, Exception] = {}
        """Owners whose scorers raised an error; they get no ranks until their next update."""

    def supports(self, scorer: Scorer) -> bool:
        """Return whether a scorer needs the same hits."""
        return scorer.partial == self.partial

    def update(self, owners: Sequence[Owner]) -> None:
        """Prepare the scorers."""
        for owner in owners:
            subscriptions = list(owner.subscriptions.values())
            prepare = owner.scorer.prepare
            ranker: Ranker | Failure = try_call(prepare, subscriptions, owner.subscriber.prefers)
            if isinstance(ranker, Failure):
                ranker = Unprepared(ranker.error)
            self._rankers[owner.number] = ranker
            self.failed.pop(owner.number, None)
            self._owner |= dict.fromkeys(owner.subscriptions, owner.number)

    def remove(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._owner.pop(number, None)

    def forget(self, owner: int) -> None:
        """Forget the ranker of an owner."""
        self._rankers.pop(owner, None)
        self.failed.pop(owner, None)

    def rank(self, request: RankRequest) -> Matches:
        """Rank each event for each owner of a hit."""
        by_event = [list(self._ranked(request, event)) for event in range(len(request.events))]
        ranked = [match for matches in by_event for match in matches]
        return Matches(
            offsets([len(matches) for matches in by_event]),
            np.array([match.owner for match in ranked], np.int32),
            np.array([match.rank for match in ranked], np.float64),
            offsets([len(match.numbers) for match in ranked]),
            np.array([number for match in ranked for number in match.numbers], np.int32),
        )

    def _ranked(self, request: RankRequest, event: int) -> Iterator[_Ranked]:
        hits, owned = request.hits, defaultdict[int, dict[int, Subscription]](dict)
        for number in hits.numbers[hits.starts[event] : hits.starts[event + 1]].tolist():
            if number in self._owner:
                owned[self._owner[number]][number] = request.subscriptions[number]
        for owner, own in owned.items():
            rank = self._rank(request, event, owner, list(own.values()))
            if rank is not None:
                yield _Ranked(owner, rank, list(own))

    def _rank(
        self, request: RankRequest, event: int, owner: int, hits: list[Subscription]
    ) -> float | None:
        """Return the rank of an owner's ranker; None if it fails."""
        if owner in self.failed:
            return None
        rank = try_call(self._rankers[owner].rank, request.events[event], hits)
        if not isinstance(rank, Failure):
            rank = try_call(checked_rank, rank)
        if not isinstance(rank, Failure):
            return rank
        if request.unranked is None:
            self.failed[owner] = rank.error
        else:
            request.unranked.append(Unranked(event, owner, rank.reason))
        return None

    @property
    def nbytes(self) -> int:
        """Bytes of the records: two numbers per subscription, and no arrays."""
        return 16 * len(self._owner)
