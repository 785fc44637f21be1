"""Damaged or hostile snapshots are refused, or restored to an engine that works."""

import json
from base64 import b64decode, b64encode
from functools import cache
from itertools import product
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.damage import flipped, hostile_columns, hostile_json, run_cases
from tests.fuzz import cases

from tidings import Engine, Event, Policy, Subscriber, Subscription, TidingsError
from tidings.engine.snapshot import sealed
from tidings.feed import FEEDS
from tidings.feed.snapshot_header import FRAME

WINDOWS: list[dict[str, Any]] = [
    {"name": "sliding", "length": 5},
    {"name": "sliding", "length": 4, "delivered": "leave"},
    {"name": "sliding", "length": 6, "count": "published", "wait": True},
    {"name": "sliding", "length": "5s"},
    {"name": "continuous"},
    {"name": "continuous", "expires": 4, "wait": True},
    {"name": "continuous", "expires": "6s"},
    {"name": "periodic", "length": 7},
    {"name": "periodic", "length": "9s", "wait": True},
    {"name": "periodic", "length": 9, "count": "published"},
    {"name": "periodic", "at": ["00:00:09", "00:00:17"]},
    {"name": "jumping", "length": 6, "step": 4},
    {"name": "jumping", "length": "8s", "step": "3s"},
    {"name": "jumping", "length": "8s", "step": 3, "delivered": "leave"},
    {"name": "jumping", "length": 6, "step": 4, "count": "published"},
    {"name": "history", "length": 5},
    {"name": "history", "length": "6s", "strict": True, "wait": True},
]
DIVERSIFIERS = ["none", "divrank", "maxavg", "disc", "maxdivrel-lsh", "optimal"]
RULES: list[list[Any]] = [
    [{"name": "quota", "n": 2, "per": "10s"}],
    [{"name": "quota", "n": 3}, {"name": "quiet", "start": "00:00:01", "end": "00:00:30"}],
    [{"name": "different", "min": 0.5, "within": "9s"}, {"name": "quota", "n": 1, "per": "hour"}],
    [{"name": "quiet", "start": "00:00:05", "end": "00:00:20", "urgent": 0.8}],
]
POLICIES = [
    {"k": 2, "window": window, "diversify": diversify}
    | ({"decay": {"name": "exponential", "rate": 0.1}} if number % 3 == 0 else {})
    | ({"rules": RULES[number // 2 % len(RULES)]} if number % 2 == 0 else {})
    for number, (window, diversify) in enumerate(product(WINDOWS, DIVERSIFIERS))
]
MARKED = pytest.mark.fuzz


def event(number: int) -> Event:
    values = {"genre": "abc"[number % 3], "mood": ["x", "y"][: number % 3], "rank": number % 5}
    return Event(f"e{number:03}", values, published_at=number * 2 // 3)


EVENTS = [event(number) for number in range(48)]


@cache
def base(kind: str, number: int) -> str:
    """Return the snapshot of an engine whose subscribers have one of the policies."""
    engine = Engine(lateness="2s", feeds=kind)
    for name in "abc":
        engine.subscribe(Subscriber(name, Policy(**POLICIES[number])))
        for rank, place in ((0.9, 0), (0.4, 1), (0.7, 2)):
            where = f"rank != {place} and genre != {'abc'[place]!r}"
            engine.add(Subscription(f"{name}-{place}", name, where, prefrank=rank))
    engine.publish_many(EVENTS[:30])
    return json.dumps(engine.snapshot())


def drive(state: Any) -> list[Any]:
    """Restore a snapshot and continue the stream; return the deliveries."""
    engine = Engine()
    before = engine.snapshot()
    try:
        engine.restore(state)
    except TidingsError:
        assert engine.snapshot() == before, "a restore that failed changed the engine"
        raise
    deliveries = engine.publish_many(EVENTS[30:42])
    deliveries += [delivery for name in "abc" for delivery in engine.feed(name)]
    engine.restore(json.loads(json.dumps(engine.snapshot())))
    deliveries += engine.publish_many(EVENTS[42:]) + engine.advance(10**6)
    engine.snapshot()
    return [delivery.to_dict() for delivery in deliveries]


@cache
def undamaged(kind: str, number: int) -> list[Any]:
    return drive(json.loads(base(kind, number)))


class SnapshotCase(NamedTuple):
    """The snapshot that is damaged."""

    kind: str
    number: int


def chosen(rng: Random) -> SnapshotCase:
    return SnapshotCase(rng.choice([*FEEDS]), rng.randrange(len(POLICIES)))


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """Compile all kernels before child processes are started.

    The answers of plain feeds take seconds; only a large run needs them in every child.
    """
    for case in product(FEEDS if cases(0) else ["table"], range(len(POLICIES))):
        undamaged(*case)


def flip_feeds(rng: Random) -> None:
    case = chosen(rng)
    state = json.loads(base(*case))
    whole = flipped(rng, b64decode(state["feeds"]["state"]))
    state["feeds"]["state"] = b64encode(whole).decode()
    assert drive(sealed_again(state)) == undamaged(*case), "another answer"


def flip_text(rng: Random) -> None:
    case = chosen(rng)
    try:
        state = json.loads(flipped(rng, base(*case).encode()))
    except ValueError:
        return
    assert drive(state) == undamaged(*case), "another answer"


def sealed_again(state: Any) -> Any:
    """Return a state with a correct checksum, if one can still be computed."""
    if not isinstance(state, dict):
        return state
    fields = {name: value for name, value in state.items() if name not in ("version", "checksum")}
    try:
        return sealed(fields)
    except (KeyError, TypeError, ValueError, RecursionError):
        return state


def hostile_fields(rng: Random) -> None:
    drive(sealed_again(hostile_json(rng, json.loads(base(*chosen(rng))))))


def hostile_feeds(rng: Random) -> None:
    case = chosen(rng)
    state = json.loads(base(*case))
    header, columns = FRAME.unpack(b64decode(state["feeds"]["state"]))
    if case.kind == "plain" or rng.random() < 0.2:
        header = hostile_json(rng, header)
    else:
        columns = hostile_columns(rng, columns)
    try:
        packed = FRAME.pack(header, columns)
    except RecursionError:  # only text can be that deep: see test_frame
        return
    state["feeds"]["state"] = b64encode(packed).decode()
    drive(sealed_again(state))


@MARKED
def test_flipped_bits_in_the_feeds() -> None:
    run_cases("flip_feeds", flip_feeds, cases(150))


@MARKED
def test_flipped_bits_in_the_text() -> None:
    run_cases("flip_text", flip_text, cases(150))


@MARKED
def test_hostile_fields() -> None:
    run_cases("hostile_fields", hostile_fields, cases(200))


@MARKED
def test_hostile_columns() -> None:
    run_cases("hostile_feeds", hostile_feeds, cases(400))
