"""Run the benches, each in its own process, and draw the charts.

python bench [NAME] [--quick]

Further options are passed to the named bench: python bench interval --sizes 1000 --only sopt-r.
"""

import argparse
import subprocess
import sys
from pathlib import Path

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
    names = [options.name] if options.name else list(BENCHES)
    # A bench that fails does not keep the others from being measured.
    statuses = [run(name, *flags) for name in names]
    if not options.quick:
        statuses.append(run("plots"))
    return max(map(abs, statuses))


def run(name: str, *flags: str) -> int:
    file, *workload = name.split("-")
    flags = (*(["--workload", *workload] if workload else []), *flags)
    return subprocess.run([sys.executable, HERE / f"{file}.py", *flags], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
