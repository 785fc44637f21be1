"""Regions are found by containment; conjunctions without comparing all pairs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.papers.cover_graph.drawn import conditions, parts

from tidings.index.papers.cover_graph.conjunctions import ConjunctionIndex
from tidings.index.papers.cover_graph.regions import Region, RegionIndex, narrowest, region_of
from tidings.model.conditions.implication import covers, implies
from tidings.model.conditions.parser import parse
from tidings.model.conditions.predicate import Condition, Predicate


@given(parts(), parts())
def test_a_region_stands_for_all_predicates_that_imply_each_other(
    one: Predicate, other: Predicate
) -> None:
    first, second = region_of(one), region_of(other)
    same = implies(one, other) and implies(other, one)
    assert (first.key == second.key) == same
    if first.slot == second.slot:
        assert first.within(second) == implies(one, other)


@given(parts())
def test_a_witness_satisfies_the_predicate_and_keys_are_all_its_values(part: Predicate) -> None:
    region = region_of(part)
    if region.spans != ():
        assert part.holds({part.attribute: frozenset([(part.family, region.witness())])})
    keys = region.keys()
    if keys is not None and region.spans:
        assert region.single == (len(keys) == 1)
        assert part.operator not in ("prefix", "suffix", "substring")


def distinct(drawn: list[Predicate]) -> dict[object, Region]:
    return {region.key: region for region in map(region_of, drawn)}


@given(st.lists(parts(), min_size=1, max_size=10), parts(), st.sets(st.integers(0, 9)))
def test_an_index_finds_containing_and_contained_regions_after_removals(
    drawn: list[Predicate], asked: Predicate, removed: set[int]
) -> None:
    wanted = region_of(asked)
    regions = [region for region in distinct(drawn).values() if region.slot == wanted.slot]
    index = RegionIndex()
    for region in regions:
        index.add(region)
    for number in sorted(removed, reverse=True):
        if number < len(regions):
            index.remove(regions.pop(number))
    containing, contained = index.containing(wanted), index.contained(wanted)
    assert len(index) == len(regions)
    assert set(index) == set(regions)
    assert set(containing) == {one for one in regions if implies(asked, one.predicate)}
    assert set(contained) == {one for one in regions if implies(one.predicate, asked)}
    assert len(containing) == len(set(containing))
    assert len(contained) == len(set(contained))


@given(st.lists(parts(), min_size=1, max_size=4))
def test_the_narrowest_regions_imply_all_and_none_another(drawn: list[Predicate]) -> None:
    kept = narrowest(distinct(drawn).values())
    assert all(any(implies(region.predicate, part) for region in kept) for part in drawn)
    assert not any(
        one is not other and implies(one.predicate, other.predicate)
        for one in kept
        for other in kept
    )


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
