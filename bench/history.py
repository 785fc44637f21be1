"""The ratios of every run by commit, in results/history.jsonl, and which of them have fallen.

A ratio compares two ways to do the same work within one run, so that it can be compared with that
of another day, or of another machine. A run on a busy machine is marked, and never compared.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

FALLEN = 0.9
"""A ratio below this share of the earlier ones has fallen."""
RECENT = 5
"""A ratio is compared with the median of this many runs, so that one that fell fails again."""
LABELS = (
    *("workload", "case", "shape", "name", "scorer", "policy", "kind", "rules"),
    *("label", "size", "subscriptions", "way"),
)
"""The fields that tell the rows of a result apart."""
COSTS = ("compare", "defaults", "quota", "service", "service-spark")
"""The benches whose ratios are costs: less is better."""
PEERS = ("numpy", "superintervals", "ncls", "intervaltree", "postgres", "naive")
"""Rows that begin so are what we compare with."""
BUSY = 0.5
"""A machine is busy if others use more than this many cores."""

Ratios = dict[str, float]


def is_busy(machine: dict[str, Any]) -> bool:
    """Return whether other processes took more than half a core when a run began, or during it.

    Older results know only the load, which includes the bench that ran before.
    """
    used = [machine.get("others", machine.get("load")), machine.get("others_during")]
    return any(isinstance(cores, int | float) and cores > BUSY for cores in used)


def ratios(result: Any) -> Ratios:
    """Return all numbers of a result that are called ratios, by where they stand.

    >>> ratios({"rows": [{"name": "access", "top_ratio": 3.0, "top_us": 7}]})
    {'access top_ratio': 3.0}
    """
    return dict(_ratios(result, ()))


def _ratios(value: Any, place: tuple[str, ...]) -> Iterator[tuple[str, float]]:
    if isinstance(value, list):
        for member in value:
            yield from _ratios(member, place)
    if not isinstance(value, dict):
        return
    if str(value.get("name", "")).startswith(PEERS):
        return
    place += tuple(str(value[label]) for label in LABELS if isinstance(value.get(label), str | int))
    for label, member in value.items():
        key = str(label)  # results by size have numbers as keys until they are written
        if key.endswith("ratio") and isinstance(member, int | float):
            yield " ".join((*place, key)), float(member)
        elif key.endswith("ratio") and isinstance(member, dict):
            for peer, number in member.items():
                yield " ".join((*place, key, peer)), float(number)
        elif key.isdecimal():  # results by size
            yield from _ratios(member, (*place, key))
        else:
            yield from _ratios(member, place)


def note(path: Path, bench: str, result: dict[str, Any]) -> list[str]:
    """Append the ratios of a run to a history; return a sentence for each that has fallen."""
    machine = result["machine"]
    run = {
        "bench": bench,
        "commit": machine.get("commit"),
        "load": machine.get("load"),
        "busy": is_busy(machine),
        "ratios": ratios(result),
    }
    before = recent(path, bench)
    with path.open("a") as file:
        file.write(json.dumps(run) + "\n")
    return [] if run["busy"] else list(_falls(bench, before, run))


def recent(path: Path, bench: str) -> list[dict[str, Any]]:
    """Return the last runs of a bench on a quiet machine, the newest one last."""
    lines = path.read_text().splitlines() if path.exists() else []
    runs = [run for run in map(json.loads, lines) if run["bench"] == bench and not run["busy"]]
    return runs[-RECENT:]


def _falls(bench: str, before: Sequence[dict[str, Any]], run: dict[str, Any]) -> Iterator[str]:
    for name, ratio in run["ratios"].items():
        earlier = [one for one in before if name in one["ratios"]]
        if not earlier:
            continue
        old = median(one["ratios"][name] for one in earlier)
        better, worse = (old, ratio) if bench not in COSTS else (ratio, old)
        if worse < FALLEN * better:
            until = f"until {earlier[-1]['commit']}"
            yield f"{bench}: {name} was {old:.3g} {until}, and is {ratio:.3g}"
