"""The modified OpIndex (TKS 5.1.2): attribute -> operator -> sorted operands, then counting.

An event leads to *all* predicates that it satisfies; a conjunction covers it when as many of them
lead back to it as it has.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tidings.index.papers.opindex.operand_lists import OPERANDS, Operands, kind, operand
from tidings.index.protocol import Score, best_found, has_ranges
from tidings.index.scan import weights_that_hold
from tidings.model.conditions.predicate import Predicate
from tidings.model.records import Event, Subscription


@dataclass(eq=False)
class _Conjunction:
    subscription: str
    size: int


@dataclass(eq=False)
class _Node:
    """An interned predicate, and the conjunctions that have it."""

    conjunctions: list[_Conjunction] = field(default_factory=list)


class Op:
    """Finds every satisfied predicate, and counts (TKS Alg. B.1, B.2).

    Insert and delete are O(log n) a predicate to find and O(n) of moved pointers at worst; an event
    costs as much as the predicates that it satisfies have conjunctions.
    """

    def __init__(self, subscriptions: Iterable[Subscription] = ()) -> None:
        self._subscriptions: dict[str, Subscription] = {}
        self._nodes: dict[Predicate, _Node] = {}
        self._lists: dict[str, dict[tuple[str, str], Operands[_Node]]] = {}
        self._posted: dict[str, list[_Conjunction]] = {}
        self._looked = Counter[str]()
        for each in subscriptions:
            self.add(each)

    def add(self, subscription: Subscription) -> None:
        """Add a subscription."""
        self._subscriptions[subscription.id] = subscription
        posted = self._posted[subscription.id] = []
        for parts in map(dict.fromkeys, subscription.conjunctions):
            conjunction = _Conjunction(subscription.id, len(parts))
            posted.append(conjunction)
            for part in parts:
                self._node(part).conjunctions.append(conjunction)

    def remove(self, subscription: str) -> None:
        """Remove a subscription by id."""
        gone = self._subscriptions.pop(subscription)
        posted = self._posted.pop(subscription)
        for conjunction, parts in zip(posted, gone.conjunctions, strict=True):
            for part in dict.fromkeys(parts):
                self._nodes[part].conjunctions.remove(conjunction)
                if not self._nodes[part].conjunctions:
                    self._drop(part)

    def matching(self, event: Event) -> list[Subscription]:
        """Give the subscriptions that cover the event, by id."""
        counts = Counter(each for node in self._satisfied(event) for each in node.conjunctions)
        self._looked["subscriptions"] += len(counts)
        found = {each.subscription for each, count in counts.items() if count == each.size}
        return [self._subscriptions[name] for name in sorted(found)]

    def touching(self, event: Event) -> list[Subscription]:
        """Give the subscriptions of which at least one predicate holds, by id."""
        nodes = self._satisfied(event)
        found = {each.subscription for node in nodes for each in node.conjunctions}
        self._looked["subscriptions"] += len(found)
        return [self._subscriptions[name] for name in sorted(found)]

    def top(self, event: Event, k: int, score: Score | None = None) -> list[tuple[str, float]]:
        """Give the k best by `score`, ties by smaller id."""
        return best_found(self, event, k, score)

    def top_relaxed(self, event: Event, k: int) -> list[tuple[str, float]]:
        """Give the k best by the weights of the predicates that hold, ties by smaller id."""
        return self.top(event, k, weights_that_hold)

    def counters(self) -> dict[str, int]:
        """Give how many predicates and subscriptions were looked at so far."""
        return {name: self._looked[name] for name in ("predicates", "subscriptions")}

    def _satisfied(self, event: Event) -> list[_Node]:
        found = dict.fromkeys(self._holding(event))
        self._looked["predicates"] += len(found)
        return list(found)

    def _holding(self, event: Event) -> Iterator[_Node]:
        """Give the satisfied predicates; those that several values satisfy come several times."""
        if has_ranges(event):
            yield from (node for part, node in self._nodes.items() if part.holds(event.tokens))
            return
        for attribute, values in event.tokens.items():
            for (family, _), operands in self._lists.get(attribute, {}).items():
                for of, key in values:
                    if of == family:
                        yield from operands.holding(key)

    def _node(self, part: Predicate) -> _Node:
        if part not in self._nodes:
            node = self._nodes[part] = _Node()
            lists = self._lists.setdefault(part.attribute, {})
            slot = (part.family, kind(part))
            if slot not in lists:
                lists[slot] = OPERANDS[slot[1]]()
            lists[slot].add(operand(part), node)
        return self._nodes[part]

    def _drop(self, part: Predicate) -> None:
        """Give back what an unused predicate took."""
        del self._nodes[part]
        lists, slot = self._lists[part.attribute], (part.family, kind(part))
        lists[slot].remove(operand(part))
        if not len(lists[slot]):
            del lists[slot]
        if not lists:
            del self._lists[part.attribute]
