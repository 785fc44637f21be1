"""Diversifiers side by side: over n and k, and against peers.

python bench/diversity.py [--quick]

Times are CPU time, the best of several rounds in which competitors take turns, on one core; ratios
hold within one run. Results go to bench/results/diversity.json and diversity.md, with the machine
and the commit. Peers are left out if they are not installed.
"""

import argparse
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pages
from diversity_page import page
from pages import machine, publish
from sketches import beside
from variants import Catalogue

from tidings.diversify import DIVERSIFIERS, Candidate
from tidings.diversify.covers import MaxDivRel
from tidings.diversify.greedy import DivRank
from tidings.diversify.plain.diversifiers import PLAIN

K, ALPHA = 10, 0.5
DIMENSIONS = (32, 128, 384)


def main() -> None:
    options = arguments()
    compile_all()
    result = {
        "machine": machine(),
        "choices": choices(options),
        "peers": peers(options),
        "sketches": {w: beside(w, 50, options.rounds) for w in options.windows},
    }
    publish("diversity", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "small windows, few rounds")
    options = parser.parse_args()
    options.windows = (100, 1000, 10_000)
    options.rounds, options.counts = 15, (100, 1000)
    if options.quick:
        options.windows = (100, 1000)
        options.rounds, options.counts = 5, (100,)
    return options


def compile_all() -> None:
    few = Catalogue(5).candidates(12)
    for make in DIVERSIFIERS.values():
        make().choose(few, 3)


def taking_turns(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the milliseconds of each call, the best of the rounds."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            started = time.process_time()
            call()
            times[name].append((time.process_time() - started) * 1e3)
    return {name: min(spent) for name, spent in times.items()}


def choices(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure every diversifier on new lists of candidates, whose events were hashed before."""
    rows = []
    for n in options.counts:
        window = Catalogue(20).candidates(n)
        for name, make in DIVERSIFIERS.items():
            if name != "optimal":
                rows.append(choice(make(), window, n))
        for part in (MaxDivRel(alpha=ALPHA), DIVERSIFIERS["disc"](alpha=ALPHA)):  # type: ignore[call-arg]
            rows.append(choice(part, window, n))
    return rows


def choice(part: Any, window: list[Candidate], n: int) -> dict[str, Any]:
    name = part.name if getattr(part, "alpha", None) is None else f"{part.name}, alpha {part.alpha}"
    calls = {str(k): lambda k=k: part.choose(window, k) for k in (5, 10, 50)}
    row = {"name": name, "n": n, "ms": taking_turns(calls, 5)}
    if n <= 100:
        plain = {"plain": lambda: PLAIN[part.name](part, window, K)}
        row["plain"] = taking_turns(plain, 1)["plain"]
    return row


def peers(options: argparse.Namespace) -> dict[str, float]:
    """Measure divrank from attributes against pyversity's MMR on given vectors."""
    chance, n = np.random.default_rng(3), 1000
    window = Catalogue(6).candidates(n)
    part, scores = DivRank(sigma=0.5), np.array([each.rank for each in window], np.float32)
    calls = {"divrank, overlap of 6 attributes": lambda: part.choose(window, K)}
    try:
        peer = import_module("pyversity")
    except ImportError:
        return taking_turns(calls, options.rounds)
    for size in DIMENSIONS:
        vectors = chance.normal(size=(n, size)).astype(np.float32)
        calls[f"pyversity MMR, {size} dimensions"] = lambda vectors=vectors: peer.diversify(
            vectors, scores, k=K, strategy=peer.Strategy.MMR, diversity=0.5
        )
    return taking_turns(calls, 3 * options.rounds)


if __name__ == "__main__":
    main()
