"""Kernels that rank in bulk: by the most specific subscriptions, by weights, and by graphs."""

from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int32s, Int64s
from tidings.compiled.exact_sum import sum_add, sum_total
from tidings.compiled.jit import inner
from tidings.compiled.rounding import rounded
from tidings.index.access.kernels.partial_match import Hits

# Ranks in bulk: from the subscriptions that match an event to one rank per subscriber.
#
# PREF Def. 5: the rank is F over the prefranks of the *most specific* matching subscriptions, those
# that strictly cover no other matching one. F is max, mean, min or sum.
#
#     subscriptions     | worth owner stamp first size | ...       one record of 32 bytes per number
#     covered           | numbers that 0 covers | that 1 covers | ...
#     subscribers       | stamp place aggregate | ...
#
# An event reaches thousands of subscriptions in random order, so all that is known of one lies in
# half a cache line. Stamps of earlier epochs mean nothing, so nothing is cleared between events.


SUBSCRIPTION: Final = np.dtype(
    [
        ("worth", np.float64),  # the prefrank, weighted, or the own score
        ("owner", np.int32),  # a subscriber's number, or -1
        ("stamp", np.int32),  # the last epoch in which it matched
        ("first", np.int32),  # of the subscriptions that it strictly covers
        ("size", np.int32),
    ],
    align=True,
)
SUBSCRIBER: Final = np.dtype(
    [("stamp", np.int32), ("place", np.int32), ("aggregate", np.int32)], align=True
)
MAX, MEAN, MIN, SUM = range(4)


class RankArrays(NamedTuple):
    """Records of subscriptions and subscribers, by their numbers."""

    subscriptions: AnyArray
    covered: Int32s  # by subscription: the others of its owner that it strictly covers
    subscribers: AnyArray
    epoch: Int32s


class RankOutput(NamedTuple):
    """Columns to fill, one entry per match; the matches of an event are adjacent."""

    starts: Int64s
    subscribers: Int32s
    ranks: Float64s
    errors: Float64s  # of the sums so far
    specific: Int32s  # how many most specific subscriptions counted
    counts: Int32s  # how many subscriptions matched
    matched: Int32s  # their numbers, subscriber by subscriber


@inner
def stamp_subscriptions(arrays: RankArrays, hits: Hits, event: int) -> int:
    """Start a new epoch and stamp the subscriptions that match in it; return the epoch."""
    epoch = arrays.epoch[0] + 1
    arrays.epoch[0] = epoch
    for hit in range(hits.starts[event], hits.starts[event + 1]):
        arrays.subscriptions[hits.numbers[hit]]["stamp"] = epoch
    return int(epoch)


@inner
def most_specific(arrays: RankArrays, subscription: Any, epoch: int) -> bool:
    """Return whether a subscription strictly covers no other one that matches (PREF Def. 5)."""
    first = subscription["first"]
    for position in range(first, first + subscription["size"]):
        if arrays.subscriptions[arrays.covered[position]]["stamp"] == epoch:
            return False
    return True


@inner
def aggregate_worth(out: RankOutput, place: int, aggregate: int, worth: float) -> None:
    """Add the worth of one more most specific subscription; sums carry their errors (Neumaier)."""
    before = out.ranks[place]
    if out.specific[place] == 0:
        out.ranks[place] = worth
    elif aggregate == MAX:
        out.ranks[place] = max(before, worth)
    elif aggregate == MIN:
        out.ranks[place] = min(before, worth)
    else:
        total = before + worth
        larger, smaller = (before, worth) if before >= worth else (worth, before)
        out.errors[place] += (larger - total) + smaller
        out.ranks[place] = total
    out.specific[place] += 1


@inner
def finish_rank(out: RankOutput, place: int, aggregate: int) -> None:
    """Turn a sum into the rank."""
    if aggregate == MEAN:
        out.ranks[place] = rounded((out.ranks[place] + out.errors[place]) / out.specific[place])
    elif aggregate == SUM:
        out.ranks[place] = rounded(out.ranks[place] + out.errors[place])


@inner
def place_of(arrays: RankArrays, owner: int, epoch: int, out: RankOutput, size: int) -> int:
    """Return the place of a subscriber in this epoch, which is a new one at `size` if needed."""
    subscriber = arrays.subscribers[owner]
    if subscriber["stamp"] == epoch:
        return int(subscriber["place"])
    subscriber["stamp"], subscriber["place"] = epoch, size
    out.subscribers[size] = owner
    out.errors[size] = 0.0
    out.specific[size] = 0
    out.counts[size] = 0
    return size


