"""Regions stand for equivalent predicates, and are found by containment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.papers.cover_graph.drawn import parts

from tidings.index.papers.cover_graph.regions import (
    Region,
    RegionIndex,
    in_one_order,
    narrowest,
    region_of,
)
from tidings.model.conditions.implication import implies
from tidings.model.conditions.parser import parse
from tidings.model.conditions.predicate import Predicate


def region(text: str) -> Region:
    return region_of(parse(text).conjunctions[0][0])


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("x between 2 and 3", "x >= 2"),
        ("x = 2", "x != 3"),
        ("a in ('p', 'q')", "a != 'r'"),
        ("a like 'ab%'", "a like '%b%'"),
        ("a = 'ab'", "a like '%b'"),
    ],
)
def test_a_region_lies_within_a_wider_one_only(narrow: str, wide: str) -> None:
    assert region(narrow).within(region(wide))
    assert not region(wide).within(region(narrow))


def test_a_region_says_whether_it_is_one_span_or_one_value() -> None:
    texts = ("x = 2", "x > 2", "x != 2", "a = 'p'", "a in ('p', 'q')", "a like '%p%'")
    found = [(region.only is not None, region.single) for region in map(region, texts)]
    assert found == [
        (True, True),
        (True, False),
        (False, False),
        (True, True),
        (False, False),
        (False, False),
    ]
    listed = [region.keys() for region in map(region, texts)]
    assert [keys and len(keys) for keys in listed] == [1, None, None, 1, 2, None]


def test_an_index_finds_regions_of_every_kind() -> None:
    texts = ["x = 2", "x > 1", "x != 3", "x between 0 and 9", "x in (2, 5)"]
    regions = {text: region(text) for text in texts}
    index = RegionIndex()
    for indexed in regions.values():
        index.add(indexed)
    asked = regions["x in (2, 5)"]
    assert set(index.containing(asked)) == set(index) - {regions["x = 2"]}
    assert set(index.contained(asked)) == {regions["x = 2"], asked}


def test_objects_have_one_order_whatever_order_they_came_in() -> None:
    one, other = region("x = 1"), region("x = 2")
    assert in_one_order([one, other]) == in_one_order([other, one])
    assert set(in_one_order([one, other])) == {one, other}


@given(parts(), parts())
def test_a_region_stands_for_all_predicates_that_imply_each_other(
    one: Predicate, other: Predicate
) -> None:
    first, second = region_of(one), region_of(other)
    same = implies(one, other) and implies(other, one)
    assert (first.key == second.key) == same
    if first.is_comparable(second):
        assert first.within(second) == implies(one, other)
    else:
        assert not implies(one, other)


@given(parts())
def test_a_witness_satisfies_the_predicate_and_keys_are_all_its_values(part: Predicate) -> None:
    region = region_of(part)
    if region.spans != () and part.family != "any":
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
    assert set(containing) == {region for region in regions if implies(asked, region.predicate)}
    assert set(contained) == {region for region in regions if implies(region.predicate, asked)}
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
