"""The modified OpIndex (TKS 5.1.2): attribute -> operator -> sorted operands, then counting.

An event leads to *all* predicates that it satisfies. A conjunction covers the event if as many of
them lead back to it as it has. With 100,000 subscriptions an event takes 23 ms, against 0.22 ms of
`access`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tidings.index.operand_lists import OPERANDS, OperandList, list_kind, list_operand
from tidings.index.protocol import Score, best_found, has_ranges, relaxed_score
from tidings.model.conditions.predicate import PRESENCE, Predicate
from tidings.model.records import Event, Subscription


@dataclass(eq=False)
class _CountedConjunction:
    subscription: str
    size: int


@dataclass(eq=False)
class _InternedPredicate:
    """The conjunctions that have a predicate."""

    conjunctions: list[_CountedConjunction] = field(default_factory=list)


class OpIndex:
    """Finds every satisfied predicate, and counts (TKS Alg. B.1, B.2).

    Inserts and deletes take O(log n) per predicate to search and O(n) moved pointers at worst; an
    event costs the number of conjunctions of the predicates that it satisfies.
    """

    def __init__(self, subscriptions: Iterable[Subscription] = ()) -> None:
        self._subscriptions: dict[str, Subscription] = {}
        self._predicates: dict[Predicate, _InternedPredicate] = {}
        self._lists: dict[str, dict[tuple[str, str], OperandList[_InternedPredicate]]] = {}
        self._presence: dict[Predicate, _InternedPredicate] = {}  # without operands to sort
        self._conjunctions: dict[str, list[_CountedConjunction]] = {}
        self._visits = Counter[str]()
        for subscription in subscriptions:
            self.add(subscription)

    def add(self, subscription: Subscription) -> None:
        self._subscriptions[subscription.id] = subscription
        counted = self._conjunctions[subscription.id] = []
        for predicates in map(dict.fromkeys, subscription.conjunctions):
            conjunction = _CountedConjunction(subscription.id, len(predicates))
            counted.append(conjunction)
            for predicate in predicates:
                self._interned(predicate).conjunctions.append(conjunction)

    def remove(self, subscription: str) -> None:
        removed = self._subscriptions.pop(subscription)
        counted = self._conjunctions.pop(subscription)
        for conjunction, predicates in zip(counted, removed.conjunctions, strict=True):
            for predicate in dict.fromkeys(predicates):
                self._predicates[predicate].conjunctions.remove(conjunction)
                if not self._predicates[predicate].conjunctions:
                    self._drop(predicate)

    def matching(self, event: Event) -> list[Subscription]:
        counts = Counter(
            conjunction
            for predicate in self._satisfied(event)
            for conjunction in predicate.conjunctions
        )
        self._visits["subscriptions"] += len(counts)
        complete = {
            conjunction.subscription
            for conjunction, count in counts.items()
            if count == conjunction.size
        }
        return [self._subscriptions[id] for id in sorted(complete)]

    def touching(self, event: Event) -> list[Subscription]:
        touched = {
            conjunction.subscription
            for predicate in self._satisfied(event)
            for conjunction in predicate.conjunctions
        }
        self._visits["subscriptions"] += len(touched)
        return [self._subscriptions[id] for id in sorted(touched)]

    def top(self, event: Event, k: int, score: Score | None = None) -> list[tuple[str, float]]:
        return best_found(self, event, k, score)

    def top_relaxed(self, event: Event, k: int) -> list[tuple[str, float]]:
        return self.top(event, k, relaxed_score)

    def counters(self) -> dict[str, int]:
        """Return how many predicates and subscriptions were visited so far."""
        return {name: self._visits[name] for name in ("predicates", "subscriptions")}

    def _satisfied(self, event: Event) -> list[_InternedPredicate]:
        satisfied = dict.fromkeys(self._holding(event))
        self._visits["predicates"] += len(satisfied)
        return list(satisfied)

    def _holding(self, event: Event) -> Iterator[_InternedPredicate]:
        """Yield the satisfied predicates, once for each value that satisfies them."""
        if has_ranges(event):
            for predicate, interned in self._predicates.items():
                if predicate.holds(event.tokens):
                    yield interned
            return
        for predicate, interned in self._presence.items():
            if predicate.holds(event.tokens):
                yield interned
        for attribute, values in event.tokens.items():
            for (family, _), operands in self._lists.get(attribute, {}).items():
                for value_family, key in values:
                    if value_family == family:
                        yield from operands.holding(key)

    def _interned(self, predicate: Predicate) -> _InternedPredicate:
        if predicate not in self._predicates:
            interned = self._predicates[predicate] = _InternedPredicate()
            if predicate.operator in PRESENCE:
                self._presence[predicate] = interned
                return interned
            lists = self._lists.setdefault(predicate.attribute, {})
            slot = (predicate.family, list_kind(predicate))
            if slot not in lists:
                lists[slot] = OPERANDS[slot[1]]()
            lists[slot].add(list_operand(predicate), interned)
        return self._predicates[predicate]

    def _drop(self, predicate: Predicate) -> None:
        """Remove an unused predicate, and its list if that is empty."""
        del self._predicates[predicate]
        if self._presence.pop(predicate, None):
            return
        lists, slot = self._lists[predicate.attribute], (predicate.family, list_kind(predicate))
        lists[slot].remove(list_operand(predicate))
        if not len(lists[slot]):
            del lists[slot]
        if not lists:
            del self._lists[predicate.attribute]
