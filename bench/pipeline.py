"""The pipeline on Spark, end to end, next to the engine in one process and to plain SQL.

python bench/pipeline.py [--only sizes million fanout policies cores latency]
    [--sizes 10000 100000] [--events 50000] [--cores 2] [--quick]

The market of bench/market.py, 5 subscriptions per subscriber. `kernel` ranks for all subscribers in
this process, on one core; `match` reads Parquet, matches on Spark and drops the matches; `feed`
continues through windows, sliding(100) with k = 10, to deliveries; `engine` publishes to the same
feeds in this process, as objects and as tables; `sql` is bench/market_sql.py over fewer events,
where it ends in time, and `DuckDB` the same in bench/market_duckdb.py on two threads. Each is run
once before it is timed; feeds are right if they deliver as much as the engine, and DuckDB if it
finds the same matches. `stages alone` is bench/stages_alone.py: what the cores could do without
Spark. Each part has as many events as take seconds, so that the start of a job, some tenths of a
second, counts little. Further parts are those of bench/pipeline_parts.py: a million subscriptions,
more matches per event, other policies, one core and two, and the latency of a trigger. Each part
has its page in bench/results: pipeline.md, pipeline-fanout.md and so on.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, Protocol

sys.path.insert(0, str(Path(__file__).parent))

import pages
from pages import machine, publish
from pipeline_parts import (
    cores,
    cores_page,
    fanout,
    latency,
    latency_page,
    million,
    policies,
    rows_page,
    sizes,
)
from pipeline_run import Offers, Row

import tidings.spark as ts


class Run(Protocol):
    def __call__(self, offers: Offers, wanted: argparse.Namespace) -> Row: ...


class Page(Protocol):
    def __call__(self, result: Row) -> str: ...


class Part(NamedTuple):
    """One part of the bench: its measurement, its page, and the number of its events."""

    run: Run
    page: Page
    events: int


PARTS = {
    "sizes": Part(sizes, rows_page, 50_000),
    "million": Part(million, rows_page, 20_000),
    "fanout": Part(fanout, rows_page, 100_000),
    "policies": Part(policies, rows_page, 20_000),
    "cores": Part(cores, cores_page, 50_000),
    "latency": Part(latency, latency_page, 0),
}


def main() -> None:
    wanted, fallen = arguments(), list[str]()
    spark = ts.session("tidings-bench", cores=wanted.cores)
    for part in wanted.only:
        events = PARTS[part].events if wanted.events is None else wanted.events
        about = {"machine": machine(), "cores": wanted.cores}
        with TemporaryDirectory() as folder:
            offers = Offers(spark, Path(folder), events)
            result = about | PARTS[part].run(offers, wanted)
        name = "pipeline" if part == "sizes" else f"pipeline-{part}"
        try:
            publish(name, result, PARTS[part].page, wanted)
        except SystemExit as falls:  # the other parts are measured nevertheless
            fallen.append(str(falls))
    if fallen:
        sys.exit("\n".join(fallen))


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "1,000 subscriptions")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--events", type=int, help="of every part, instead of its own number")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--size", type=int, help="subscriptions of the other parts")
    parser.add_argument("--speeds", action="store_true", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.quick:
        wanted.sizes, wanted.size, wanted.events = [1_000], wanted.size or 1_000, 400
    wanted.quick = wanted.quick or wanted.speeds
    return wanted


if __name__ == "__main__":
    main()
