"""One arrival in a window of w: ILSH beside datasketch and rensa, which sketch, query and insert.

ILSH also lets the oldest event go and keeps the votes; the peers do neither.
"""

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
from variants import Catalogue, texts

from tidings.diversify import Ilsh
from tidings.diversify.event_tokens import token_hashes

TABLES, ROWS = 16, 8
CHUNK = 100
BEFORE = 3000
"""Events that the stream has seen before the window was filled."""
Step = Callable[[Any], None]


def ilsh_steps(w: int) -> Step:
    """Arrivals and expiries in a window that is full."""
    ilsh, at = Ilsh((TABLES, ROWS), room=w + 1), 0
    keys = np.random.default_rng(5).random(4096).tolist()

    def step(event: Any) -> None:
        nonlocal at
        ilsh.enter(at % (w + 1), event, keys[at % 4096], (at, 0))
        if at >= w:
            ilsh.expire((at - w) % (w + 1))
        at += 1

    return step


def datasketch_steps(update: Callable[[Any, list[bytes]], None]) -> Step:
    peer = import_module("datasketch")
    lsh, at = peer.MinHashLSH(num_perm=TABLES * ROWS, params=(TABLES, ROWS)), 0

    def step(tokens: list[str]) -> None:
        nonlocal at
        sketch = peer.MinHash(TABLES * ROWS)
        update(sketch, [each.encode() for each in tokens])
        lsh.query(sketch)
        lsh.insert(at, sketch)
        at += 1

    return step


def one_by_one(sketch: Any, tokens: list[bytes]) -> None:
    """As the documentation has it: an update for each token."""
    for each in tokens:
        sketch.update(each)


def together(sketch: Any, tokens: list[bytes]) -> None:
    """With all tokens of an event in one update."""
    sketch.update_batch(tokens)


def rensa_steps() -> Step:
    peer = import_module("rensa")
    lsh = peer.RMinHashLSH(threshold=0.5, num_perm=TABLES * ROWS, num_bands=TABLES)
    at = 0

    def step(tokens: list[str]) -> None:
        nonlocal at
        sketch = peer.RMinHash(num_perm=TABLES * ROWS, seed=42)
        sketch.update(tokens)
        lsh.query(sketch)
        lsh.insert(at, sketch)
        at += 1

    return step


PEERS: dict[str, Callable[[], Step]] = {
    "datasketch, update": lambda: datasketch_steps(one_by_one),
    "datasketch, update_batch": lambda: datasketch_steps(together),
    "rensa": rensa_steps,
}


def beside(w: int, size: int, rounds: int) -> dict[str, float]:
    """Microseconds of a step: the least of some rounds, in which all take turns."""
    catalogue = Catalogue(size)
    earlier, filled = catalogue.events(BEFORE), catalogue.events(w)
    steps: dict[str, Step] = {"ILSH, new event": ilsh_steps(w), "ILSH, hashes kept": ilsh_steps(w)}
    for name, make in PEERS.items():
        try:
            steps[name] = make()
        except ImportError:
            continue
    for name, step in steps.items():
        ours = name.startswith("ILSH")
        for each in (earlier + filled) if ours else texts(filled):
            step(each)
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, seconds in turn(catalogue.events(CHUNK), steps):
            times[name].append(seconds / CHUNK * 1e6)
    return {name: min(each) for name, each in times.items()}


def turn(events: list[Any], steps: dict[str, Step]) -> Iterator[tuple[str, float]]:
    """Every competitor takes the same new events; `hashes kept` those that were hashed before."""
    tokens = texts(events)
    for name, step in steps.items():
        if name == "ILSH, hashes kept":
            for event in events:
                token_hashes(event)
        items = events if name.startswith("ILSH") else tokens
        started = time.process_time()
        for each in items:
            step(each)
        yield name, time.process_time() - started
