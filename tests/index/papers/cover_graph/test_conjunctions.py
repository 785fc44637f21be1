"""Regions are found by what they contain; conjunctions without comparing all pairs."""

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
    return {each.key: each for each in map(region_of, drawn)}


@given(st.lists(parts(), min_size=1, max_size=10), parts(), st.sets(st.integers(0, 9)))
def test_a_shelf_finds_what_is_over_and_under_also_after_removals(
    drawn: list[Predicate], asked: Predicate, gone: set[int]
) -> None:
    wanted = region_of(asked)
    regions = [each for each in distinct(drawn).values() if each.slot == wanted.slot]
    shelf = RegionIndex()
    for each in regions:
        shelf.add(each)
    for number in sorted(gone, reverse=True):
        if number < len(regions):
            shelf.remove(regions.pop(number))
    over, under = shelf.containing(wanted), shelf.contained(wanted)
    assert len(shelf) == len(regions)
    assert set(shelf) == set(regions)
    assert set(over) == {each for each in regions if implies(asked, each.predicate)}
    assert set(under) == {each for each in regions if implies(each.predicate, asked)}
    assert len(over) == len(set(over))
    assert len(under) == len(set(under))


@given(st.lists(parts(), min_size=1, max_size=4))
def test_the_narrowest_regions_imply_all_and_none_another(drawn: list[Predicate]) -> None:
    kept = narrowest(distinct(drawn).values())
    assert all(any(implies(each.predicate, part) for each in kept) for part in drawn)
    assert not any(
        one is not other and implies(one.predicate, other.predicate)
        for one in kept
        for other in kept
    )


@given(st.lists(conditions(), min_size=1, max_size=10), st.sets(st.integers(0, 9)))
def test_conjunctions_over_and_under_are_those_that_cover(
    drawn: list[Condition], gone: set[int]
) -> None:
    rows = ConjunctionIndex()
    taken = dict.fromkeys(rows.intern(each.conjunctions[0]) for each in drawn)
    left = [each for number, each in enumerate(taken) if number not in gone]
    for number, each in enumerate(taken):
        if number in gone:
            rows.drop(each)
    assert len(rows) == len(left)
    written = {each: (tuple(region.predicate for region in each.regions),) for each in left}
    for row in left:
        over, under = rows.covering(row), rows.covered(row)
        assert set(over) == {each for each in left if covers(written[each], written[row])}
        assert set(under) == {each for each in left if covers(written[row], written[each])}
        assert len(over) == len(set(over))
        assert len(under) == len(set(under))


def test_a_conjunction_is_kept_once_and_as_long_as_a_node_has_it() -> None:
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
def test_what_shares_no_value_is_not_compared(size: int, most: int) -> None:
    """A hundred kinds with one common attribute: a conjunction meets itself, up and down."""
    rows = ConjunctionIndex()
    taken = [
        rows.intern(parse(f"price < {number} and kind = 'k{number}'").conjunctions[0])
        for number in range(size)
    ]
    assert [rows.covering(row) for row in taken] == [rows.covered(row) for row in taken]
    assert rows.compared <= 2 * most
