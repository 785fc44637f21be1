"""Forms with anything in any field: each is read, and written back, or refused by our own error."""

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from tests.fuzz import cases

from tidings.engine.engine import Engine
from tidings.errors import MESSAGE_BYTES, TidingsError
from tidings.formats.json_forms import (
    loads_event,
    loads_policy,
    loads_subscriber,
    loads_subscription,
)
from tidings.model.limits import Limits
from tidings.score import SCORERS

EVENT = {
    "id": "e1",
    "published_at": "2026-01-01T00:00:00Z",
    "attributes": {"x": 1, "t": {"time": 5}, "r": {"range": [1, 2]}, "l": ["a", 2]},
    "sequence": 3,
    "probabilities": {"x": 0.5},
}
SUBSCRIPTION = {"id": "s1", "subscriber": "b", "where": "x > 0 or t", "prefrank": 0.5, "score": 2}
WEIGHTED = {"id": "s2", "subscriber": "b", "any": [["x > 0", 2], ["l = 'a'", 1, "inactive"]]}
POLICY = {
    "k": 3,
    "scorer": {"name": "preference", "aggregate": "sum", "weights": {"s1": 2}},
    "decay": {"name": "exponential", "rate": 0.1, "landmark": 0},
    "window": {"name": "sliding", "length": 4},
    "diversify": {"name": "divrank", "sigma": 0.5},
    "rules": [
        {"name": "different", "min": 0.2, "within": "7d", "distance": "jaccard"},
        {"name": "quota", "n": 5, "per": "day", "zone": "UTC", "pick": "best", "urgent": 0.9},
        {"name": "quiet", "start": "22:00", "end": "07:00", "zone": "Europe/Athens"},
    ],
}
SUBSCRIBER = {"id": "b", "policy": POLICY, "prefers": [["s1", "s2"]]}
FORMS = 20
"""Forms that one engine takes."""
READERS: list[tuple[dict[str, Any], Callable[..., Any]]] = [
    (EVENT, loads_event),
    (SUBSCRIPTION, loads_subscription),
    (WEIGHTED, loads_subscription),
    (POLICY, loads_policy),
    (SUBSCRIBER, loads_subscriber),
]


class Broken(str):
    """A string whose methods fail."""

    __slots__ = ()

    def __hash__(self) -> int:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __repr__(self) -> str:
        raise RuntimeError


def endless() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


ODD: list[Any] = [
    None, True, 0, -1, 1.5, 10**400, 10**5_000, -(2**63), 2**63, float("nan"), float("inf"), "",
    "x", "s1", "exact", "graph", "\ud800", "\0", "x" * 5_000, [], {}, [1], [[1]], {"name": 1},
    {"name": "graph"}, {"name": []}, {"time": 1}, {"time": []}, {"range": [1, 2]}, {"range": [{}]},
    {"range": [{"range": [1, 2]}, 3]}, {"range": [{"time": 1}, {"time": 2}]}, {1: 2}, {"x": None},
    b"x", {1, 2}, (1, 2), range(3), 1j, object(), Decimal("sNaN"), np.float64(1), np.array([1]),
    np.datetime64("NaT"), datetime(1, 1, 1, tzinfo=UTC), endless(), Broken("x"), len,
]  # fmt: skip


def changed(chance: random.Random, value: Any) -> Any:
    """Return a copy of a form with something odd, missing or added somewhere."""
    if chance.random() < 0.3 or not isinstance(value, dict | list) or not value:
        return chance.choice(ODD)
    if isinstance(value, list):
        place = chance.randrange(len(value))
        return [*value[:place], changed(chance, value[place]), *value[place + 1 :]]
    name = chance.choice(list(value))
    kind = chance.random()
    if kind < 0.1:
        return {each: inner for each, inner in value.items() if each != name}
    if kind < 0.2:
        return value | {chance.choice(["x", "name", 5, None, (), "\ud800"]): chance.choice(ODD)}
    return value | {name: changed(chance, value[name])}


@pytest.mark.fuzz
def test_any_form_is_read_and_written_back_or_refused() -> None:
    limits = [Limits.trusted(), Limits.public()]
    refusals = list[str]()
    for seed in range(cases(3_000)):
        chance = random.Random(seed)
        form, reader = chance.choice(READERS)
        for _ in range(chance.randint(1, 3)):
            form = changed(chance, form)
        try:
            found = reader(form, chance.choice(limits))
        except TidingsError as error:
            refusals.append(str(error))
            continue
        assert hash(found) == hash(found)
        try:
            written = json.loads(json.dumps(found.to_dict()))
        except TidingsError:  # a function has no JSON form
            continue
        assert reader(written) == found, seed
    assert max(len(refusal.encode()) for refusal in refusals) <= MESSAGE_BYTES


@pytest.mark.fuzz
def test_what_is_read_can_be_used_with_every_scorer() -> None:
    for seed in range(cases(60 * FORMS) // FORMS):
        chance = random.Random(seed)
        engine = Engine()
        for scorer in SCORERS:
            engine.subscribe(loads_subscriber({"id": scorer, "policy": {"scorer": scorer}}))
        for number in range(FORMS):
            form, reader = chance.choice(READERS[:3])
            try:
                found = reader(changed(chance, form | {"id": f"i{number}"}))
                if reader is loads_event:
                    engine.publish(found)
                else:
                    for scorer in SCORERS:
                        engine.add(reader(found.to_dict() | {"id": scorer, "subscriber": scorer}))
            except TidingsError:
                continue
        state = json.loads(json.dumps(engine.snapshot()))
        restored = Engine()
        restored.restore(state)
        assert json.loads(json.dumps(restored.snapshot())) == state, seed
