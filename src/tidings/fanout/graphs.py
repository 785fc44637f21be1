"""The graphs of all subscribers (TKS 4.2.1) in arrays, and the events scored by them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.fanout.ledger import EPOCHS, Layout, Ledger
from tidings.fanout.spans import Spans, room
from tidings.fanout.wanted import Wanted
from tidings.fanout.way import Asked, Owner
from tidings.kernels.exact_sum import PARTS
from tidings.kernels.spaces import EDGE, NODE, SPACE, Scored, Spaces, Work, score_events
from tidings.model import Subscription
from tidings.predicate import Predicate
from tidings.score import Scorer
from tidings.score.graph import Graph, Space, space

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

    def takes(self, scorer: Scorer) -> bool:
        """Take the graph scorer."""
        return isinstance(scorer, Graph)

    def lay(self, owners: Sequence[Owner]) -> None:
        """Write spaces anew, in their places where they fit."""
        for owner in owners:
            if isinstance(owner.scorer, Graph):
                self._lay(owner, owner.scorer)

    def _lay(self, owner: Owner, scorer: Graph) -> None:
        made = space(owner.owned.values())
        number = {part: at for at, part in enumerate(made.preferences)}
        whose = owner.number if len(number) >= scorer.threshold else -1
        self._people = room(self._people, owner.number + 1)
        self._owners = room(self._owners, max(owner.owned, default=-1) + 1, -1)
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

    def rank(self, asked: Asked) -> Wanted:
        """Score the satisfied part of each space that an event touches."""
        held = asked.held
        self._owners = room(self._owners, int(held.numbers.max(initial=-1)) + 1, -1)
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
        return grouped._replace(ranks=out.scores[: out.starts[-1]]).above(0.0)

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


def _edges(made: Space, number: Numbers) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Give the edges, each at the earlier of its nodes, and where those of each node begin."""
    ends = sorted((sorted((number[a], number[b])), weight) for (a, b), weight in made.edges.items())
    found = np.zeros(len(ends), EDGE)
    found["to"] = [to for (_, to), _ in ends]
    found["weight"] = [weight for _, weight in ends]
    spans = np.searchsorted([at for (at, _), _ in ends], np.arange(len(number) + 1))
    return found, spans


def _nodes(made: Space, spans: npt.NDArray[Any]) -> npt.NDArray[Any]:
    found = np.zeros(len(made.preferences), NODE)
    found["preference"] = list(made.preferences.values())
    found["first"], found["size"] = spans[:-1], np.diff(spans)
    return found
