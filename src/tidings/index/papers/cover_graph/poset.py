"""Conditions under cover (PREF Def. 15): equal ones share a node, edges are immediate covers.

It changes by single additions and removals, and is always exactly the transitive reduction.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tidings.index.papers.cover_graph.attribute_region import Row, in_one_order
from tidings.index.papers.cover_graph.candidate_pairs import Rows
from tidings.index.papers.cover_graph.transitive_reduction import link, unlink
from tidings.model.conditions.implication import Conjunctions


@dataclass(eq=False, slots=True)
class Node:
    """A condition: conjunctions none of which covers another, so equivalent conditions are equal.

    `parents` are the conditions that immediately cover it, `children` those that it covers.
    `entries` belong to who keeps the graph.
    """

    rows: tuple[Row, ...]
    entries: dict[str, Any] = field(default_factory=dict)
    parents: list["Node"] = field(default_factory=list)
    children: list["Node"] = field(default_factory=list)

    def covers(self, other: "Node") -> bool:
        """Tell whether each conjunction of the other has one of this over it."""
        return all(any(wide.covers(narrow) for wide in self.rows) for narrow in other.rows)


@dataclass(frozen=True)
class Placed:
    """Where a condition was put; a new node comes with all that it covers and is covered by."""

    node: Node
    new: bool
    over: list[Node]
    under: list[Node]


class Poset:
    """Conditions under cover; an addition costs as much as the conditions that it may relate to."""

    def __init__(self) -> None:
        self._rows = Rows()
        self._nodes: dict[tuple[Row, ...], Node] = {}
        self.roots: dict[Node, None] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    @property
    def compared(self) -> int:
        """How many pairs of conjunctions were compared so far."""
        return self._rows.compared

    def add(self, conjunctions: Conjunctions) -> Placed:
        """Give the node of a condition, which is put in if it is new."""
        taken = [self._rows.take(each) for each in conjunctions]
        rows = in_one_order(_widest(taken))
        known = self._nodes.get(rows)
        if known is None:
            node = self._nodes[rows] = Node(rows)
            for row in rows:
                row.nodes.append(node)
        for row in set(taken):
            self._rows.drop(row)
        return Placed(known, False, [], []) if known else self._placed(node)

    def remove(self, node: Node) -> None:
        """Take out a node; what it stood between is joined where nothing else does."""
        del self._nodes[node.rows]
        self.roots.pop(node, None)
        unlink(node)
        self.roots |= dict.fromkeys(each for each in node.children if not each.parents)
        for row in node.rows:
            row.nodes.remove(node)
            self._rows.drop(row)

    def _placed(self, node: Node) -> Placed:
        over, under = self._over(node), self._under(node)
        link(node, over, under)
        for child in node.children:
            self.roots.pop(child, None)
        if not node.parents:
            self.roots[node] = None
        return Placed(node, True, over, under)

    def _over(self, node: Node) -> list[Node]:
        """Give the other nodes with a conjunction over each one of this."""
        first, *more = (
            {node: None for wide in self._rows.over(row) for node in wide.nodes}
            for row in node.rows
        )
        return [each for each in first if each is not node and all(each in rest for rest in more)]

    def _under(self, node: Node) -> list[Node]:
        """Give the other nodes whose conjunctions all have one of this over them."""
        rows = {narrow: None for row in node.rows for narrow in self._rows.under(row)}
        found = {each: None for row in rows for each in row.nodes if each is not node}
        return [each for each in found if all(row in rows for row in each.rows)]


def _widest(rows: list[Row]) -> tuple[Row, ...]:
    """Leave out the conjunctions that another one covers."""
    given = tuple(dict.fromkeys(rows))
    return tuple(
        row for row in given if not any(other is not row and other.covers(row) for other in given)
    )
