"""Run the benches, each in its own process, and draw the charts.

python bench [NAME] [--quick]

Without a name, all benches run except `long`, which takes an hour by itself. At the end, a table
says how long each took and whether it failed. Further options are passed to the named bench: python
bench interval --sizes 1000 --only sopt-r.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
BENCHES = {
    "interval": "every interval index and its peers, on the paper's workload",
    "interval-tiny": "the same where intervals are short",
    "growth": "how a query grows with k and d",
    "memory": "memory, seen from outside the process",
    "updates": "the live index under change",
    "box": "indexes over several attributes",
    "predicates": "indexes over whole conditions",
    "matches": "all matches of an event, in blocks and by posting lists alone",
    "fanout": "every subscriber's rank of an event",
    "publish": "events through the engine, as objects and as columns",
    "target": "the k best subscriptions through the engine, next to the indexes alone",
    "defaults": "the default engine next to every explicit choice of index and feeds",
    "quota": "a quota by rank, first come and hindsight; the cost of rules",
    "windows": "windows of many subscribers, in arrays and as objects",
    "diversity": "diversifiers over n, k and windows, next to peers and the optimum",
    "covers": "the preferential subscription graph, and covers of many subscribers",
    "pipeline": "the pipeline on Spark, next to the engine, plain SQL and DuckDB",
    "parts": "an index in parts: 5,000,000 subscriptions on Spark",
    "state": "windows in Spark's state store, in buckets and by key",
    "crowds": "the k of one large set of candidates, on Spark and in one process",
    "changes": "changes of subscriptions while a million are served",
    "long": "an hour of simulated days, and whether anything grows",
    "outbox": "notifications through the outbox of a store to queues",
    "service": "the HTTP service under load: publishing, feeds, and live streams",
    "capacity": "the plan of `tidings plan` next to runs that its calibration did not see",
    "compare": "eight policies over one recording, next to one of them alone",
    "preview": "a slider on the page: a tried policy next to the saved one",
    "recovery": "from kill -9 of a pipeline to its next delivery",
}
BY_NAME_ONLY = ("long",)
"""Benches that run only if they are named."""


class Ran(NamedTuple):
    """A bench that has run, its exit status and its duration."""

    name: str
    status: int
    seconds: float


def main() -> int:
    listed = "; ".join(f"{name}: {about}" for name, about in BENCHES.items())
    parser = argparse.ArgumentParser(prog="python bench", description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", choices=BENCHES, help=f"run only this one. {listed}")
    parser.add_argument("--quick", action="store_true", help="small sizes; nothing is written")
    parser.add_argument("--json", action="store_true", help="print lines of JSON, not tables")
    options, further = parser.parse_known_args()
    if further and not options.name:
        parser.error(f"name the bench that gets the option {further[0]}")
    flags = [f"--{flag}" for flag in ("quick", "json") if getattr(options, flag)] + further
    names = [options.name] if options.name else [n for n in BENCHES if n not in BY_NAME_ONLY]
    # A bench that fails does not keep the others from being measured.
    ran = [run(name, *flags) for name in names]
    if not options.quick:
        ran.append(run("plots"))
    if not options.name:
        print("\n".join(summary(ran)), file=sys.stderr)
    return max(abs(each.status) for each in ran)


def run(name: str, *flags: str) -> Ran:
    file, *workload = name.split("-")
    flags = (*(["--workload", *workload] if workload else []), *flags)
    started = time.perf_counter()
    line = [sys.executable, HERE / f"{file}.py", *flags]
    status = subprocess.run(line, check=False).returncode
    return Ran(name, status, time.perf_counter() - started)


def summary(ran: Sequence[Ran]) -> list[str]:
    """Return how long each bench took, all of them, and which failed."""
    lines = [
        f"{each.name:16}{each.seconds:8,.0f} s{'' if each.status == 0 else '  failed'}"
        for each in ran
    ]
    minutes = sum(each.seconds for each in ran) / 60
    failed = sum(each.status != 0 for each in ran)
    return [*lines, f"{len(ran)} benches in {minutes:,.0f} min, {failed} failed"]


if __name__ == "__main__":
    sys.exit(main())
