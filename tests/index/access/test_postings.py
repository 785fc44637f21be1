"""Grids over slots, estimated selectivity, and what is posted where."""

import numpy as np
import pytest

from tidings.index.access.encoding import encode
from tidings.index.access.kernels.postings import CELL_BITS, CELL_MASK
from tidings.index.access.postings import FEWEST, SlotGrid, chances_of, level_starts, post_checks
from tidings.index.access.vocabulary import Vocabulary
from tidings.model.records import Subscription


def intervals(count: int) -> list[Subscription]:
    bounds = [(number * 7 % 500, number * 7 % 500 + number % 40) for number in range(count)]
    wheres = [f"x between {low} and {high}.5" for low, high in bounds]
    return [Subscription(f"s{n:04d}", "u", where) for n, where in enumerate(wheres)]


def test_few_intervals_share_one_cell() -> None:
    vocabulary = Vocabulary()
    encoded = encode(intervals(FEWEST - 1), range(FEWEST - 1), vocabulary)
    grid = SlotGrid(encoded, vocabulary.slots)
    assert (grid.cells.tolist(), len(grid.edges)) == ([1], 0)
    assert not grid.node.any()


@pytest.mark.parametrize("count", [FEWEST, 1000])
def test_an_interval_is_at_the_lowest_node_over_its_cells(count: int) -> None:
    vocabulary = Vocabulary()
    encoded = encode(intervals(count), range(count), vocabulary)
    grid = SlotGrid(encoded, vocabulary.slots)
    first = np.searchsorted(grid.edges, encoded.low, "right")
    last = np.searchsorted(grid.edges, encoded.high, "right")
    assert np.array_equal(grid.span & CELL_MASK, first)
    assert np.array_equal(grid.span >> CELL_BITS, last)
    assert np.allclose(grid.share, (last - first + 1) / grid.cells[0])
    starts = level_starts(int(grid.cells[0]))
    for node, low, high in zip(grid.node, first, last, strict=True):
        level = next(up for up in range(9) if low >> 3 * up == high >> 3 * up)
        assert node == starts[level] + (low >> 3 * level)


def test_chances_of_members_add_up_and_intervals_count_their_share() -> None:
    vocabulary = Vocabulary()
    where = "a in (1, 2) and a = 1 and b between 1 and 2"
    encoded = encode([Subscription("s", "u", where)], [0], vocabulary)
    vocabulary.events = 100
    vocabulary.counts.terms[:2] = [40, 20]
    vocabulary.counts.slots[0] = 100
    grid = SlotGrid(encoded, vocabulary.slots)
    guessed = chances_of(encoded, grid, vocabulary).guessed
    chance = dict(zip(encoded.part.tolist(), guessed, strict=True))
    among, equal, between = (chance[part] for part in range(3))
    assert among > equal
    assert between > among


def test_an_in_is_posted_under_every_member() -> None:
    vocabulary = Vocabulary()
    wanted = [Subscription("s", "u", "a in (1, 2)"), Subscription("t", "u", "b between 1 and 2")]
    encoded = encode(wanted, range(2), vocabulary)
    posted = post_checks(encoded, np.arange(2))
    assert posted.check.tolist() == [0, 0, 1]
    assert posted.key.tolist() == [0, 1, ~0]
    assert posted.single.tolist() == [False, False, True]
