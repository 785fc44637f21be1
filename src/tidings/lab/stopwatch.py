"""Processor times of interleaved calls, which are comparable even on a busy machine."""

import time
from collections.abc import Callable, Mapping
from typing import Any


def least_times(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the milliseconds of processor time of each call: the least of several rounds.

    The first call of each is not measured: it may load or compile kernels.
    """
    for call in calls.values():
        call()
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            started = time.process_time()
            call()
            best[name] = min(best[name], (time.process_time() - started) * 1e3)
    return best