@inner
def rank_event(
    arrays: RankArrays, hits: Hits, worths: Float64s, event: int, out: RankOutput
) -> None:
    """Rank one event for each owner of its hits, in order of their first hits.

    Two passes: all hits must be stamped before one is known to be most specific.
    """
    size = start = out.starts[event]
    epoch = stamp_subscriptions(arrays, hits, event)
    for hit in range(hits.starts[event], hits.starts[event + 1]):
        subscription = arrays.subscriptions[hits.numbers[hit]]
        owner = subscription["owner"]
        if owner < 0:
            continue
        place = place_of(arrays, owner, epoch, out, size)
        size = max(size, place + 1)
        out.counts[place] += 1
        if most_specific(arrays, subscription, epoch):
            worth = worths[hit] if len(worths) > 0 else subscription["worth"]
            aggregate_worth(out, place, arrays.subscribers[owner]["aggregate"], worth)
    for place in range(start, size):
        finish_rank(out, place, arrays.subscribers[out.subscribers[place]]["aggregate"])
    out.starts[event + 1] = size


@inner
def group_hits(arrays: RankArrays, hits: Hits, event: int, out: RankOutput, written: int) -> int:
    """Write the hits of one event subscriber by subscriber, from `written` on; return the end."""
    for place in range(out.starts[event], out.starts[event + 1]):
        arrays.subscribers[out.subscribers[place]]["place"] = written
        written += out.counts[place]
    for hit in range(hits.starts[event], hits.starts[event + 1]):
        owner = arrays.subscriptions[hits.numbers[hit]]["owner"]
        if owner >= 0:
            place = arrays.subscribers[owner]["place"]
            out.matched[place] = hits.numbers[hit]
            arrays.subscribers[owner]["place"] = place + 1
    return written


@inner
def rank_events(arrays: RankArrays, hits: Hits, worths: Float64s, out: RankOutput) -> None:
    """Rank a batch of events, each for the owners of its hits.

    `worths` has the worth of each hit; if it is empty, the records have them.
    """
    written = 0
    for event in range(len(hits.starts) - 1):
        rank_event(arrays, hits, worths, event, out)
        written = group_hits(arrays, hits, event, out, written)


# Relaxed matching (RPS) in bulk: the weight of the predicates that hold, per subscription.
#
# A subscription is worth its heaviest group: the sum of weight * probability over the predicates of
# the group that hold, rounded to 12 decimals.

# 16 bytes: four parts a cache line.
PART: Final = np.dtype(
    [("weight", np.float64), ("group", np.int32), ("attribute", np.int32)], align=True
)


class Spans(NamedTuple):
    """A span of values per number: it starts at firsts[number], or is absent (-1)."""

    firsts: Int64s
    values: AnyArray


@inner
def group_weight(
    spans: Spans, hits: Hits, probabilities: Float64s, hit: int, group: int, sums: Float64s
) -> float:
    """Return the weight of the predicates of one group that hold."""
    first, size = spans.firsts[hits.numbers[hit]], 0
    for position in range(hits.part_starts[hit], hits.part_starts[hit + 1]):
        part = spans.values[first + hits.parts[position]]
        if part["group"] == group:
            certain = len(probabilities) == 0
            weight = part["weight"] if certain else part["weight"] * probabilities[position]
            size = sum_add(sums, size, weight)
    return rounded(sum_total(sums, size))


@inner
def weigh_hits(
    spans: Spans, hits: Hits, probabilities: Float64s, sums: Float64s, out: Float64s
) -> None:
    """Write the weight of each hit: that of its heaviest group.

    `probabilities` are those of the parts that hold; empty if all are 1. Parts that hold come
    mostly group by group; a group that comes again is weighed again, with the same result.
    """
    for hit in range(len(hits.numbers)):
        out[hit] = 0.0
        first, last = spans.firsts[hits.numbers[hit]], -1
        if first < 0:
            continue
        for position in range(hits.part_starts[hit], hits.part_starts[hit + 1]):
            group = spans.values[first + hits.parts[position]]["group"]
            if group != last:
                out[hit] = max(out[hit], group_weight(spans, hits, probabilities, hit, group, sums))
                last = group


# The preference graph (TKS 4.2.1) in bulk: one score per subscriber that an event touches.
#
# TKS Def. 4.2.3: lambda * F(weights of satisfied edges) + (1 - lambda) * F(preferences of satisfied
# nodes), where F is the mean or the sum, and an edge is satisfied if both its nodes are.
#
#     parts    by subscription: the node of each predicate       | 0 2 | 1 | 0 1 3 | ...
#     nodes    by subscriber                                     | 0 1 2 3 | 0 1 | ...
#     edges    by subscriber, in order of (from, to), from < to  | 0-1 0-3 2-3 | 0-1 | ...
#
# The hits of an index are exactly the satisfied nodes, so only these are visited, and an edge is
# looked up for each pair of them.

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
