"""One arrival in a window of w: `maxdivrel-lsh` next to datasketch and rensa.

Ours is a sliding window of one subscriber in columnar feeds: it sketches the event, updates the
votes, expires the oldest event and delivers the k of most votes. The peers sketch, query, insert.
"""

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from variants import Catalogue, texts

from tidings.diversify.hashed_distances import token_rows
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.lab.papers.lsh_window import LshWindow

TABLES, ROWS, K = 16, 8, 10
CHUNK = 100
BEFORE = 3000
"""Events that the stream has seen before the window is filled."""
Step = Callable[[Any], None]


def datasketch_steps(update: Callable[[Any, list[bytes]], None]) -> Step:
    peer = import_module("datasketch")
    lsh, inserted = peer.MinHashLSH(num_perm=TABLES * ROWS, params=(TABLES, ROWS)), 0

    def step(tokens: list[str]) -> None:
        nonlocal inserted
        sketch = peer.MinHash(TABLES * ROWS)
        update(sketch, [token.encode() for token in tokens])
        lsh.query(sketch)
        lsh.insert(inserted, sketch)
        inserted += 1

    return step


def one_by_one(sketch: Any, tokens: list[bytes]) -> None:
    """Update a sketch token by token, as the documentation shows."""
    for token in tokens:
        sketch.update(token)


def together(sketch: Any, tokens: list[bytes]) -> None:
    """Update a sketch with all tokens of an event at once."""
    sketch.update_batch(tokens)


def rensa_steps() -> Step:
    peer = import_module("rensa")
    lsh = peer.RMinHashLSH(threshold=0.5, num_perm=TABLES * ROWS, num_bands=TABLES)
    inserted = 0

    def step(tokens: list[str]) -> None:
        nonlocal inserted
        sketch = peer.RMinHash(num_perm=TABLES * ROWS, seed=42)
        sketch.update(tokens)
        lsh.query(sketch)
        lsh.insert(inserted, sketch)
        inserted += 1

    return step


PEERS: dict[str, Callable[[], Step]] = {
    "datasketch, update": lambda: datasketch_steps(one_by_one),
    "datasketch, update_batch": lambda: datasketch_steps(together),
    "rensa": rensa_steps,
}


def beside(w: int, size: int, rounds: int) -> dict[str, float]:
    """Return microseconds per step: the best of several rounds, in which all take turns."""
    catalogue = Catalogue(size)
    earlier, filled = catalogue.candidates(BEFORE), catalogue.candidates(w)
    part = MaxDivRelLsh(tables=TABLES, rows=ROWS)
    ours = {name: LshWindow(w, part, K) for name in ("LSH window, new event", "LSH window, hashed")}
    peers: dict[str, Step] = {}
    for name, make in PEERS.items():
        try:
            peers[name] = make()
        except ImportError:
            continue
    for window in ours.values():
        window.offer(earlier + filled)
    for step in peers.values():
        for tokens in texts([each.event for each in filled]):
            step(tokens)
    times: dict[str, list[float]] = {name: [] for name in (*ours, *peers)}
    for _ in range(rounds):
        for name, seconds in turn(catalogue, ours, peers):
            times[name].append(seconds / CHUNK * 1e6)
    return {name: min(spent) for name, spent in times.items()}


def turn(
    catalogue: Catalogue, ours: dict[str, LshWindow], peers: dict[str, Step]
) -> Iterator[tuple[str, float]]:
    """Time each competitor on new events; those of `hashed` have their token hashes already."""
    for name, window in ours.items():
        arrivals = catalogue.candidates(CHUNK)
        if name == "LSH window, hashed":
            token_rows([arrival.event for arrival in arrivals])
        started = time.process_time()
        window.offer(arrivals)
        yield name, time.process_time() - started
    tokens = texts(catalogue.events(CHUNK))
    for name, step in peers.items():
        started = time.process_time()
        for item in tokens:
            step(item)
        yield name, time.process_time() - started
