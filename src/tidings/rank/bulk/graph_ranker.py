"""The graphs of all subscribers (TKS 4.2.1) in arrays, and the events scored by them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_file import MOST, Reader, Writer
from tidings.compiled.exact_sum import PARTS
from tidings.compiled.growable import grown
from tidings.index.access.kernels.validate import nodes_valid
from tidings.model.conditions.predicate import Predicate
from tidings.model.records import Subscription
from tidings.rank.bulk.kernels.graph import EDGE, NODE, SPACE, Scored, Spaces, Work, score_events
from tidings.rank.bulk.protocol import Asked, Extent, Owner
from tidings.rank.bulk.rank_table import EPOCHS, MOST_WORTH, Layout, Ledger
from tidings.rank.bulk.span_pool import Spans
from tidings.rank.matches import Matches
from tidings.score import Scorer
from tidings.score.graph import Graph, PreferenceGraph, preference_graph

Numbers = Mapping[Predicate, int]


class SatisfiedGraph:
    """A space for each owner: its nodes, their edges, and which predicates are which nodes."""

    partial = True

    def __init__(self) -> None:
        self._ledger = Ledger()
        self._owners = np.full(64, -1, np.int32)
        self._people = np.zeros(64, SPACE)
        self._parts = Spans(np.int32)
        self._nodes, self._edges = Spans(NODE), Spans(EDGE)
        self._epoch = np.zeros(1, np.int32)

    def write(self, writer: Writer, numbers: int, owners: int) -> None:
        """Add all spaces to a file, without stamps."""
        self._ledger.write(writer, numbers, owners)
        held = np.full(numbers, -1, np.int32)
        held[: len(self._owners)] = self._owners[:numbers]
        writer.array("whose", held)
        people, known = np.zeros(owners, SPACE), self._people[:owners]
        for name in ("share", "adds"):
            people[name][: len(known)] = known[name]
        writer.array("people", people)
        self._parts.write(writer.within("parts"), numbers)
        self._nodes.write(writer.within("nodes"), owners)
        self._edges.write(writer.within("edges"), owners)
        writer.arrays[f"{writer.prefix}nodes.values"]["stamp"] = 0

    @classmethod
    def read(cls, reader: Reader, extent: Extent) -> "SatisfiedGraph":
        """Return the spaces of a file; see `Ledger.read` for what is said of stamps."""
        made = cls()
        made._ledger = Ledger.read(reader, extent.numbers, extent.owners)
        made._owners = reader.array("whose", np.int32, extent.numbers)
        same = np.array_equal(made._owners, made._ledger.owners)
        reader.require(same, "whose", "differ from the owners of the rows")
        made._people = reader.array("people", SPACE, extent.owners)
        reader.finite("people", made._people["share"], 1.0)
        reader.within_bounds("people", made._people["adds"], 2)
        unstamped = not (made._people["stamp"].any() or made._people["place"].any())
        reader.require(unstamped, "people", "are stamped")
        made._read_graphs(reader, extent)
        return made

    def _read_graphs(self, reader: Reader, extent: Extent) -> None:
        """Read nodes and edges, and which predicates are which nodes."""
        self._parts = Spans.read(reader.within("parts"), np.int32, extent.numbers)
        self._nodes = Spans.read(reader.within("nodes"), NODE, extent.owners)
        self._edges = Spans.read(reader.within("edges"), EDGE, extent.owners)
        owned = self._owners >= 0
        fits = extent.most_parts[owned] < self._parts.sizes[owned]
        there = self._parts.firsts[owned] >= 0
        reader.require(fits.all() and there.all(), "parts.sizes", "are smaller than is needed")
        whose = np.repeat(self._owners, self._parts.sizes)
        nodes, sizes = self._parts.values, np.append(self._nodes.sizes, 0)
        right = (nodes >= -1) & ((nodes < sizes[whose]) | (whose < 0))
        reader.require(right.all(), "parts.values", "lead to no node")
        checked = nodes_valid(extent.posed, np.where(owned, self._parts.firsts, -1), nodes)
        reader.require(checked, "parts.values", "lead to no node")
        known = self._owners[owned]
        there = (self._nodes.firsts[known] >= 0) & (self._edges.firsts[known] >= 0)
        reader.require(there.all(), "nodes.firsts", "are missing for some owner")
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

    def takes(self, scorer: Scorer) -> bool:
        """Take the graph scorer."""
        return type(scorer) is Graph

    def lay(self, owners: Sequence[Owner]) -> None:
        """Write spaces anew, in their places where they fit."""
        for owner in owners:
            if isinstance(owner.scorer, Graph):
                self._lay(owner, owner.scorer)

    def _lay(self, owner: Owner, scorer: Graph) -> None:
        made = preference_graph(owner.owned.values())
        number = {part: at for at, part in enumerate(made.preferences)}
        whose = owner.number if len(number) >= scorer.threshold else -1
        self._people = grown(self._people, owner.number + 1)
        self._owners = grown(self._owners, max(owner.owned, default=-1) + 1, -1)
        for each, subscription in owner.owned.items():
            self._owners[each] = whose
            self._parts.put(each, _nodes_of(subscription, number))
        keys = list(owner.owned)
        self._ledger.lay(Layout.without_covers(keys, [whose] * len(keys), [0.0] * len(keys)))
        self._ledger.aggregate(owner.number, "max")
        edges, spans = _edges(made, number)
        self._edges.put(owner.number, edges)
        self._nodes.put(owner.number, _nodes(made, spans))
        self._people["share"][owner.number] = scorer.lambda_
        self._people["adds"][owner.number] = scorer.aggregate == "sum"

    def clear(self, numbers: Sequence[int]) -> None:
        """Forget subscriptions."""
        known = [each for each in numbers if each < len(self._owners)]
        self._owners[known] = -1
        self._parts.drop(known)
        self._ledger.clear(numbers)

    def forget(self, owner: int) -> None:
        """Give back the space of an owner."""
        self._nodes.drop([owner])
        self._edges.drop([owner])

    def rank(self, asked: Asked) -> Matches:
        """Score the satisfied part of each space that an event touches."""
        held = asked.held
        self._owners = grown(self._owners, int(held.numbers.max(initial=-1)) + 1, -1)
        hits, parts = len(held.numbers), len(held.parts)
        work = Work(
            np.empty(2 * parts, np.int32),
            np.empty(hits, np.int32),
            np.empty(parts, np.int32),
            np.empty(PARTS),
        )
        out = Scored(np.zeros(len(held.starts), np.int64), np.empty(hits, np.int32), np.empty(hits))
        score_events(self._spaces(len(held.starts)), held, work, out)
        grouped = self._ledger.rank(held.numbers, held.starts)  # in the same order
        scored = grouped._replace(ranks=out.scores[: out.starts[-1]])
        return scored.only(scored.ranks > 0.0)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        held = (self._ledger, self._owners, self._people, self._parts, self._nodes, self._edges)
        return sum(each.nbytes for each in held)

    def _spaces(self, events: int) -> Spaces:
        nodes = self._nodes.pool(len(self._people))
        if self._epoch[0] > EPOCHS - events:
            self._people["stamp"] = nodes.parts["stamp"] = self._epoch[0] = 0
        parts, edges = self._parts.pool(len(self._owners)), self._edges.pool(len(self._people))
        return Spaces(self._owners, parts, self._people, nodes, edges, self._epoch)


def _nodes_of(subscription: Subscription, number: Numbers) -> npt.NDArray[Any]:
    """Give the node of each predicate, as the groups have them; -1 for one that is not active."""
    parts = [part for group in subscription.groups for part in group]
    return np.array([number.get(part.predicate, -1) for part in parts], np.int32)


def _edges(made: PreferenceGraph, number: Numbers) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Give the edges, each at the earlier of its nodes, and where those of each node begin."""
    ends = sorted((sorted((number[a], number[b])), weight) for (a, b), weight in made.edges.items())
    found = np.zeros(len(ends), EDGE)
    found["to"] = [to for (_, to), _ in ends]
    found["weight"] = [weight for _, weight in ends]
    spans = np.searchsorted([at for (at, _), _ in ends], np.arange(len(number) + 1))
    return found, spans


def _nodes(made: PreferenceGraph, spans: npt.NDArray[Any]) -> npt.NDArray[Any]:
    found = np.zeros(len(made.preferences), NODE)
    found["preference"] = list(made.preferences.values())
    found["first"], found["size"] = spans[:-1], np.diff(spans)
    return found
