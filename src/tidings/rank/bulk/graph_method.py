"""Ranks by preference graphs (TKS 4.2.1): the graphs of all subscribers in arrays."""

from collections.abc import Mapping, Sequence

import numpy as np

from tidings.compiled.array_file import MOST, Reader, Writer
from tidings.compiled.array_types import AnyArray
from tidings.compiled.arrays import grown
from tidings.compiled.exact_sum import PARTS
from tidings.index.access.kernels.validate import nodes_valid
from tidings.model.conditions.predicate import Predicate
from tidings.model.records import Subscription
from tidings.rank.bulk.kernels.graph import (
    EDGE,
    GRAPH,
    NODE,
    Graphs,
    GraphScores,
    GraphScratch,
    score_events,
)
from tidings.rank.bulk.protocol import IndexExtent, Owner, RankRequest
from tidings.rank.bulk.rank_table import EPOCHS, MOST_WORTH, RankRows, RankTable
from tidings.rank.bulk.span_pool import SpanPool
from tidings.rank.matches import Matches
from tidings.score import Scorer
from tidings.score.graph import Graph, PreferenceGraph, preference_graph

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
        (sorted((node_of[one], node_of[other])), weight)
        for (one, other), weight in graph.edges.items()
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
