"""Posting lists: found by hashing and by the tree of a grid, as a plain search would."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.index.access.kernels.postings import (
    CELL_BITS,
    NEXT_ENTRY,
    WIDE,
    Postings,
    cell_limits,
    fill_hash_table,
    fill_id_table,
    fill_postings,
    find_cell,
    find_list,
    in_cells,
    sort_checks,
    walk_up,
)
from tidings.index.access.postings import NO_POSTINGS, level_starts


@given(st.sets(st.integers(0, 10**6), max_size=60))
def test_keys_are_found_where_they_were_put(keys: set[int]) -> None:
    distinct = np.array(sorted(keys), np.int64)
    places = 1 << (3 * len(distinct) // 2 + 1).bit_length()
    heads = np.full(3 * places, -1, np.int32)
    where = fill_hash_table(distinct, heads, places - 1)
    postings = NO_POSTINGS._replace(heads=heads, mask=places - 1)
    assert [find_list(postings, key) for key in distinct] == where.tolist()
    assert find_list(postings, 10**6 + 1) == -1


@given(st.lists(st.integers(-50, 50), max_size=31), st.integers(-60, 60))
def test_a_cell_is_the_number_of_edges_up_to_the_value(edges: list[int], value: int) -> None:
    ordered = np.array([7, *sorted(edges)], np.int64)  # the first edge belongs to another slot
    postings = NO_POSTINGS._replace(
        edges=ordered, cells=np.array([len(edges) + 1]), edges_from=np.array([1])
    )
    assert find_cell(postings, 0, value) == np.searchsorted(ordered[1:], value, "right")


def tree(cells: int, node: int) -> Postings:
    """Return the postings of one slot, with one entry at one node."""
    nodes = level_starts(cells)[-1]
    heads, out = np.full(3 * (nodes + 1), -1, np.int32), np.empty(1, np.int32)
    fill_postings(np.array([node]), np.array([9], np.int32), 1, heads, out)
    zero = np.zeros(1, np.int32)
    return NO_POSTINGS._replace(
        heads=heads, entries=out, cells=np.array([cells], np.int32), nodes=zero, edges_from=zero
    )


@given(st.integers(0, 6), st.integers(0, 63), st.integers(0, 63), st.integers(0, 63))
def test_an_interval_is_on_the_way_from_each_of_its_cells_to_the_root(
    bits: int, one: int, other: int, value: int
) -> None:
    cells = 1 << bits
    first, last = sorted((one % cells, other % cells))
    level = next(up for up in range(3) if first >> 3 * up == last >> 3 * up)
    postings = tree(cells, level_starts(cells)[level] + (first >> 3 * level))
    value %= cells
    out = np.zeros(WIDE * 8, np.int32)
    count = walk_up(postings, 0, (value, value), 0, out)
    packed = first | last << CELL_BITS
    reached = count == 1 and bool(in_cells(packed, cell_limits(out, 0)))
    assert reached == (first <= value <= last)
    assert out[NEXT_ENTRY] == 0


@given(st.lists(st.integers(0, 5), max_size=40))
def test_entries_keep_their_order_within_a_list(lists: list[int]) -> None:
    heads = np.full(3 * 7, -1, np.int32)
    entries = np.array([[position, -position] for position in range(len(lists))], np.int32)
    out = np.empty(2 * len(lists), np.int32)
    fill_postings(np.array(lists, np.int64), entries.ravel(), 2, heads, out)
    for which in range(6):
        own = [position for position, chosen in enumerate(lists) if chosen == which]
        start, end = heads[3 * which + 1], heads[3 * which + 4]
        assert out[start:end:2].tolist() == own
        assert out[start + 1 : end : 2].tolist() == [-position for position in own]
        assert heads[3 * which + 2] == (own[0] if own else 0)


def test_tombstones_of_an_id_table_are_not_counted_as_free() -> None:
    cells = np.full(4, -1, np.int32)
    assert fill_id_table(np.array([1, 5]), np.array([0, 1], np.int32), cells) == 2
    cells[1] = -2
    assert fill_id_table(np.array([9]), np.array([2], np.int32), cells) == 0
    assert cells.tolist() == [-1, 2, 1, -1]


@given(st.lists(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=1, max_size=5), max_size=6))
def test_checks_are_sorted_by_chance_within_a_row(rows: list[list[float]]) -> None:
    size = np.array([len(row) for row in rows], np.int64)
    first = np.cumsum(size) - size
    chance = np.array([value for row in rows for value in row], np.float64)
    expected = [
        int(start) + position
        for start, row in zip(first, rows, strict=True)
        for position in sorted(range(len(row)), key=row.__getitem__)
    ]
    assert sort_checks(first, size, chance).tolist() == expected
