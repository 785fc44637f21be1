"""The preference graph (TKS 4.2.1) at fan-out: a score for each subscriber of whom something holds.

Only what holds is touched: the predicates that an index found are the satisfied nodes, and an edge
is looked up for each pair of them.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.exact_sum import sum_add, sum_total
from tidings.compiled.jit import inner
from tidings.compiled.rounding import rounded
from tidings.rank.bulk.kernels.relaxed import Held, Pool

SPACE: Final = np.dtype(
    [
        ("share", np.float64),  # lambda, what the edges count for
        ("adds", np.int32),  # 1 to add up, 0 for means
        ("stamp", np.int32),
        ("place", np.int32),
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


class Spaces(NamedTuple):
    """All graphs: predicates of subscriptions are nodes, numbered within their owner's space."""

    owners: Int32s  # of subscriptions, or -1
    parts: Pool  # of each predicate of a subscription, its node
    people: npt.NDArray[Any]
    nodes: Pool  # by owner
    edges: Pool  # by owner; of a node, in order of where they lead
    epoch: Int32s


class Work(NamedTuple):
    """Where one event's satisfied nodes are collected, owner by owner."""

    held: Int32s  # two numbers each: the place of the owner, the node
    counts: Int32s  # of nodes, by place
    nodes: Int32s
    partials: Float64s


class Scored(NamedTuple):
    """For each event, from its start to the next: who wants it, and how much."""

    starts: Int64s
    owners: Int32s
    scores: Float64s  # 0 for no match


@inner
def collect(spaces: Spaces, held: Held, event: int, work: Work, out: Scored) -> int:
    """Note every satisfied node once, and its owner; give how many nodes there are."""
    start = size = out.starts[event]
    epoch = spaces.epoch[0] = spaces.epoch[0] + 1
    found = 0
    for at in range(held.starts[event], held.starts[event + 1]):
        owner = spaces.owners[held.numbers[at]]
        if owner < 0:
            continue
        person, nodes = spaces.people[owner], spaces.nodes.firsts[owner]
        if person["stamp"] != epoch:
            person["stamp"], person["place"] = epoch, size
            out.owners[size] = owner
            work.counts[size - start] = 0
            size += 1
        first, place = spaces.parts.firsts[held.numbers[at]], person["place"] - start
        for part in range(held.part_starts[at], held.part_starts[at + 1]):
            local = spaces.parts.parts[first + held.parts[part]]
            node = spaces.nodes.parts[nodes + local]
            if node["stamp"] != epoch:
                node["stamp"] = epoch
                work.held[2 * found], work.held[2 * found + 1] = place, local
                work.counts[place] += 1
                found += 1
    out.starts[event + 1] = size
    return found


@inner
def group(work: Work, found: int, owners: int) -> None:
    """Put the nodes owner by owner; counts become the ends of each owner's nodes."""
    before = 0
    for place in range(owners):
        before += work.counts[place]
        work.counts[place] = before
    for at in range(found - 1, -1, -1):
        place = work.held[2 * at]
        work.counts[place] -= 1
        work.nodes[work.counts[place]] = work.held[2 * at + 1]
    for place in range(owners - 1):
        work.counts[place] = work.counts[place + 1]
    if owners:
        work.counts[owners - 1] = found


@inner
def first_edge(edges: npt.NDArray[Any], first: int, last: int, to: int) -> int:
    """Give the first edge that does not end before a node, of some in order of their ends."""
    while first < last:
        middle = (first + last) >> 1
        if edges[middle]["to"] < to:
            first = middle + 1
        else:
            last = middle
    return first


@inner
def linked(spaces: Spaces, work: Work, first: int, last: int, owner: int) -> tuple[float, int]:
    """Add up the satisfied edges: for each pair of satisfied nodes up to two, one each way."""
    nodes, edges = spaces.nodes.firsts[owner], spaces.edges.firsts[owner]
    count, size = 0, 0
    for at in range(first, last):
        node = spaces.nodes.parts[nodes + work.nodes[at]]
        end = edges + node["first"] + node["size"]
        for other in range(first, last):
            to = work.nodes[other]
            if to > work.nodes[at] and node["size"] > 0:
                edge = first_edge(spaces.edges.parts, edges + node["first"], end, to)
                while edge < end and spaces.edges.parts[edge]["to"] == to:
                    size = sum_add(work.partials, size, spaces.edges.parts[edge]["weight"])
                    count += 1
                    edge += 1
    return sum_total(work.partials, size), count


@inner
def liked(spaces: Spaces, work: Work, first: int, last: int, owner: int) -> float:
    """Add up the preferences of the satisfied nodes."""
    nodes, size = spaces.nodes.firsts[owner], 0
    for at in range(first, last):
        preference = spaces.nodes.parts[nodes + work.nodes[at]]["preference"]
        size = sum_add(work.partials, size, preference)
    return sum_total(work.partials, size)


@inner
def relevance(spaces: Spaces, work: Work, first: int, last: int, owner: int) -> float:
    """Give lambda * F(satisfied edges) + (1 - lambda) * F(satisfied nodes) (TKS Def. 4.2.3)."""
    person = spaces.people[owner]
    heavy, count = linked(spaces, work, first, last, owner)
    liking = liked(spaces, work, first, last, owner)
    if person["adds"] == 0:
        heavy = heavy / count if count > 0 else 0.0
        liking = liking / (last - first)
    return rounded(person["share"] * heavy + (1 - person["share"]) * liking)


@inner
def score_events(spaces: Spaces, held: Held, work: Work, out: Scored) -> None:
    """Score every event for each owner of a space that it touches."""
    for event in range(len(held.starts) - 1):
        found = collect(spaces, held, event, work, out)
        start, owners = out.starts[event], out.starts[event + 1] - out.starts[event]
        group(work, found, owners)
        first = 0
        for place in range(owners):
            last = work.counts[place]
            owner = out.owners[start + place]
            out.scores[start + place] = relevance(spaces, work, first, last, owner)
            first = last
