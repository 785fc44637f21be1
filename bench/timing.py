"""Times of calls, in seconds. The least of several rounds is what a busy machine disturbs least."""

import time
from collections.abc import Callable, Sized
from typing import Any


def least(call: Callable[[], Any], rounds: int, seconds: float) -> float:
    """The least time of a call in some rounds, which end early when they take too long."""
    best, spent = float("inf"), 0.0
    for _ in range(rounds):
        took = timed(call)[1]
        best, spent = min(best, took), spent + took
        if spent > seconds:
            break
    return best


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    return call(), time.perf_counter() - started


def per(items: Sized, seconds: float) -> float:
    """Microseconds an item."""
    return seconds / len(items) * 1e6
