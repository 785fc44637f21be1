"""Times of calls, in seconds. The least of several rounds is what a busy machine disturbs least.

`WALL` is the time that passes. `OWN` is that of the calling thread on its core: what others take
away meanwhile does not count, so on a busy machine long calls are not put at a disadvantage. It
misses work in other threads and processes.
"""

import time
from collections.abc import Callable, Sized
from typing import Any

Clock = Callable[[], float]
WALL: Clock = time.perf_counter
OWN: Clock = time.thread_time


def least(call: Callable[[], Any], rounds: int, seconds: float, clock: Clock = WALL) -> float:
    """The least time of a call in some rounds, which end early when they take too long."""
    best, spent = float("inf"), 0.0
    for _ in range(rounds):
        took = timed(call, clock)[1]
        best, spent = min(best, took), spent + took
        if spent > seconds:
            break
    return best


def timed(call: Callable[[], Any], clock: Clock = WALL) -> tuple[Any, float]:
    started = clock()
    return call(), clock() - started


def per(items: Sized, seconds: float) -> float:
    """Microseconds an item."""
    return seconds / len(items) * 1e6
