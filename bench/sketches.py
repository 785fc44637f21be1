"""One arrival in a window of w: `maxdivrel-lsh` next to datasketch and rensa.

Ours is a sliding window of one subscriber in columnar feeds: it sketches the event, updates the
votes, expires the oldest event and delivers the k of most votes. The peers sketch, query, insert.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from variants import Catalogue, texts

from tidings.diversify.event_tokens import token_hashes
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.feed import FEEDS
from tidings.model.records import Event, Match
from tidings.policy import Policy, Subscriber
from tidings.window import Moment

TABLES, ROWS, K = 16, 8, 10
CHUNK = 100
BEFORE = 3000
"""Events that the stream has seen before the window is filled."""
Step = Callable[[Any], None]


class LshWindow:
    """A sliding window of w events whose k of most votes are delivered."""

    def __init__(self, w: int, part: MaxDivRelLsh, k: int = K) -> None:
        policy = Policy(k=k, window={"name": "sliding", "length": w}, diversify=part)
        self._feeds, self._sequence = FEEDS["table"](), 0
        self._feeds.enrol(Subscriber("reader", policy))
        self._scores = np.random.default_rng(5).random(4096).tolist()

    def offer(self, events: Sequence[Event]) -> None:
        """Offer new events, in order of publication."""
        offers = []
        for event in events:
            self._sequence += 1
            match = Match("reader", event, self._scores[self._sequence % 4096], ("s",))
            offers.append((match, Moment(event.published_us, self._sequence)))
        self._feeds.offer_many(offers)


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
    earlier, filled = catalogue.events(BEFORE), catalogue.events(w)
    part = MaxDivRelLsh(tables=TABLES, rows=ROWS)
    ours = {name: LshWindow(w, part) for name in ("LSH window, new event", "LSH window, hashed")}
    peers: dict[str, Step] = {}
    for name, make in PEERS.items():
        try:
            peers[name] = make()
        except ImportError:
            continue
    for window in ours.values():
        window.offer(earlier + filled)
    for step in peers.values():
        for tokens in texts(filled):
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
        events = catalogue.events(CHUNK)
        if name == "LSH window, hashed":
            for event in events:
                token_hashes(event)
        started = time.process_time()
        window.offer(events)
        yield name, time.process_time() - started
    tokens = texts(catalogue.events(CHUNK))
    for name, step in peers.items():
        started = time.process_time()
        for item in tokens:
            step(item)
        yield name, time.process_time() - started
