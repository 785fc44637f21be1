"""The cover graph by its definition (PREF Def. 15): all pairs of conditions are compared."""

from collections.abc import Mapping

from tidings.model.conditions.implication import Conjunctions, covers, strictly_covers

Names = frozenset[str]
"""The conditions that share a node."""


def nodes_by_scan(conditions: Mapping[str, Conjunctions]) -> set[Names]:
    """Return the sets of conditions that cover each other."""
    return {
        frozenset(
            other
            for other, theirs in conditions.items()
            if covers(condition, theirs) and covers(theirs, condition)
        )
        for condition in conditions.values()
    }


def edges_by_scan(conditions: Mapping[str, Conjunctions]) -> set[tuple[Names, Names]]:
    """Return the pairs of which one covers the other, with no condition between them."""
    nodes = {names: conditions[min(names)] for names in nodes_by_scan(conditions)}
    above = {
        (wide, narrow)
        for wide, upper in nodes.items()
        for narrow, lower in nodes.items()
        if strictly_covers(upper, lower)
    }
    return {
        (wide, narrow)
        for wide, narrow in above
        if not any((wide, between) in above and (between, narrow) in above for between in nodes)
    }
