"""Subscriptions as columns: encoded, joined and renumbered."""

import numpy as np
from tests.index.access.workload import subscriptions

from tidings.index.access.encoding import active_parts, encode, joined, renumbered
from tidings.index.access.vocabulary import Renumbering, Vocabulary
from tidings.model.records import Subscription


def test_parts_are_numbered_through_all_groups() -> None:
    either = Subscription("s", "u", "a = 1 and b = 2 or c = 3")
    assert [[number for number, _, _ in parts] for parts in active_parts(either)] == [[0, 1], [2]]
    weighted = Subscription("s", "u", any=[["a = 1", 0.5, "inactive"], ["b = 2", 0.7]])
    [[(number, weight, part)]] = active_parts(weighted)
    assert (number, weight, part.attribute) == (1, 0.7, "b")


def test_joined_parts_equal_one_encoding() -> None:
    wanted = subscriptions(120, 6)
    ids = [one.id for one in wanted]
    vocabulary = Vocabulary()
    whole = encode(wanted, range(120), vocabulary)
    parts = [
        encode(wanted[a:b], range(a, b), vocabulary) for a, b in ((0, 50), (50, 51), (51, 120))
    ]
    again = joined(parts, ids)
    for name, column in vars(whole).items():
        assert np.array_equal(getattr(again, name), column), name


def test_weights_are_stored_unless_all_are_1() -> None:
    vocabulary = Vocabulary()
    plain = encode([Subscription("s", "u", "a = 1")], [0], vocabulary)
    heavy = encode([Subscription("t", "u", any=[["a = 1", 2.0]])], [1], vocabulary)
    assert len(plain.weight) == 0
    assert joined([plain, heavy], ["s", "t"]).weight.tolist() == [1.0, 2.0]


def test_renumbering_leaves_bounds_alone() -> None:
    vocabulary = Vocabulary()
    where = "a = 1 and b in (1, 2) and c between 1 and 4"
    encoded = encode([Subscription("s", "u", where)], [0], vocabulary)
    moves = Renumbering(np.array([5, 6, 7], np.int32), np.array([4], np.int32))
    moved = renumbered(encoded, moves)
    assert (moved.term.tolist(), moved.members.tolist()) == ([5, -1, -1], [6, 7])
    assert moved.slot.tolist() == [-1, -1, 4]
    assert np.array_equal(moved.low, encoded.low)
