"""A running process and its children, sampled from outside, and whether they grow."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import linear_regression, median
from typing import Any

Sample = dict[str, float]
ALLOWED = 1.15
"""A figure is flat if its last quarter's median is at most this many times the second's."""


def processes(root: int) -> dict[str, list[int]]:
    """Return the descendants of a process, by the program that they run."""
    parents, names = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            head, _, rest = entry.read_text().rpartition(")")
            number = int(entry.parent.name)
            names[number], parents[number] = head.partition("(")[2], int(rest.split()[1])
    by_program: dict[str, list[int]] = {"driver": [root], "java": [], "worker": []}
    for number, name in names.items():
        if root in ancestors(number, parents):
            by_program["java" if name == "java" else "worker"].append(number)
    return by_program


def ancestors(number: int, parents: dict[int, int]) -> Iterator[int]:
    while (number := parents.get(number, 0)) > 1:
        yield number


def memory(numbers: Iterable[int]) -> Sample:
    """Return the private bytes of processes, and all that they have in memory."""
    own = whole = 0
    for number in numbers:
        with suppress(OSError, ProcessLookupError):
            lines = Path(f"/proc/{number}/smaps_rollup").read_text().splitlines()[1:]
            fields = dict(line.split(":", 1) for line in lines)
            kilobytes = {name: int(text.split()[0]) for name, text in fields.items()}
            own += 1024 * (kilobytes["Private_Clean"] + kilobytes["Private_Dirty"])
            whole += 1024 * kilobytes["Rss"]
    return {"own": own, "rss": whole}


def entries(kind: str, numbers: Iterable[int]) -> int:
    """Return the number of open files (`fd`) or threads (`task`) of processes."""
    count = 0
    for number in numbers:
        with suppress(OSError):
            count += len([*Path(f"/proc/{number}/{kind}").iterdir()])
    return count


def size(*paths: Path) -> int:
    """Return the bytes of files and of the content of folders."""
    total = 0
    for path in paths:
        for place, _, names in os.walk(path) if path.is_dir() else [(path.parent, [], [path.name])]:
            for name in names:
                with suppress(OSError):
                    total += (Path(place) / name).stat().st_size
    return total


def quarters(values: Sequence[float]) -> list[float]:
    """Return the median of each quarter of a series."""
    cuts = [round(len(values) * part / 4) for part in range(5)]
    return [median(values[a:b] or [0.0]) for a, b in pairwise(cuts)]


def trend(hours: Sequence[float], values: Sequence[float]) -> dict[str, Any]:
    """Return the medians of a series, its growth per hour, and whether it is flat.

    The growth is that of a straight line through the second half.
    """
    half = len(values) // 2
    slope = linear_regression(hours[half:], values[half:]).slope if len(values) - half > 1 else 0.0
    _, second, _, last = quarters(values)
    return {
        "second": second,
        "last": last,
        "most": max(values, default=0.0),
        "an_hour": slope,
        "flat": last <= second * ALLOWED,
    }
