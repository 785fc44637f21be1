"""Times of calls, in seconds. The best of several rounds is the least disturbed by other load.

`WALL` is elapsed time. `OWN` is the CPU time of the calling thread: time taken by other processes
does not count, so on a busy machine long calls are not at a disadvantage. It misses work in other
threads and processes.
"""

import time
from collections.abc import Callable, Sized
from typing import Any

Clock = Callable[[], float]
WALL: Clock = time.perf_counter
OWN: Clock = time.thread_time


def least(call: Callable[[], Any], rounds: int, seconds: float, clock: Clock = WALL) -> float:
    """Return the least time of a call in several rounds, which end early if they take too long."""
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
    """Return microseconds per item."""
    return seconds / len(items) * 1e6
