"""Subscribers, subscriptions, policies and words that come and go leave nothing behind."""

import gc
import re
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.fuzz import cases

from tidings import Engine, Event, Policy, Sliding, Subscriber, Subscription
from tidings.model import profile

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
    {"k": 2, "window": Sliding(6), "rules": [{"name": "quota", "n": 2, "per": "10s"}]},
    {"k": 1, "window": {"name": "jumping", "length": 4, "step": 2}, "diversify": "maxmin"},
    {
        "k": 2,
        "window": {"name": "history", "length": 5},
        "diversify": "divrank",
        "rules": [
            {"name": "different", "min": 0.4, "within": "9s"},
            {"name": "quiet", "start": "00:00:10", "end": "00:00:40"},
        ],
    },
    {"k": 2, "window": Sliding(5), "diversify": {"name": "maxdivrel-lsh", "tables": 4, "rows": 2}},
]
STEP = 52  # turns between two looks
WARM = 4 * STEP  # by then, indexes have been rebuilt
WINDOW = 5 * STEP  # within so many turns, all that differs between them has come up
BEGIN = 2_000_000  # in seconds; from here on, numbers of microseconds take the same room
IDS = 1025  # ids that an engine holds at least before it clears out forgotten ones
LEAST = WARM + 3 * WINDOW  # turns: two windows, and as many turns between them
MOST = 30 * 2 * WINDOW
"""How many bytes the last window may hold above the first: less than a leak of 40 a turn leaves."""
NAMED = re.compile(r"u(\d{7})")
KINDS = [
    ("scan", "plain"),
    ("scan", "table"),
    ("op", "table"),
    ("psg", "plain"),
    ("access", "plain"),
    ("access", "table"),
]


class Size(NamedTuple):
    """The bytes of arrays, the bytes of all other objects, and the entries that modules keep."""

    arrays: int
    objects: int
    entries: int


def reachable(root: object, aside: object) -> Iterator[object]:
    """Yield all that can be reached from here, but for one object set aside.

    Nothing is reached through events: table feeds free the last ones only when room runs out.
    """
    seen, waiting = {id(aside)}, [root]
    while waiting:
        each = waiting.pop()
        if id(each) not in seen and not isinstance(each, OUTSIDE):
            seen.add(id(each))
            yield each
            if not isinstance(each, Event):
                waiting += gc.get_referents(each)


def size_of(root: object, aside: object) -> Size:
    """Return the size of all that can be reached from here, but for one object set aside."""
    arrays = objects = 0
    for each in reachable(root, aside):
        if isinstance(each, np.ndarray):
            arrays += each.nbytes
        else:
            objects += sys.getsizeof(each)
    return Size(arrays, objects, kept_by_modules())


def kept_by_modules() -> int:
    """Return how many entries the containers at the top of our modules have."""
    ours = [module for name, module in sys.modules.items() if name.startswith("tidings")]
    kept = {id(each): each for module in ours for each in vars(module).values()}
    return sum(len(each) for each in kept.values() if isinstance(each, dict | list | set))


def engine_of(index: str, feeds: str) -> Engine:
    engine = Engine(index=index, feeds=feeds, remember=20, remember_ids="30s")
    engine.subscribe(Subscriber("stays", Policy(k=1)))
    engine.add(Subscription("stays", "stays", "year > 18"))
    return engine


def turn(engine: Engine, n: int) -> None:
    """Let one subscriber come, match and be served, and another one go."""
    name, now = f"u{n:07}", BEGIN + n
    policy = Policy(**PARTS[n % len(PARTS)] | {"k": 1 + n % 13})
    engine.subscribe(Subscriber(name, policy))
    engine.add(Subscription(f"{name}a", name, f"genre = '{name}' and year >= {n % 11}"))
    engine.add(Subscription(f"{name}b", name, f"{name} = 1 or title like 't{n % 13}%'"))
    if n % 3 == 0:
        engine.replace(Subscription(f"{name}a", name, f"year <= {n % 20}"))
        engine.replace(Subscriber(name, policy))
    first = {"genre": name, "year": n % 20, name: 1}
    engine.publish(Event(f"e{n:07}", first, published_at=now, content={"text": name}))
    engine.publish(Event(f"f{n:07}", {"title": f"t{n % 13} {n:07}"}, published_at=now))
    engine.publish(Event(f"late{n:07}", {}, published_at=0))
    if n % 12 == 0:
        engine.feed(name)
        engine.quality()
        engine.explain(name, f"e{n:07}")
        engine.target(Event("q", {"year": 3}, 0), scorer="preference")
    if n >= 5:
        engine.unsubscribe(f"u{n - 5:07}")
    engine.late.clear()
    engine.dead_letters.clear()


