"""Conjunctions are found by covering, without comparing all pairs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.papers.cover_graph.drawn import conditions

from tidings.index.papers.cover_graph.conjunctions import ConjunctionIndex
from tidings.model.conditions.implication import covers
from tidings.model.conditions.parser import parse
from tidings.model.conditions.predicate import Condition


@given(st.lists(conditions(), min_size=1, max_size=10), st.sets(st.integers(0, 9)))
def test_covering_and_covered_conjunctions_are_those_of_the_definition(
    drawn: list[Condition], removed: set[int]
) -> None:
    rows = ConjunctionIndex()
    interned = dict.fromkeys(rows.intern(one.conjunctions[0]) for one in drawn)
    left = [row for number, row in enumerate(interned) if number not in removed]
    for number, row in enumerate(interned):
        if number in removed:
            rows.drop(row)
    assert len(rows) == len(left)
    written = {row: (tuple(region.predicate for region in row.regions),) for row in left}
    for row in left:
        covering, covered = rows.covering(row), rows.covered(row)
        assert set(covering) == {one for one in left if covers(written[one], written[row])}
        assert set(covered) == {one for one in left if covers(written[row], written[one])}
        assert len(covering) == len(set(covering))
        assert len(covered) == len(set(covered))


def test_a_conjunction_is_stored_once_and_as_long_as_a_node_has_it() -> None:
    rows = ConjunctionIndex()
    row = rows.intern(parse("x > 1 and y = 'a'").conjunctions[0])
    assert rows.intern(parse("y in ('a') and x > 1").conjunctions[0]) is row
    row.nodes.append("a node")
    rows.drop(row)
    assert len(rows) == 1
    row.nodes.clear()
    rows.drop(row)
    assert len(rows) == 0


@pytest.mark.parametrize(("size", "most"), [(50, 60), (500, 600)])
def test_conjunctions_without_a_common_value_are_not_compared(size: int, most: int) -> None:
    """Many kinds with one common attribute: a conjunction is compared with itself only."""
    rows = ConjunctionIndex()
    interned = [
        rows.intern(parse(f"price < {number} and kind = 'k{number}'").conjunctions[0])
        for number in range(size)
    ]
    assert [rows.covering(row) for row in interned] == [rows.covered(row) for row in interned]
    assert rows.compared <= 2 * most
