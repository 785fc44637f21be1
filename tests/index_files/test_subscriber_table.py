"""The table of subscribers: found by name, with their policies, before and after a file."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import Policy, Subscriber
from tidings.compiled.array_file import Damaged, Writer
from tidings.index_files import mapped_file
from tidings.index_files.subscriber_bundle import SubscriberBundle
from tidings.index_files.subscriber_table import (
    OverlaidStrings,
    StringTable,
    SubscriberTable,
    hashes_of,
)


def through_file(table: SubscriberTable, path: Path) -> SubscriberTable:
    """Return a table after it was written and read."""
    writer = Writer()
    table.write(writer)
    mapped_file.write(path, mapped_file.SUBSCRIBERS, writer)
    return SubscriberTable.read(mapped_file.read(path, mapped_file.SUBSCRIBERS))


@given(st.lists(st.text(max_size=4), unique=True))
def test_subscribers_are_found_by_name(names: list[str]) -> None:
    table = SubscriberTable.of(names, [])
    assert [table.find(name) for name in names] == list(range(len(names)))
    assert table.find("another name") == -1
    assert table.names.take(np.arange(len(names))).to_pylist() == names


def test_names_with_equal_hashes_are_distinguished() -> None:
    assert len(set(hashes_of(["plumless", "buckeroo"]))) == 1
    table = SubscriberTable.of(["buckeroo", "plumless"], [])
    assert [table.find(name) for name in ("buckeroo", "plumless")] == [0, 1]


def test_policies_and_what_depends_on_them_read_back(tmp_path: Path) -> None:
    subscribers = [Subscriber(f"u{n}", Policy(k=1 + n % 2)) for n in range(5)]
    table = SubscriberTable.of(
        [*(subscriber.id for subscriber in subscribers), "owner"], subscribers
    )
    for same in (table, through_file(table, tmp_path / "people.sealed")):
        assert [same.policy(subscriber.id) for subscriber in subscribers] == [
            subscriber.policy for subscriber in subscribers
        ]
        assert same.policy("owner") is same.policy("unknown") is None
        assert same.flags(lambda policy: policy.k == 2).tolist() == [False, True] * 2 + [False] * 2
        numbers = same.numbers(lambda policy: (policy.k if policy else 0, 7))
        assert numbers.tolist() == [[1, 7], [2, 7], [1, 7], [2, 7], [1, 7], [0, 7]]


def test_changes_override_the_policies_of_the_base() -> None:
    table = SubscriberTable.of(["ann", "bob"], [Subscriber("ann"), Subscriber("bob")])
    table.apply([SubscriberBundle("ann", Subscriber("ann", Policy(k=3))), SubscriberBundle("bob")])
    assert (table.policy("ann"), table.policy("bob")) == (Policy(k=3), None)


@given(
    st.lists(st.sampled_from(["plumless", "buckeroo", "a", "b", "c"]), unique=True),
    st.lists(st.sampled_from(["plumless", "buckeroo", "a", "b", "d", ""])),
    st.booleans(),
)
def test_policies_of_many_are_those_of_each(
    names: list[str], wanted: list[str], changes: bool
) -> None:
    subscribers = [Subscriber(name, Policy(k=n + 1)) for n, name in enumerate(names[:3])]
    table = SubscriberTable.of(names, subscribers)
    if changes:
        table.apply([SubscriberBundle("a"), SubscriberBundle("d", Subscriber("d"))])
    assert table.policies_of(wanted) == [table.policy(name) for name in wanted]


def test_an_unreadable_policy_is_damage_when_it_is_first_asked_for(tmp_path: Path) -> None:
    table = SubscriberTable.of(["ann"], [Subscriber("ann")])
    writer = Writer()
    table.write(writer)
    writer.texts("policies", [json.dumps({"k": 0})])
    mapped_file.write(tmp_path / "people", mapped_file.SUBSCRIBERS, writer)
    same = SubscriberTable.read(mapped_file.read(tmp_path / "people", mapped_file.SUBSCRIBERS))
    with pytest.raises(Damaged, match="a policy cannot be read"):
        same.policy("ann")


strings = st.lists(st.text(max_size=5), max_size=8)


@given(strings)
def test_a_table_is_a_sequence_of_its_strings(values: list[str]) -> None:
    table = StringTable.of(values)
    assert len(table) == len(values)
    assert list(table) == values


@given(strings, strings, st.data())
def test_an_overlay_numbers_its_strings_after_those_of_the_base(
    base: list[str], overlay: list[str], data: st.DataObject
) -> None:
    table = OverlaidStrings(StringTable.of(base), pa.array(overlay, pa.large_string()))
    together = base + overlay
    numbers = data.draw(st.lists(st.sampled_from(range(len(together))))) if together else []
    assert len(table) == len(together)
    taken = table.take(np.array(numbers, np.int64)).to_pylist()
    assert taken == [together[number] for number in numbers]
