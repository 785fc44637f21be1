"""Conditions ordered by covers (PREF Def. 15): equal ones share a node, edges are immediate covers.

The graph changes by single additions and removals, and is always exactly the transitive reduction.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from tidings.index.papers.cover_graph.conjunctions import Conjunction, ConjunctionIndex
from tidings.index.papers.cover_graph.regions import in_one_order
from tidings.model.conditions.implication import Conjunctions


class OrderedByCover(Protocol):
    """An element of an order: `parents` immediately cover it, and it covers its `children`."""

    parents: list[Any]
    children: list[Any]

    def covers(self, other: Any) -> bool:
        """Return whether this element covers another."""


T = TypeVar("T", bound=OrderedByCover)


def link(element: T, above: Sequence[T], below: Sequence[T]) -> None:
    """Insert an element, given all that strictly cover it and all that it strictly covers."""
    parents = _without(above, (parent for wide in above for parent in wide.parents))
    children = _without(below, (child for narrow in below for child in narrow.children))
    for child in children:
        for parent in parents:
            if parent in child.parents:
                child.parents.remove(parent)
                parent.children.remove(child)
        _join(element, child)
    for parent in parents:
        _join(parent, element)


def unlink(element: OrderedByCover) -> None:
    """Remove an element; its parents and children are joined where no path remains."""
    for child in element.children:
        child.parents.remove(element)
    for parent in element.parents:
        parent.children.remove(element)
        for child in element.children:
            if not any(parent.covers(other) for other in child.parents):
                _join(parent, child)


def _join(parent: OrderedByCover, child: OrderedByCover) -> None:
    parent.children.append(child)
    child.parents.append(parent)


def _without(elements: Sequence[T], excluded: Iterable[T]) -> list[T]:
    removed = set(excluded)
    return [element for element in elements if element not in removed]


@dataclass(eq=False, slots=True)
class CoverNode:
    """A condition: conjunctions none of which covers another, so equivalent conditions are equal.

    `parents` are the conditions that immediately cover it, `children` those that it covers.
    `entries` belong to the owner of the graph.
    """

    conjunctions: tuple[Conjunction, ...]
    entries: dict[str, Any] = field(default_factory=dict)
    parents: list["CoverNode"] = field(default_factory=list)
    children: list["CoverNode"] = field(default_factory=list)

    def covers(self, other: "CoverNode") -> bool:
        """Return whether each conjunction of the other is covered by one of this node."""
        return all(
            any(wide.covers(narrow) for wide in self.conjunctions) for narrow in other.conjunctions
        )


@dataclass(frozen=True)
class PlacedNode:
    """The node of a condition; a new one comes with all nodes above and below it."""

    node: CoverNode
    is_new: bool
    above: list[CoverNode]
    below: list[CoverNode]


class CoverPoset:
    """Conditions ordered by covers; an addition costs as much as the conditions near it."""

    def __init__(self) -> None:
        self._conjunctions = ConjunctionIndex()
        self._nodes: dict[tuple[Conjunction, ...], CoverNode] = {}
        self.roots: dict[CoverNode, None] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[CoverNode]:
        return iter(self._nodes.values())

    @property
    def compared(self) -> int:
        """The number of pairs of conjunctions compared so far."""
        return self._conjunctions.compared

    def add(self, conjunctions: Conjunctions) -> PlacedNode:
        """Return the node of a condition, which is added if it is new."""
        interned = [self._conjunctions.intern(predicates) for predicates in conjunctions]
        widest = in_one_order(_widest(interned))
        existing = self._nodes.get(widest)
        if existing is None:
            node = self._nodes[widest] = CoverNode(widest)
            for conjunction in widest:
                conjunction.nodes.append(node)
        for conjunction in set(interned):
            self._conjunctions.drop(conjunction)
        return PlacedNode(existing, False, [], []) if existing else self._place(node)

    def remove(self, node: CoverNode) -> None:
        """Remove a node; its parents and children are joined where no path remains."""
        del self._nodes[node.conjunctions]
        self.roots.pop(node, None)
        unlink(node)
        self.roots |= dict.fromkeys(child for child in node.children if not child.parents)
        for conjunction in node.conjunctions:
            conjunction.nodes.remove(node)
            self._conjunctions.drop(conjunction)

    def _place(self, node: CoverNode) -> PlacedNode:
        above, below = self._above(node), self._below(node)
        link(node, above, below)
        for child in node.children:
            self.roots.pop(child, None)
        if not node.parents:
            self.roots[node] = None
        return PlacedNode(node, True, above, below)

    def _above(self, node: CoverNode) -> list[CoverNode]:
        """Return the other nodes with a conjunction that covers each one of this node."""
        first, *rest = (
            {other: None for wide in self._conjunctions.covering(narrow) for other in wide.nodes}
            for narrow in node.conjunctions
        )
        return [
            other for other in first if other is not node and all(other in nodes for nodes in rest)
        ]

    def _below(self, node: CoverNode) -> list[CoverNode]:
        """Return the other nodes whose conjunctions are all covered by one of this node."""
        covered = {
            narrow: None
            for wide in node.conjunctions
            for narrow in self._conjunctions.covered(wide)
        }
        candidates = {
            other: None for narrow in covered for other in narrow.nodes if other is not node
        }
        return [
            other
            for other in candidates
            if all(conjunction in covered for conjunction in other.conjunctions)
        ]


def _widest(conjunctions: list[Conjunction]) -> tuple[Conjunction, ...]:
    """Return the conjunctions that no other one covers."""
    distinct = tuple(dict.fromkeys(conjunctions))
    return tuple(
        one
        for one in distinct
        if not any(other is not one and other.covers(one) for other in distinct)
    )
