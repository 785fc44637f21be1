"""Shared parts of every bench: arguments, machine, and the pages and files of results."""

import argparse
import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
Result = dict[str, Any]


def arguments(doc: str, quick: str) -> argparse.ArgumentParser:
    """Return a parser with the common options; `quick` describes the quick measurement."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{quick}; nothing is written")
    parser.add_argument(
        "--json", action="store_true", help="print a line of JSON instead of tables"
    )
    return parser


def publish(
    name: str, result: Result, page: Callable[[Result], str], wanted: argparse.Namespace
) -> None:
    """Print a result, and write it to bench/results unless the run was a quick one."""
    result["machine"]["load_after"] = load()
    text = page(result)
    print(json.dumps(result) if wanted.json else text)
    if not wanted.quick:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
        (RESULTS / f"{name}.md").write_text(text.rstrip() + "\n")


def machine() -> dict[str, Any]:
    """Return the environment of a run; call it first, so that the load is that of others."""
    return {
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "load": load(),
        "python": platform.python_version(),
        "commit": commit(),
    }


def cpu() -> str:
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    names = [each.split(":")[1].strip() for each in lines if each.startswith("model name")]
    return names[0] if names else platform.processor()


def load() -> float:
    return round(os.getloadavg()[0], 1)


def commit() -> str:
    """Return the commit of the tree, `-dirty` if it has changes; `unknown` without git."""
    line = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        found = subprocess.run(
            line, capture_output=True, text=True, check=True, cwd=RESULTS.parent
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.strip()


def opening(title: str, result: Result, *remarks: str) -> list[str]:
    """Return the first lines of a page: title, machine and remarks."""
    about = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
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
