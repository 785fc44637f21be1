"""Subscribers, subscriptions, policies and words that come and go leave nothing behind."""

import gc
import sys
import types
from typing import Any

import pytest
from tests.fuzz import cases

from tidings import Engine, Event, Policy, Sliding, Subscriber, Subscription

OUTSIDE = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.CodeType,
)
PARTS: list[dict[str, Any]] = [
    {"k": 2},
    {"k": 2, "window": Sliding(5)},
    {"k": 1, "window": {"name": "periodic", "length": "10s"}},
    {"k": 2, "scorer": "relaxed", "window": Sliding(4), "diversify": "divrank"},
    {"k": 2, "scorer": "graph"},
    {"k": 1, "scorer": {"name": "relaxed", "aggregate": "max"}},
]
ROUND = 12 * 13  # after so many turns, all that differs between them has come up


def size_of(root: object) -> int:
    """Return the bytes of all objects that can be reached."""
    seen, waiting, size = set[int](), [root], 0
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, OUTSIDE):
            continue
        seen.add(id(each))
        size += sys.getsizeof(each)
        waiting += gc.get_referents(each)
    return size


def turn(engine: Engine, n: int) -> None:
    """Let one subscriber come, match and be served, and another one go."""
    name = f"u{n}"
    policy = Policy(**PARTS[n % len(PARTS)] | {"k": 1 + n % 13})
    engine.subscribe(Subscriber(name, policy))
    engine.add(Subscription(f"s{n}a", name, f"genre = 'g{n}' and year >= {n % 11}"))
    engine.add(Subscription(f"s{n}b", name, f"a{n} = 1 or title like 't{n % 13}%'"))
    if n % 3 == 0:
        engine.replace(Subscription(f"s{n}a", name, f"year <= {n % 20}"))
        engine.replace(Subscriber(name, policy))
    engine.publish(Event(f"e{n}", {"genre": f"g{n}", "year": n % 20, f"a{n}": 1}, published_at=n))
    engine.publish(Event(f"f{n}", {"title": f"t{n % 13} {n}"}, published_at=n))
    engine.publish({"id": f"late{n}", "published_at": 0, "attributes": {}})
    if n % 12 == 0:
        engine.feed(name)
        engine.quality()
        engine.explain(name, f"e{n}")
        engine.target(Event("q", {"year": 3}, 0), scorer="preference")
    if n >= 5:
        engine.unsubscribe(f"u{n - 5}")


@pytest.mark.fuzz
@pytest.mark.parametrize("feeds", ["plain", "table"])
@pytest.mark.parametrize("index", ["scan", "op", "psg", "access"])
def test_comings_and_goings_leave_nothing_behind(index: str, feeds: str) -> None:
    """Of 156 turns that leaked 100 bytes each, 15 kB would show."""
    engine = Engine(index=index, feeds=feeds, remember=20, remember_ids="30s")
    engine.subscribe(Subscriber("stays", Policy(k=1)))
    engine.add(Subscription("stays", "stays", "year > 18"))
    sizes = []
    turns = max(3, cases(3 * ROUND) // ROUND) * ROUND
    for n in range(turns + 1):
        turn(engine, n)
        engine.late.clear()
        engine.dead_letters.clear()
        if n and n % ROUND == 0:
            gc.collect()
            sizes.append(size_of(engine))
    assert min(sizes[-2:]) < 1.05 * max(sizes[:-2]) + 8_000
