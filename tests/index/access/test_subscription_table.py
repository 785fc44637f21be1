"""The tables of subscriptions: numbers by id as in a dict, and reused numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidSubscription
from tidings.index.access.subscription_table import IdTable, SubscriptionTable, checked_scores
from tidings.model.records import Subscription


@given(st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=300), st.integers(0, 200))
def test_ids_are_found_as_in_a_dict(steps: list[tuple[int, bool]], more: int) -> None:
    table, numbers, ids = IdTable(), dict[str, int](), list[str]()
    for which, stays in [*steps, *((number, True) for number in range(20, 20 + more))]:
        name = f"n{which}"
        if name in numbers:
            table.remove(name, ids)
            del numbers[name]
        if stays:
            ids.append(name)
            numbers[name] = len(ids) - 1
            table.add([name], [numbers[name]], ids)
        assert table.find(name, ids) == numbers.get(name, -1)
    assert len(table) == len(numbers)
    assert table.numbers().tolist() == sorted(numbers.values())
    assert all(table.find(name, ids) == number for name, number in numbers.items())
    assert table.find("unknown", ids) == -1


def test_an_id_that_comes_and_goes_reuses_its_tombstone() -> None:
    table, ids = IdTable(), ["a"]
    before = table.nbytes
    for _ in range(1000):
        table.add(["a"], [0], ids)
        table.remove("a", ids)
    assert table.nbytes == before
    assert table.find("a", ids) == -1


def subscription(name: str, score: float | None = None) -> Subscription:
    return Subscription(name, "u", "x = 1", score=score)


def test_a_later_table_reuses_the_numbers_of_removed_subscriptions() -> None:
    table = SubscriptionTable()
    assert table.add([subscription(name) for name in "abcd"]) == [0, 1, 2, 3]
    assert table.add_rescored([3], [7.0]) == [4]
    later = table.kept(np.array([True, False, False, True, True]))
    assert (later.ids, later.free) == (["a", "", "", "d", "d"], [2, 1])
    assert later.subscriptions[4].score == 7.0
    assert later.add([subscription(name) for name in "efg"]) == [1, 2, 5]
    assert later.ids == ["a", "e", "f", "d", "d", "g"]


def test_a_rescored_subscription_is_built_when_it_is_read() -> None:
    table = SubscriptionTable()
    table.add([subscription("a", 1.0)])
    table.add_rescored([0], [2.0])
    assert table.subscriptions.scores == {1: 2.0}
    assert table.subscriptions[1].score == 2.0
    assert table.subscriptions[1] is table.subscriptions[1]
    assert table.subscriptions.scores == {}


def test_scores_are_checked_by_the_model_where_they_may_be_invalid() -> None:
    held = [subscription("a"), None]
    assert checked_scores(held, [3, 2.5]).tolist() == [3.0, 2.5]
    with pytest.raises(InvalidSubscription):
        checked_scores(held, [-1.0, 2.5])
