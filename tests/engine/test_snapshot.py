"""Snapshots of an engine are read back, or refused with the reason."""

import json
from typing import Any

import pytest

from tidings import Engine, Policy, Subscriber
from tidings.engine.snapshot import check_same, opened, sealed
from tidings.errors import StateError
from tidings.feed import FEEDS

STATE: dict[str, Any] = {
    "subscribers": [],
    "subscriptions": [],
    "feeds": {"kind": "plain", "state": "AAEC"},
    "intake": {"sequence": 1},
}


def test_the_fields_are_those_that_were_sealed() -> None:
    fields = opened(sealed(STATE))
    assert (fields.kind, fields.feeds, fields.intake) == ("plain", b"\0\1\2", {"sequence": 1})
    assert fields.owed == []


def test_whole_floats_may_come_back_as_integers() -> None:
    state = sealed(STATE | {"intake": {"sequence": 1.0}})
    opened(state | {"intake": {"sequence": 1}})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 99}, "has version 99, but this release reads version 1"),
        ({"intake": {"sequence": 2}}, "its checksum does not match its fields"),
        ({"subscribers": {}}, "field 'subscribers' is {}"),
        ({"feeds": {"state": ""}}, "field 'kind' is missing"),
    ],
)
def test_a_changed_snapshot_is_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(StateError, match=reason):
        opened(sealed(STATE) | change)


def test_subscribers_and_feeds_must_agree() -> None:
    check_same(["a", "b"], {"a": 1, "b": 2})
    for subscribers in (["a"], ["a", "a"], ["a", "c"]):
        with pytest.raises(StateError, match="feeds and subscribers differ"):
            check_same(subscribers, {"a": 1, "b": 2})


@pytest.mark.parametrize("field", ["subscribers", "intake", "owed"])
def test_lists_that_share_others_without_end_are_refused(field: str) -> None:
    state = Engine().snapshot()
    bomb: Any = ["x"]
    for _ in range(60):
        bomb = [bomb, bomb]
    hostile = {"a": bomb} if field == "intake" else bomb
    with pytest.raises(StateError, match="its parts are repeated too often"):
        Engine().restore(state | {field: hostile})


def test_parts_that_many_subscribers_share_are_restored() -> None:
    engine = Engine()
    policy = Policy(k=3)
    for number in range(500):
        engine.subscribe(Subscriber(f"u{number}", policy))
    state = engine.snapshot()
    shared = state["subscribers"][0]["policy"]
    for form in state["subscribers"]:
        assert form["policy"] == shared
        form["policy"] = shared
    restored = Engine()
    restored.restore(state)
    assert restored.snapshot() == engine.snapshot()


@pytest.mark.parametrize("feeds", FEEDS)
@pytest.mark.parametrize("diversify", ["none", "divrank", "maxdivrel", "maxsum", "maxdivrel-lsh"])
@pytest.mark.parametrize(
    "scorer",
    [
        {"name": "graph", "lambda": 1, "aggregate": "sum"},
        {"name": "relaxed"},
        {
            "name": "preference",
            "aggregate": "sum",
            "weights": {f"s{number}": 1e100 for number in range(20)},
        },
        {"name": "exact"},
    ],
)
def test_the_largest_ranks_are_restored(feeds: str, diversify: str, scorer: Any) -> None:
    window = {"name": "sliding", "length": 4}
    policy = {"k": 2, "scorer": scorer, "window": window, "diversify": diversify}
    engine, restored = Engine(feeds=feeds), Engine(feeds=feeds)
    engine.subscribe({"id": "ann", "policy": policy})
    weights = {
        f"{side}{number}": 10**power
        for side, power in (("a", 50), ("b", -50))
        for number in range(10)
    }
    parts = [[f"{name} = 1", weight] for name, weight in weights.items()]
    engine.add({"id": "all", "subscriber": "ann", "any": parts, "score": 1e100})
    for number in range(20):
        engine.add({"id": f"s{number}", "subscriber": "ann", "any": [[f"a{number} = 1", 1e50]]})
    events = [
        {"id": f"e{number}", "published_at": number, "attributes": dict.fromkeys(weights, 1)}
        for number in range(6)
    ]
    assert engine.publish_many(events[:4])
    restored.restore(json.loads(json.dumps(engine.snapshot())))
    assert restored.publish_many(events[4:]) == engine.publish_many(events[4:])
    assert engine.set_aside == {}
