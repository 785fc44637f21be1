"""Shared parts of every bench: arguments, machine, and the pages and files of results."""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import history

from tidings.lab.stopwatch import machine_seconds, processor_seconds

RESULTS = Path(__file__).parent / "results"
STAT = Path("/proc/stat")
Result = dict[str, Any]


class Used(NamedTuple):
    """Seconds so far: elapsed, of all processors, and of those for this bench and its processes."""

    elapsed_s: float
    busy_s: float
    own_s: float

    @classmethod
    def now(cls) -> "Used | None":
        """Return what was used so far; None on a system that does not tell."""
        if not STAT.exists():
            return None
        return cls(time.perf_counter(), machine_seconds(), processor_seconds())

    def others_since(self, before: "Used") -> float:
        """Return how many cores other processes used meanwhile."""
        others_s = self.busy_s - before.busy_s - (self.own_s - before.own_s)
        return round(max(0.0, others_s) / (self.elapsed_s - before.elapsed_s), 1)


BEGAN = Used.now()


def arguments(doc: str, quick: str) -> argparse.ArgumentParser:
    """Return a parser with the common options; `quick` describes the quick measurement."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{quick}; nothing is written")
    parser.add_argument(
        "--json", action="store_true", help="print a line of JSON instead of tables"
    )
    return parser


def publish(
    name: str, result: Result, page: Callable[[Result], str], options: argparse.Namespace
) -> None:
    """Print a result, and write it to bench/results unless the run was a quick one.

    A run fails if one of its ratios is a tenth below the median of the last quiet runs.
    """
    result["machine"]["load_after"] = load()
    if BEGAN is not None and (now := Used.now()) is not None:
        result["machine"]["others_during"] = now.others_since(BEGAN)
    text = page(result)
    print(json.dumps(result) if options.json else text)
    if not options.quick:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
        (RESULTS / f"{name}.md").write_text(text.rstrip() + "\n")
        if fallen := history.note(RESULTS / "history.jsonl", name, result):
            sys.exit("\n".join(["Ratios have fallen by more than a tenth:", *fallen]))


def machine() -> dict[str, Any]:
    """Return the environment of a run; call it first, so that the load is that of others."""
    return {
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "load": load(),
        "others": others(),
        "python": platform.python_version(),
        "commit": commit(),
    }


def cpu() -> str:
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def load() -> float:
    return round(os.getloadavg()[0], 1)


def others() -> float:
    """Return how many cores other processes use, over half a second in which this one sleeps."""
    if not STAT.exists():
        return load()
    ticks = []
    for pause_s in (0.5, 0):
        user, nice, system, idle, *_ = map(int, STAT.read_text().split()[1:5])
        ticks.append((user + nice + system, idle))
        time.sleep(pause_s)
    (busy, idle), (busy_after, idle_after) = ticks
    spent = busy_after - busy + idle_after - idle
    return round((os.cpu_count() or 1) * (busy_after - busy) / max(1, spent), 1)


def commit() -> str:
    """Return the commit of the tree, `-dirty` if it has changes; `unknown` without git.

    Results do not count: a run of several benches writes them one after the other.
    """
    try:
        head = _git("rev-parse", "--short", "HEAD")
        changes = _git("status", "--porcelain", "--", ":/", ":(top,exclude)bench/results")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head}-dirty" if changes else head


def _git(*arguments: str) -> str:
    line = ["git", *arguments]
    return subprocess.run(
        line, capture_output=True, text=True, check=True, cwd=RESULTS.parent
    ).stdout.strip()


def opening(title: str, result: Result, *remarks: str) -> list[str]:
    """Return the first lines of a page: title, machine and remarks."""
    about = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
    if history.is_busy(result["machine"]):
        about += ". **Measured on a busy machine: only ratios mean something**"
    return [f"# {title}", "", about, "", *(each for remark in remarks for each in (remark, ""))]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [line(head), "|---" * len(head) + "|", *map(line, rows)]


def line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def ratio(times: float) -> str:
    return f"{times:.2g}" if times < 10 else f"{times:,.0f}"


def figure(row: dict[str, Any], key: str, form: str = ",.2f") -> str:
    """Return a figure of a row as text, `-` if there is none."""
    return format(row[key], form) if row.get(key) is not None else "-"
