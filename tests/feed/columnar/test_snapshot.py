"""Snapshots of windows in arrays: what they hold, in which order, and which ones are refused."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.feed.columnar.test_feeds import table_of

from tidings.errors import TidingsError
from tidings.feed.columnar import snapshot
from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.policy_key import feed_form
from tidings.feed.snapshot_header import pack, unpack
from tidings.model.records import Delivery, Event, Match
from tidings.policy import Policy
from tidings.window import Moment
from tidings.window.sliding import Sliding

RANKED = Policy(k=1, window={"name": "sliding", "length": 3})
DIVERSE = Policy(k=2, window={"name": "sliding", "length": 3}, diversify="divrank")
PERIODIC = Policy(k=1, window={"name": "periodic", "length": "60s"})


@dataclass(frozen=True)
class OwnWindow(Sliding):
    """A window of a user."""


OWN = Policy(k=1, window=OwnWindow(3))


def offer(table: TableFeeds, subscriber: str, number: int, *matched: str) -> list[Delivery]:
    event = Event(f"e{number}", {"genre": "drama"}, number, number)
    now = Moment(event.published_us, number)
    return table.offer_many([(Match(subscriber, event, 0.5, matched), now)])


def filled(policies: dict[str, Policy]) -> TableFeeds:
    """Return feeds in which every subscriber has two matches."""
    table = table_of(policies)
    for number in (1, 2):
        for name in policies:
            offer(table, name, number, "t", "s")
    return table


def unpacked(table: TableFeeds) -> tuple[dict[str, Any], dict[str, Any]]:
    return unpack("table", table.snapshot())


def test_policies_subscribers_and_events_are_written_once():
    header, columns = unpacked(filled({"b": RANKED, "a": PERIODIC, "c": RANKED}))
    assert header == {"policies": [feed_form(RANKED), feed_form(PERIODIC)], "objects": {}}
    assert columns["subscribers"] == ["b", "a", "c"]
    assert columns["seats"].tolist() == [0, 1, 0]
    assert columns["events"] == ["e1", "e2"]
    assert columns["us"].tolist() == [1_000_000, 2_000_000]
    assert columns["sequence"].tolist() == [1, 2]
    assert columns["subscriptions"] == ["s", "t"]
    assert columns["ring-0"].tolist() == [0, 1, 0, 1]
    assert columns["slot-1"].tolist() == [1]


def test_integers_take_the_fewest_bytes_that_hold_them():
    _, columns = unpacked(filled({"a": RANKED}))
    assert columns["head0-0"].dtype == np.uint8
    assert columns["slot-0"].dtype == np.uint8
    assert columns["score-0"].dtype == np.float64


def test_attributes_are_written_only_where_events_are_compared():
    assert unpacked(filled({"a": RANKED}))[1]["forms"] == []
    forms = unpacked(filled({"a": DIVERSE}))[1]["forms"]
    assert ['"drama"' in form for form in forms] == [True, True]


def test_events_that_no_window_holds_are_not_written():
    table = filled({"a": RANKED})
    for number in range(3, 7):
        offer(table, "a", number)
    assert unpacked(table)[1]["events"] == ["e4", "e5", "e6"]
    assert unpacked(table)[1]["subscriptions"] == []


def test_equal_states_give_equal_bytes_whatever_led_to_them():
    one = filled({"a": RANKED, "b": DIVERSE})
    other = table_of({"x": PERIODIC, "a": RANKED, "b": DIVERSE})
    offer(other, "x", 0, "u")
    other.drop("x")
    for number in (1, 2):
        for name in "ab":
            offer(other, name, number, "t", "s")
    assert one.snapshot() == other.snapshot()


@pytest.mark.parametrize("policy", [RANKED, DIVERSE, PERIODIC], ids=["ranked", "diverse", "period"])
def test_a_restored_table_goes_on_alike(policy):
    table = filled({"a": policy, "b": policy})
    twin = TableFeeds()
    twin.restore(table.snapshot())
    assert twin.snapshot() == table.snapshot()
    for number in (3, 4):
        assert offer(twin, "b", number, "u") == offer(table, "b", number, "u")
    last = Moment(10**9, 99)
    assert twin.advance(last) == table.advance(last)
    assert twin.snapshot() == table.snapshot()


def test_several_snapshots_are_read_into_one_table():
    policies = {"a": RANKED, "b": DIVERSE, "c": RANKED}
    whole = filled(policies)
    states = [whole.snapshot_of(["a", "b"]), whole.snapshot_of(["c"])]
    joined = TableFeeds()
    joined.restore_many(states)
    assert joined.snapshot() == whole.snapshot()
    assert len(joined.cohorts) == 2


def test_a_subscriber_in_two_snapshots_is_refused():
    state = filled({"a": RANKED}).snapshot()
    with pytest.raises(TidingsError, match="a subscriber is in two of them"):
        TableFeeds().restore_many([state, state])


def test_an_event_with_two_times_is_refused():
    one, other = filled({"a": RANKED}), table_of({"b": RANKED})
    event = Event("e1", {}, 9, 9)
    other.offer_many([(Match("b", event, 0.5, ()), Moment(event.published_us, 9))])
    with pytest.raises(TidingsError, match="an event has two times"):
        TableFeeds().restore_many([one.snapshot(), other.snapshot()])


def test_a_policy_of_a_user_comes_from_the_caller():
    table = filled({"a": OWN})
    header, columns = unpacked(table)
    assert list(header["objects"]) == ["a"]
    assert columns["events"] == []
    twin = TableFeeds()
    twin.restore(table.snapshot(), {"a": OWN}.get)
    assert twin.snapshot() == table.snapshot()
    with pytest.raises(TidingsError, match="not registered"):
        TableFeeds().restore(table.snapshot())


def test_a_known_policy_is_used_only_if_it_is_the_one_of_the_snapshot():
    state = filled({"a": RANKED}).snapshot()
    for known in ({"a": PERIODIC}, dict[str, Policy]()):
        twin = TableFeeds()
        twin.restore(state, known.get)
        assert twin.snapshot() == state


def change_columns(change: Callable[[dict[str, Any], dict[str, Any]], object]) -> bytes:
    header, columns = unpacked(filled({"a": RANKED, "b": PERIODIC}))
    change(header, columns)
    return pack("table", header, columns)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda _, columns: columns.pop("score-0"), "not those of its kind"),
        (
            lambda _, columns: [columns.pop(name) for name in [*columns] if name.endswith("-1")],
            "the columns of policy 1 are missing",
        ),
        (
            lambda _, columns: columns.update({"score-7": np.zeros(1)}),
            "it has columns that belong to no policy",
        ),
        (lambda _, columns: columns.update({"ring-0": ["x"]}), "does not hold numbers"),
        (
            lambda header, _: header.update(policies=[feed_form(RANKED)] * 2),
            "a policy occurs twice",
        ),
        (lambda header, _: header.pop("policies"), "field 'policies' is not a list"),
    ],
)
def test_a_damaged_snapshot_is_refused_and_changes_nothing(change, reason):
    table = filled({"x": RANKED})
    before = table.snapshot()
    with pytest.raises(TidingsError, match=reason):
        table.restore(change_columns(change))
    assert table.snapshot() == before


def test_a_snapshot_of_other_feeds_is_refused():
    state = filled({"a": RANKED}).snapshot()
    with pytest.raises(TidingsError, match="the snapshot is of table feeds, and these are other"):
        snapshot.load("other", TableFeeds(), [state], lambda _: None)
