"""Processor times of interleaved calls, comparable even on a busy machine, and of processes."""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple


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


_PROC: Final = Path("/proc")


class _Usage(NamedTuple):
    parent: int
    ticks: int


def processor_seconds() -> float:
    """Return the processor time so far; without /proc, that of this process alone."""
    usage = _read_all()
    me = os.getpid()
    if me not in usage:
        times = os.times()
        return times.user + times.system
    ticks = sum(process.ticks for number, process in usage.items() if _descends(number, me, usage))
    return ticks / os.sysconf("SC_CLK_TCK")


def machine_seconds() -> float:
    """Return the processor time of all processes so far; without /proc, of ours alone."""
    stat = _PROC / "stat"
    if not stat.exists():
        return processor_seconds()
    user, nice, system = map(int, stat.read_text().split(maxsplit=4)[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def _read_all() -> dict[int, _Usage]:
    """Return the usage of every process, including that of its children which have ended."""
    usage = dict[int, _Usage]()
    for path in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended meanwhile
            # The name of a program, in parentheses, may contain spaces and parentheses.
            fields = path.read_text().rpartition(")")[2].split()
            usage[int(path.parent.name)] = _Usage(int(fields[1]), sum(map(int, fields[11:15])))
    return usage


def _descends(number: int, root: int, usage: dict[int, _Usage]) -> bool:
    while number != root:
        if number not in usage:
            return False
        number = usage[number].parent
    return True
