"""Subscriptions as columns: encoded, joined and renumbered."""

import numpy as np
import pytest
from tests.index.access.workload import subscriptions

from tidings.index.access.encoding import TOGETHER, active_parts, encode, joined, renumbered
from tidings.index.access.vocabulary import Renumbering, Vocabulary, ordered
from tidings.model.records import Subscription


def test_parts_are_numbered_through_all_groups() -> None:
    either = Subscription("s", "u", "a = 1 and b = 2 or c = 3")
    assert [[number for number, _, _ in parts] for parts in active_parts(either)] == [[0, 1], [2]]
    weighted = Subscription("s", "u", any=[["a = 1", 0.5, "inactive"], ["b = 2", 0.7]])
    [[(number, weight, part)]] = active_parts(weighted)
    assert (number, weight, part.attribute) == (1, 0.7, "b")


@pytest.mark.parametrize("together", [1, 7, TOGETHER])
def test_columns_equal_checks_one_by_one(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.index.access.encoding.TOGETHER", together)
    exact = [
        Subscription("x", "u", "a between 2 and 2 and b = 2 or b between 1 and 2 and t = 'v'"),
        Subscription("y", "u", "at between date '2026-01-01' and date '2026-01-02' and b = true"),
    ]
    wanted, vocabulary = [*exact, *subscriptions(200, 6)], Vocabulary()
    encoded = encode(wanted, range(len(wanted)), vocabulary)
    rows = [(owner, row) for owner, one in enumerate(wanted) for row in active_parts(one)]
    assert encoded.owner.tolist() == [owner for owner, _ in rows]
    assert encoded.size.tolist() == [len(row) for _, row in rows]
    found = [(number, weight, part) for _, row in rows for number, weight, part in row]
    assert encoded.part.tolist() == [number for number, _, _ in found]
    assert encoded.weight.tolist() in ([], [weight for _, weight, _ in found])
    for place, (_, _, part) in enumerate(found):
        term, slot, low, high, members, kind = vocabulary.check(part)  # none is new by now
        assert (encoded.term[place], encoded.slot[place], encoded.kind[place]) == (term, slot, kind)
        bounds = encoded.low[place], encoded.high[place]
        if members:
            assert encoded.members[slice(*bounds)].tolist() == [*members]
        else:
            assert bounds == tuple(ordered([low, high]))


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
    assert moved.term.tolist() == [5 + encoded.term[0], -1, -1]
    assert moved.members.tolist() == [5 + member for member in encoded.members]
    assert {*moved.term.tolist(), *moved.members.tolist()} == {-1, 5, 6, 7}
    assert moved.slot.tolist() == [-1, -1, 4]
    assert np.array_equal(moved.low, encoded.low)