def least(
    engine: Engine, turns: range, keep: list[bytes] | None = None, *, look: bool = True
) -> Size:
    """Take turns; return the least that was held at any look, of each kind by itself.

    What goes up and down is at its least then. Published ids do so too slowly: they are counted.
    """
    sizes = list[Size]()
    for n in turns:
        turn(engine, n)
        if keep is not None:
            keep.append(bytes(7))  # 40 bytes, with its header
        if look and n % STEP == STEP - 1:
            gc.collect()
            published = engine._intake._published
            assert len(published) <= IDS
            sizes.append(size_of([engine, keep], published))
    return Size(*map(min, zip(*sizes, strict=True))) if sizes else Size(0, 0, 0)


def oldest_name(root: object, aside: object) -> int:
    """Return the first turn whose subscriber is still named by a text that can be reached."""
    texts = [each for each in reachable(root, aside) if isinstance(each, str)]
    return min(int(found) for text in texts for found in NAMED.findall(text))


def windows(engine: Engine, end: int, keep: list[bytes] | None = None) -> tuple[Size, Size]:
    """Take turns up to `end`; return the sizes of the first and the last window."""
    least(engine, range(WARM), keep, look=False)
    early = least(engine, range(WARM, WARM + WINDOW), keep)
    least(engine, range(WARM + WINDOW, end - WINDOW), keep, look=False)
    return early, least(engine, range(end - WINDOW, end), keep)


@pytest.fixture(autouse=True)
def empty_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the first words of a stream out of the profile, whose size has a bound of its own."""
    monkeypatch.setattr(profile, "MOST_ATTRIBUTES", 0)


@pytest.mark.fuzz
@pytest.mark.parametrize(("index", "feeds"), KINDS)
def test_comings_and_goings_leave_nothing_behind(index: str, feeds: str) -> None:
    """The bound is the same after many more turns, so then it finds even less."""
    engine, end = engine_of(index, feeds), max(LEAST, cases(0) // STEP * STEP)
    early, late = windows(engine, end)
    assert late.objects < early.objects + MOST
    assert late.arrays < early.arrays + MOST
    assert late.entries <= early.entries
    assert oldest_name(engine, engine._intake._published) > end - LEAST // 2


@pytest.mark.slow
def test_a_leak_of_40_bytes_a_turn_would_be_seen() -> None:
    early, late = windows(engine_of("scan", "plain"), LEAST, keep=[])
    assert late.objects >= early.objects + MOST


@pytest.mark.parametrize("kind", ["plain", "table"])
@pytest.mark.parametrize("parts", PARTS[:4])
def test_content_leaves_with_its_event(kind: str, parts: dict[str, Any]) -> None:
    """It is in windows only, not in what is remembered for explanations."""
    engine = Engine(feeds=kind, remember_ids="1s")
    engine.subscribe(Subscriber("u", Policy(**parts)))
    engine.add(Subscription("s", "u", where="n > 0"))
    for number in range(1, 400):
        content = {"text": f"content {number}"}
        engine.publish(Event(f"e{number}", {"n": number}, 10 * number, content=content))
    held = [*reachable(engine, object())]
    held += [each.content_json for each in held if isinstance(each, Event)]
    texts = {each for each in held if isinstance(each, str) and each.startswith('{"text":')}
    assert 1 <= len(texts) <= 64  # slots of a table that are not reused yet
