"""The graph by its definition (PREF Def. 15): every condition is compared with every other."""

from collections.abc import Mapping

from tidings.model.conditions.implication import Conjunctions, covers, strictly_covers

Names = frozenset[str]
"""The conditions that share a node."""


def nodes_by_scan(conditions: Mapping[str, Conjunctions]) -> set[Names]:
    """Put together the conditions that cover each other."""
    return {
        frozenset(
            other
            for other, theirs in conditions.items()
            if covers(mine, theirs) and covers(theirs, mine)
        )
        for mine in conditions.values()
    }


def edges_by_scan(conditions: Mapping[str, Conjunctions]) -> set[tuple[Names, Names]]:
    """Give the pairs of which one covers the other and nothing stands between."""
    nodes = {names: conditions[min(names)] for names in nodes_by_scan(conditions)}
    above = {
        (wide, narrow)
        for wide, mine in nodes.items()
        for narrow, theirs in nodes.items()
        if strictly_covers(mine, theirs)
    }
    return {
        (wide, narrow)
        for wide, narrow in above
        if not any((wide, between) in above and (between, narrow) in above for between in nodes)
    }
