"""Enrolled subscribers: numbers, the order of enrolment, and numbers that are reused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidSubscription
from tidings.feed.columnar.enrolled_subscribers import EnrolledSubscribers


@given(st.lists(st.sampled_from([f"u{n}" for n in range(30)]), max_size=80))
def test_numbers_are_unique_and_the_order_is_that_of_enrolment(names: list[str]) -> None:
    """A name that is drawn again is removed; it is added behind all others the next time."""
    subscribers = EnrolledSubscribers()
    model: list[str] = []
    for name in names:
        if name in model:
            subscribers.remove(name)
            model.remove(name)
        else:
            subscribers.assign(subscribers.add(name), 1, len(model))
            model.append(name)
        assert len(subscribers) == len(model)
        numbers = [subscribers.number(name) for name in model]
        assert len(set(numbers)) == len(model)
        assert subscribers.in_order().tolist() == numbers
        assert [subscribers.names[number] for number in numbers] == model
        assert all(subscribers.cohort[number] == 1 for number in numbers)
    assert all((name in subscribers) is (name in model) for name in names)
    assert len(subscribers.names) <= 30


def test_a_removed_subscriber_has_no_number() -> None:
    subscribers = EnrolledSubscribers()
    number = subscribers.add("a")
    subscribers.assign(number, 0, 7)
    assert (subscribers.number("a"), subscribers.row[number]) == (0, 7)
    subscribers.remove("a")
    assert subscribers.cohort[number] == -1
    with pytest.raises(InvalidSubscription, match="there is no subscriber 'a'"):
        subscribers.number("a")
    before = subscribers.generation
    assert subscribers.add("b") == number
    assert subscribers.generation == before + 1


@pytest.mark.parametrize("gone", [(), ("a", "c")])
def test_many_are_numbered_like_one_after_the_other(gone: tuple[str, ...]) -> None:
    alone, together = EnrolledSubscribers(), EnrolledSubscribers()
    for subscribers in (alone, together):
        for name in "abcd":
            subscribers.add(name)
        for name in gone:
            subscribers.remove(name)
    names = [f"u{n}" for n in range(40)]
    assert together.add_many(names).tolist() == [alone.add(name) for name in names]
    assert together.in_order().tolist() == alone.in_order().tolist()
    assert [together.number(name) for name in names] == [alone.number(name) for name in names]
