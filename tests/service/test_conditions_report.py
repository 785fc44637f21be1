"""The report of conditions: what is broad, what matches nothing and why, and what takes time."""

from types import SimpleNamespace
from typing import Any

import pytest

from tidings import Engine, Event, Subscription
from tidings.service import conditions_report
from tidings.service.conditions_report import count_matches, measure_costs, report_conditions

EVENTS = [
    Event(f"e{n}", {"genre": "drama" if n % 2 else "comedy", "title": f"Film {n}"}, n)
    for n in range(10)
]
WHERE = {
    "all": "genre is not null",
    "drama": "genre = 'drama'",
    "few": "title = 'Film 3'",
    "typo": "gener = 'drama'",
    "value": "genre = 'dramma'",
    "scan": "title like '%ilm 3%'",
}


class Entries:
    """The subscriptions of a store; those that are gone are not found."""

    def __init__(self, gone: tuple[str, ...] = ()) -> None:
        self.entries = {
            name: SimpleNamespace(record=Subscription(name, f"of-{name}", where=where))
            for name, where in WHERE.items()
            if name not in gone
        }

    def get(self, kind: str, name: str) -> Any:
        assert kind == "subscription"
        return self.entries.get(name)

    def page(self, kind: str, limit: int) -> list[Any]:
        assert kind == "subscription"
        return [*self.entries.values()][:limit]


def tenant(events: list[Event] = EVENTS, gone: tuple[str, ...] = ()) -> Any:
    engine = Engine()
    engine.add_many(Subscription(name, f"of-{name}", where=where) for name, where in WHERE.items())
    return SimpleNamespace(
        engine=lambda: SimpleNamespace(engine=engine),
        recent=SimpleNamespace(events=lambda: events),
        store=SimpleNamespace(catalogue=Entries(gone)),
    )


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["subscription"] for row in rows]


def test_matches_are_counted_for_every_subscription() -> None:
    found = count_matches(tenant())
    assert found.counts == {"all": 10, "drama": 5, "few": 1, "typo": 0, "value": 0, "scan": 1}
    assert {event.id for event in found.events} == {event.id for event in EVENTS}


def test_without_publications_nothing_is_counted() -> None:
    found = count_matches(tenant([]))
    assert (found.events, found.counts) == ([], {})
    report = report_conditions(tenant([]), 5)
    assert report["broad"] == report["slow"] == []
    assert report["unmatched"] == {"count": 0, "items": []}
    assert (report["publications"], report["subscriptions"]) == (0, 0)


@pytest.mark.parametrize(
    ("limits", "looked_at"),
    [
        ({"_AT_ONCE": 4, "_EVENTS": 6}, ["e6", "e7", "e8", "e9", "e2", "e3", "e4", "e5"]),
        ({"_AT_ONCE": 4, "_MATCHES": 24}, ["e6", "e7", "e8", "e9"]),
        ({"_AT_ONCE": 4, "_MATCHES": 25}, ["e6", "e7", "e8", "e9", "e2", "e3", "e4", "e5"]),
        ({"_AT_ONCE": 3}, ["e7", "e8", "e9", "e4", "e5", "e6", "e1", "e2", "e3", "e0"]),
    ],
)
def test_the_last_publications_are_examined_first_and_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch, limits: dict[str, int], looked_at: list[str]
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(conditions_report, name, value)
    found = count_matches(tenant())
    assert [event.id for event in found.events] == looked_at
    assert found.counts["all"] == len(looked_at)


def test_the_broadest_come_first_with_what_they_match() -> None:
    report = report_conditions(tenant(), 3)
    assert report["broad"] == [
        {"subscription": "all", "subscriber": "of-all", "where": WHERE["all"], "matches": 10},
        {"subscription": "drama", "subscriber": "of-drama", "where": WHERE["drama"], "matches": 5},
        {"subscription": "scan", "subscriber": "of-scan", "where": WHERE["scan"], "matches": 1},
    ]
    assert (report["publications"], report["subscriptions"]) == (10, 6)


def test_what_matches_nothing_is_listed_with_advice() -> None:
    unmatched = report_conditions(tenant(), 5)["unmatched"]
    assert unmatched["count"] == 2
    assert names(unmatched["items"]) == ["typo", "value"]
    typo, value = (row["hint"] for row in unmatched["items"])
    assert "gener" in typo
    assert "genre" in typo
    assert "drama" in value


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_lists_are_limited_and_counts_are_not(limit: int) -> None:
    report = report_conditions(tenant(), limit)
    assert [len(report[name]) for name in ("broad", "slow")] == [limit, limit]
    assert len(report["unmatched"]["items"]) == limit
    assert report["unmatched"]["count"] == 2


def test_what_is_gone_meanwhile_is_left_out() -> None:
    report = report_conditions(tenant(gone=("all", "typo")), 5)
    assert names(report["broad"]) == ["drama", "scan", "few"]
    assert names(report["unmatched"]["items"]) == ["value"]
    assert "all" not in names(report["slow"])


def test_conditions_that_scan_texts_are_timed_even_if_they_match_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conditions_report, "_TIMED", 1)
    assert sorted(names(report_conditions(tenant(), 9)["slow"])) == ["all", "scan"]


def test_costs_are_compared_with_those_of_a_condition_that_needs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def matching_s(subscription: Subscription, events: list[Event]) -> float:
        return {"nothing": 0.002, "cheap": 0.001, "dear": 0.012}[subscription.id]

    monkeypatch.setattr(conditions_report, "_matching_s", matching_s)
    timed = [Subscription(name, "u", where="n = 1") for name in ("cheap", "dear")]
    costs = measure_costs(timed, EVENTS)
    assert costs == {"cheap": 0.0, "dear": pytest.approx(1_000.0)}
    assert measure_costs(timed, []) == {}


def test_the_slowest_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def costs(subscriptions: Any, events: Any) -> dict[str, float]:
        return {each.id: float(len(each.id)) for each in subscriptions}

    monkeypatch.setattr(conditions_report, "measure_costs", costs)
    slow = report_conditions(tenant(), 3)["slow"]
    assert [(row["subscription"], row["microseconds"]) for row in slow] == [
        ("value", 5.0),
        ("drama", 5.0),
        ("typo", 4.0),
    ]


def test_a_measurement_takes_some_time_and_never_less_than_none() -> None:
    subscription = Subscription("s", "u", where="title like '%ilm 3%'")
    [cost] = measure_costs([subscription], EVENTS).values()
    assert cost >= 0.0


def test_weighted_conditions_are_shown_as_well() -> None:
    subscription = Subscription("s", "u", any=[("n = 1", 0.5)])
    row = conditions_report._row(subscription, matches=3)
    assert row["any"] == subscription.to_dict()["any"]
    assert "where" not in row
