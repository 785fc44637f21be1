"""Covers from shared values and from levels of distances, against Algorithm 4.1 over a matrix."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.diversify.kernels.test_cover import RANKS, reference

from tidings.compiled.rounding import rounded
from tidings.diversify.covers import SMALLEST
from tidings.diversify.hashed_distances import HashRows, inverted_lists, matrix_of
from tidings.diversify.kernels.cover import Relevance
from tidings.diversify.kernels.dense_cover import reach_of
from tidings.diversify.kernels.sparse_cover import (
    FREQUENT,
    MOST_KEYS,
    MOST_LEVELS,
    below,
    count_shared_pairs,
    find_levels,
    frequent_marks,
    level_cover,
    levels_of,
    near_cover_within,
    near_rows,
)

Row = dict[int, int]
"""The value of each key."""
ALPHAS = st.sampled_from([0.0, 0.2, 1 / 3, 0.5, 2 / 3, 0.75, 0.9, 1 - 1e-12])
KEYS = st.integers(0, 5)
rows_with_values = st.lists(
    st.dictionaries(KEYS, st.integers(0, 1), min_size=1), min_size=1, max_size=10
)
maybe_empty_rows = st.lists(st.dictionaries(KEYS, st.integers(0, 1)), min_size=1, max_size=10)


def hash_rows(rows: list[Row], jaccard: bool) -> HashRows:
    """Return rows of hashes: of attributes with values, or of these as one (Jaccard)."""
    keys = [key for row in rows for key in sorted(row)]
    marks = [1_000 * (key + 1) + row[key] for row in rows for key in sorted(row)]
    starts = np.cumsum([0, *map(len, rows)])
    mark_array = np.array(marks, np.uint64)
    key_array = mark_array if jaccard else np.array(keys, np.uint64)
    return HashRows(starts, key_array, mark_array, np.empty(0))


def distance(one: Row, other: Row, jaccard: bool) -> float:
    """Return the share of attributes, or of values, that two rows do not have in common."""
    mine, theirs = {*one.items()}, {*other.items()}
    whole = len(mine | theirs) if jaccard else len({*one} | {*other})
    return (whole - len(mine & theirs)) / whole if whole else 0.0


def matrix(rows: list[Row], jaccard: bool) -> np.ndarray:
    return np.array([[distance(one, other, jaccard) for other in rows] for one in rows])


@given(maybe_empty_rows, st.booleans())
def test_rows_of_hashes_have_the_distances_of_their_definition(
    rows: list[Row], jaccard: bool
) -> None:
    assert matrix_of(hash_rows(rows, jaccard)).tolist() == matrix(rows, jaccard).tolist()


@given(maybe_empty_rows, st.booleans())
def test_pairs_are_counted_once_for_each_value_that_they_share(
    rows: list[Row], jaccard: bool
) -> None:
    shared = [{*one.items()} & {*other.items()} for one, other in combinations(rows, 2)]
    lists = inverted_lists(hash_rows(rows, jaccard))
    assert count_shared_pairs((*lists,)) == sum(map(len, shared))


@settings(max_examples=100)
@given(rows_with_values, st.booleans(), ALPHAS)
def test_near_rows_are_all_within_reach(rows: list[Row], jaccard: bool, alpha: float) -> None:
    found = near_rows(inverted_lists(hash_rows(rows, jaccard)), reach_of(float(rounded(alpha))))
    apart = matrix(rows, jaccard)
    for row in range(len(rows)):
        span = slice(found.starts[row], found.starts[row] + found.counts[row])
        near = {
            other: apart[row, other]
            for other in range(len(rows))
            if other != row and round(apart[row, other], 12) <= round(alpha, 12)
        }
        assert dict(zip(found.ids[span].tolist(), found.distances[span], strict=True)) == near
        assert found.counts[row] == len(near)


def spread(rows: int, width: int, values: int) -> list[Row]:
    """Return many rows, with more different values than are frequent."""
    return [{key: (7 * row + key * row) % values for key in range(width)} for row in range(rows)]


@pytest.mark.parametrize("jaccard", [False, True])
@pytest.mark.parametrize(("width", "values"), [(3, 2), (20, 9), (MOST_KEYS, 2), (MOST_KEYS, 100)])
def test_rows_with_many_values_are_near_those_of_the_definition(
    jaccard: bool, width: int, values: int
) -> None:
    rows = spread(21, width, values)
    apart = matrix(rows, jaccard)
    for alpha in (0.3, 0.6, 0.95):
        found = near_rows(inverted_lists(hash_rows(rows, jaccard)), reach_of(alpha))
        expected = (apart <= alpha).sum(axis=1) - 1
        assert found.counts.tolist() == expected.tolist()


def test_a_list_of_pairs_grows_with_its_rows() -> None:
    """There is room for sixteen pairs of each row at first."""
    rows: list[Row] = [{0: 0, 1: number} for number in range(70)]
    found = near_rows(inverted_lists(hash_rows(rows, False)), reach_of(0.5))
    assert found.counts.tolist() == [69] * 70
    assert sorted(found.ids[found.starts[3] : found.starts[3] + 69].tolist()) == [
        number for number in range(70) if number != 3
    ]


@settings(max_examples=100)
@given(rows_with_values, st.booleans(), ALPHAS, st.booleans(), st.data())
def test_covers_from_shared_values_are_those_of_the_algorithm(
    rows: list[Row], jaccard: bool, alpha: float, by_rank: bool, data: st.DataObject
) -> None:
    ranks = data.draw(st.lists(RANKS, min_size=len(rows), max_size=len(rows)))
    places = data.draw(st.permutations(range(len(rows))))
    chosen = np.empty(len(rows), np.int64)
    relevance = Relevance(np.array(ranks), np.array(places), by_rank)
    lists = (*inverted_lists(hash_rows(rows, jaccard)),)
    size = near_cover_within(lists, relevance, float(rounded(alpha)), chosen)
    case = (matrix(rows, jaccard), ranks, places)
    assert chosen[:size].tolist() == reference(case, alpha, by_rank)


@settings(max_examples=100)
@given(maybe_empty_rows, st.booleans(), st.booleans(), st.integers(1, 8), st.data())
def test_covers_from_levels_are_those_of_the_algorithm(
    rows: list[Row], jaccard: bool, by_rank: bool, k: int, data: st.DataObject
) -> None:
    usual = RANKS.filter(lambda rank: rank == 0 or rank >= SMALLEST)
    ranks = data.draw(st.lists(usual, min_size=len(rows), max_size=len(rows)))
    places = data.draw(st.permutations(range(len(rows))))
    alpha = data.draw(st.one_of(ALPHAS, st.sampled_from([-1.0, 1.0, 2.0])))
    chosen = np.empty(len(rows), np.int64)
    relevance = Relevance(np.array(ranks), np.array(places), by_rank)
    lists = (*inverted_lists(hash_rows(rows, jaccard)),)
    size = level_cover(lists, relevance, float(rounded(alpha)), k, chosen)
    case = (matrix(rows, jaccard), ranks, places)
    if alpha >= 0:
        expected = reference(case, alpha, by_rank)
    else:  # the largest alpha that yields k, or else the smallest
        alphas = sorted({0.0, *(round(value, 12) for value in case[0].ravel())}, reverse=True)
        covers = [reference(case, each, by_rank) for each in alphas]
        expected = next((cover for cover in covers if len(cover) >= k), covers[-1])
    assert chosen[:size].tolist() == expected


@given(maybe_empty_rows, st.booleans())
def test_levels_number_the_distances_in_order(rows: list[Row], jaccard: bool) -> None:
    lists = inverted_lists(hash_rows(rows, jaccard))
    levels = levels_of(lists)
    values = levels.values.tolist()
    assert values == sorted({*values})
    for one, other in combinations(rows, 2):
        equal = len({*one.items()} & {*other.items()})
        keys = len({*one.items()} | {*other.items()}) if jaccard else len({*one} | {*other})
        if len(levels.numbers) == 1:  # all have the same keys
            assert values[keys - equal] == distance(one, other, jaccard)
        else:
            number = levels.numbers[keys - levels.least, equal]
            assert values[number] == distance(one, other, jaccard)


@pytest.mark.parametrize(
    ("width", "too_many"),
    [(62, False), (63, False), (64, True)],
)
def test_too_many_levels_are_left_to_others(width: int, too_many: bool) -> None:
    """Two rows of so many keys have as many to twice as many, of which none to all are equal."""
    rows: list[Row] = [dict.fromkeys(range(width), 0), dict.fromkeys(range(1, width + 1), 0)]
    lists = inverted_lists(hash_rows(rows, True))
    assert ((width + 1) ** 2 > MOST_LEVELS) == too_many
    assert (len(levels_of(lists).values) == 0) == too_many
    chosen = np.empty(2, np.int64)
    relevance = Relevance(np.ones(2), np.arange(2), True)
    size = level_cover((*lists,), relevance, -1.0, 2, chosen)
    assert size == (-1 if too_many else 2)


@pytest.mark.parametrize("holders", [1, 2, 5])
def test_the_longest_lists_are_frequent_as_long_as_there_are_bits(holders: int) -> None:
    """Lists of one length are frequent all together, or not at all."""
    for count in (FREQUENT, FREQUENT + 1):
        rows: list[Row] = [dict.fromkeys(range(count), 0) for _ in range(holders)]
        marks = frequent_marks(inverted_lists(hash_rows(rows, False)))
        if count <= FREQUENT:
            assert sorted(marks.bit.tolist()) == [*range(count)]
            assert {*marks.rows.tolist()} == {-1}  # all bits
        else:
            assert {*marks.bit.tolist()} == {-1}
            assert {*marks.rows.tolist()} == {0}


def test_a_longer_list_is_frequent_before_shorter_ones() -> None:
    rows: list[Row] = [dict.fromkeys(range(40), row) | {100: 0} for row in range(2)]
    marks = frequent_marks(inverted_lists(hash_rows(rows, False)))
    assert sorted(marks.bit.tolist()) == [*[-1] * 80, 0]  # 81 would not fit
    assert marks.rows.tolist() == [1, 1]


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.integers(-1, 11))
def test_the_level_below_is_one_that_some_pair_has(present: list[bool], last: int) -> None:
    last = min(last, len(present) - 1)
    found = below(np.array(present), last)
    expected = [level for level in range(1, last + 1) if present[level]]
    assert found == (expected[-1] if expected else min(last, 0))


def test_levels_are_present_if_some_pair_has_them() -> None:
    levels = np.array([[5, 1], [1, 5]], np.uint16)
    assert np.flatnonzero(find_levels(levels, 5)).tolist() == [1, 5]
