"""Who is enrolled: numbers, the order of enrolment, and numbers that are given again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidSubscription
from tidings.feed.columnar.subscriber_table import Subscribers


@given(st.lists(st.sampled_from([f"u{n}" for n in range(30)]), max_size=80))
def test_numbers_are_unique_and_the_order_is_that_of_enrolment(names: list[str]) -> None:
    """A name that comes up again leaves, and comes back behind all others the next time."""
    people = Subscribers()
    model: list[str] = []
    for name in names:
        if name in model:
            people.remove(name)
            model.remove(name)
        else:
            people.seat(people.add(name), 1, len(model))
            model.append(name)
        assert len(people) == len(model)
        numbers = [people.number(each) for each in model]
        assert len(set(numbers)) == len(model)
        assert people.in_order().tolist() == numbers
        assert [people.names[number] for number in numbers] == model
        assert all(people.cohort[number] == 1 for number in numbers)
    assert all((name in people) is (name in model) for name in names)
    assert len(people.names) <= 30


def test_who_left_has_no_number() -> None:
    people = Subscribers()
    number = people.add("a")
    people.seat(number, 0, 7)
    assert (people.number("a"), people.row[number]) == (0, 7)
    people.remove("a")
    assert people.cohort[number] == -1
    with pytest.raises(InvalidSubscription, match="there is no subscriber 'a'"):
        people.number("a")
    before = people.generation
    assert people.add("b") == number
    assert people.generation == before + 1


@pytest.mark.parametrize("gone", [(), ("a", "c")])
def test_many_are_numbered_as_one_after_the_other(gone: tuple[str, ...]) -> None:
    alone, together = Subscribers(), Subscribers()
    for people in (alone, together):
        for name in "abcd":
            people.add(name)
        for name in gone:
            people.remove(name)
    names = [f"u{n}" for n in range(40)]
    assert together.add_many(names).tolist() == [alone.add(name) for name in names]
    assert together.in_order().tolist() == alone.in_order().tolist()
    assert [together.number(name) for name in names] == [alone.number(name) for name in names]
