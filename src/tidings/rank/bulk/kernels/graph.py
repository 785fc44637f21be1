"""The preference graph (TKS 4.2.1) in bulk: one score per subscriber that an event touches.

TKS Def. 4.2.3: lambda * F(weights of satisfied edges) + (1 - lambda) * F(preferences of satisfied
nodes), where F is the mean or the sum, and an edge is satisfied if both its nodes are.

    parts    by subscription: the node of each predicate       | 0 2 | 1 | 0 1 3 | ...
    nodes    by subscriber                                     | 0 1 2 3 | 0 1 | ...
    edges    by subscriber, in order of (from, to), from < to  | 0-1 0-3 2-3 | 0-1 | ...

The hits of an index are exactly the satisfied nodes, so only these are visited, and an edge is
looked up for each pair of them.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int32s, Int64s
from tidings.compiled.exact_sum import sum_add, sum_total
from tidings.compiled.jit import inner
from tidings.compiled.rounding import rounded
from tidings.index.access.kernels.partial_match import Hits
from tidings.rank.bulk.kernels.relaxed import Spans

GRAPH: Final = np.dtype(
    [
        ("share", np.float64),  # lambda, the share of the edges
        ("adds", np.int32),  # 1 to add up, 0 for means
        ("stamp", np.int32),  # the last epoch in which one of its nodes held
        ("place", np.int32),  # its place in the output of that epoch
    ],
    align=True,
)
NODE: Final = np.dtype(
    [
        ("preference", np.float64),
        ("stamp", np.int32),  # the last epoch in which it held
        ("first", np.int32),  # of its edges to later nodes
        ("size", np.int32),
    ],
    align=True,
)
EDGE: Final = np.dtype([("weight", np.float64), ("to", np.int32)], align=True)


class Graphs(NamedTuple):
    """The graphs of all subscribers; nodes are numbered within a graph."""

    owners: Int32s  # by subscription: its subscriber, or -1
    parts: Spans  # by subscription: the node of each predicate
    graphs: AnyArray  # by subscriber
    nodes: Spans  # by subscriber
    edges: Spans  # by subscriber
    epoch: Int32s


class GraphScratch(NamedTuple):
    """The satisfied nodes of one event, to be grouped by subscriber."""

    held: Int32s  # two numbers each: the place of the subscriber, the node
    counts: Int32s  # by place: how many nodes; then where they end
    nodes: Int32s  # the nodes, place by place
    partials: Float64s


class GraphScores(NamedTuple):
    """Columns to fill: for each event, from its start to the next, subscribers and scores."""

    starts: Int64s
    subscribers: Int32s
    scores: Float64s  # 0 for no match


@inner
def collect_nodes(
    graphs: Graphs, hits: Hits, event: int, scratch: GraphScratch, out: GraphScores
) -> int:
    """Collect each satisfied node once, and its subscriber; return how many nodes there are."""
    start = size = out.starts[event]
    epoch = graphs.epoch[0] = graphs.epoch[0] + 1
    count = 0
    for hit in range(hits.starts[event], hits.starts[event + 1]):
        owner = graphs.owners[hits.numbers[hit]]
        if owner < 0:
            continue
        graph, nodes = graphs.graphs[owner], graphs.nodes.firsts[owner]
        if graph["stamp"] != epoch:
            graph["stamp"], graph["place"] = epoch, size
            out.subscribers[size] = owner
            scratch.counts[size - start] = 0
            size += 1
        first, place = graphs.parts.firsts[hits.numbers[hit]], graph["place"] - start
        for position in range(hits.part_starts[hit], hits.part_starts[hit + 1]):
            local = graphs.parts.values[first + hits.parts[position]]
            node = graphs.nodes.values[nodes + local]
            if node["stamp"] != epoch:
                node["stamp"] = epoch
                scratch.held[2 * count], scratch.held[2 * count + 1] = place, local
                scratch.counts[place] += 1
                count += 1
    out.starts[event + 1] = size
    return count


@inner
def group_nodes(scratch: GraphScratch, count: int, subscribers: int) -> None:
    """Sort the nodes by subscriber (a counting sort); `counts` become the ends of their nodes."""
    before = 0
    for place in range(subscribers):
        before += scratch.counts[place]
        scratch.counts[place] = before
    for position in range(count - 1, -1, -1):
        place = scratch.held[2 * position]
        scratch.counts[place] -= 1
        scratch.nodes[scratch.counts[place]] = scratch.held[2 * position + 1]
    for place in range(subscribers - 1):
        scratch.counts[place] = scratch.counts[place + 1]
    if subscribers:
        scratch.counts[subscribers - 1] = count


@inner
def first_edge(edges: AnyArray, first: int, last: int, to: int) -> int:
    """Return the first edge that does not end before a node, by binary search."""
    while first < last:
        middle = (first + last) >> 1
        if edges[middle]["to"] < to:
            first = middle + 1
        else:
            last = middle
    return first


@inner
def edge_sum(
    graphs: Graphs, scratch: GraphScratch, first: int, last: int, owner: int
) -> tuple[float, int]:
    """Return the sum of the satisfied edges and their number; a pair may have one each way."""
    nodes, edges = graphs.nodes.firsts[owner], graphs.edges.firsts[owner]
    count, size = 0, 0
    for position in range(first, last):
        node = graphs.nodes.values[nodes + scratch.nodes[position]]
        end = edges + node["first"] + node["size"]
        for other in range(first, last):
            to = scratch.nodes[other]
            if to > scratch.nodes[position] and node["size"] > 0:
                edge = first_edge(graphs.edges.values, edges + node["first"], end, to)
                while edge < end and graphs.edges.values[edge]["to"] == to:
                    size = sum_add(scratch.partials, size, graphs.edges.values[edge]["weight"])
                    count += 1
                    edge += 1
    return sum_total(scratch.partials, size), count


@inner
def node_sum(graphs: Graphs, scratch: GraphScratch, first: int, last: int, owner: int) -> float:
    """Return the sum of the preferences of the satisfied nodes."""
    nodes, size = graphs.nodes.firsts[owner], 0
    for position in range(first, last):
        preference = graphs.nodes.values[nodes + scratch.nodes[position]]["preference"]
        size = sum_add(scratch.partials, size, preference)
    return sum_total(scratch.partials, size)


@inner
def graph_score(graphs: Graphs, scratch: GraphScratch, first: int, last: int, owner: int) -> float:
    """Return the score of one subscriber, whose satisfied nodes are from first to last."""
    graph = graphs.graphs[owner]
    edges, count = edge_sum(graphs, scratch, first, last, owner)
    nodes = node_sum(graphs, scratch, first, last, owner)
    if graph["adds"] == 0:
        edges = edges / count if count > 0 else 0.0
        nodes = nodes / (last - first)
    return rounded(graph["share"] * edges + (1 - graph["share"]) * nodes)


@inner
def score_events(graphs: Graphs, hits: Hits, scratch: GraphScratch, out: GraphScores) -> None:
    """Score every event for each subscriber whose graph it touches."""
    for event in range(len(hits.starts) - 1):
        count = collect_nodes(graphs, hits, event, scratch, out)
        start, subscribers = out.starts[event], out.starts[event + 1] - out.starts[event]
        group_nodes(scratch, count, subscribers)
        first = 0
        for place in range(subscribers):
            last = scratch.counts[place]
            owner = out.subscribers[start + place]
            out.scores[start + place] = graph_score(graphs, scratch, first, last, owner)
            first = last
