"""Groups of rules: the bytes that they take, failures of user-defined parts, and large lists."""

from typing import Any

import numpy as np
import pytest

from tidings.diversify.distance import Jaccard
from tidings.feed import FEEDS, Feeds
from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.columnar.rules.span_tables import SpanTables
from tidings.model.records import Event, Match
from tidings.model.values import SECOND_US
from tidings.policy import Policy, Subscriber
from tidings.rules.different import Different
from tidings.rules.quota import Quota
from tidings.window import Moment

COUNT = 300
NOON_S = 43_200


class Failing(Jaccard):
    """A distance that fails for some events."""

    name = "failing"

    def between(self, one: Event, other: Event) -> float:
        if "bad" in (one.id, other.id):
            raise ValueError("no distance")
        return 1.0


def offer(feeds: Feeds, name: str, number: int, score: float = 0.5, id: str = "") -> list[Any]:
    event = Event(id or f"e{number}", {"x": number}, published_at=number, sequence=number + 1)
    now = Moment(event.published_us, number + 1)
    return feeds.offer_many([(Match(name, event, score, ("s", "t")), now)])


def test_a_quota_and_quiet_hours_take_few_bytes_while_nothing_is_held() -> None:
    feeds, policy = TableFeeds(), Policy(rules=[{"name": "quota", "n": 5}, {"name": "quiet"}])
    feeds.enrol_many([f"u{n}" for n in range(COUNT)], [policy], np.zeros(COUNT, np.int32))
    [group] = feeds.rules.groups.values()
    assert _bytes(feeds) <= 100 * COUNT
    for nth in range(210):  # more than a quota remembers
        event, now = Event(f"e{nth}", {}, NOON_S + nth), Moment((NOON_S + nth) * SECOND_US, nth + 1)
        rank = nth * 7 % 10 / 10
        feeds.offer_many([(Match(f"u{n}", event, rank, ("s",)), now) for n in range(COUNT)])
        assert group.rows.held.slabs.used[0] == 1  # no list has a slab
        assert _bytes(feeds) <= 200 * COUNT + 200


def _bytes(feeds: TableFeeds) -> int:
    [group] = feeds.rules.groups.values()
    return group.rows.nbytes + feeds.rules.group.nbytes + feeds.rules.row.nbytes


@pytest.mark.parametrize("kind", FEEDS)
def test_a_subscriber_whose_distance_fails_is_set_aside(kind: str) -> None:
    feeds = FEEDS[kind]()
    policy = Policy(rules=[Different(min=0.5, distance=Failing())])
    for name in "uv":
        feeds.enrol(Subscriber(name, policy))
    assert len(offer(feeds, "u", 0)) == len(offer(feeds, "v", 0)) == 1
    assert offer(feeds, "u", 1, id="bad") == []
    assert "no distance" in feeds.set_aside["u"]
    assert offer(feeds, "u", 2) == []
    assert len(offer(feeds, "v", 2)) == 1
    feeds.enrol(Subscriber("u", policy))
    assert [delivery.sequence for delivery in offer(feeds, "u", 3)] == [1]


@pytest.mark.parametrize("gap_days", [1, 30, 3_000])
def test_periods_of_all_quotas_are_looked_up_at_once(gap_days: int, monkeypatch: Any) -> None:
    feeds, instants, load = TableFeeds(), list[int](), SpanTables.load

    def note_and_load(tables: SpanTables, us: int) -> None:
        instants.append(us)
        load(tables, us)

    monkeypatch.setattr(SpanTables, "load", note_and_load)
    zones = ["Europe/Athens", "Asia/Kathmandu", "America/Havana", "Australia/Lord_Howe"]
    quotas = [Quota(2, per="hour", zone=zone) for zone in 4 * zones]
    feeds.enrol(Subscriber("u", Policy(rules=quotas)))
    offered = [NOON_S + gap_days * 86_400 * nth for nth in range(1, 21)]
    assert all(len(offer(feeds, "u", us)) == 1 for us in offered)
    # Days apart, some of them are already known; further apart, each instant is looked up once.
    assert len(instants) == len({*instants}) <= len(offered)


@pytest.mark.parametrize("kind", FEEDS)
def test_long_lists_are_held_and_released_in_order(kind: str) -> None:
    feeds = FEEDS[kind]()
    quiet = {"name": "quiet", "start": "00:00:01", "end": "00:20"}
    feeds.enrol(Subscriber("u", Policy(k=300, rules=[quiet])))
    feeds.enrol(Subscriber("v", Policy(k=300, rules=[quiet])))
    for number in range(1, 1_000):
        assert offer(feeds, "u", number, number * 7 % 100 / 100) == []
    due = feeds.advance(Moment(1_200_000_000, 1_000))
    assert len(due) == 300
    assert [delivery.position for delivery in due] == [*range(1, 301)]
    assert [delivery.rank for delivery in due] == sorted((d.rank for d in due), reverse=True)
    assert {delivery.matched for delivery in due} == {("s", "t")}
