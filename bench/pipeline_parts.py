"""The parts of bench/pipeline.py: sizes, fan-out, policies, cores, and latency of a trigger."""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import market
from pages import opening, table
from pipeline_run import POLICY, SQL_SIZE, WINDOW, Case, K, Offers, Row, measured, rows_of
from pyspark.sql import DataFrame

import tidings.spark as ts
from tidings.formats.files import write_events
from tidings.index_files.base_files import build_folder
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.policy import Policy

SIZE, MILLION, BROAD_SIZE, FEW, OWN = 100_000, 1_000_000, 150_000, 10_000, 100


class Broad(NamedTuple):
    """A share of broad subscribers, and by how much fewer events are enough."""

    share: float
    divisor: int


BROAD = {"some 60": Broad(0.05, 1), "some 1,000": Broad(1.0, 20)}
POLICIES: dict[str, Any] = {
    "periodic(1h)": {"window": {"name": "periodic", "length": "1h"}},
    "periodic(1h), pruned": {"window": {"name": "periodic", "length": "1h"}},
    "jumping(50, 10)": {"window": {"name": "jumping", "length": 50, "step": 10}},
    "history(100)": {"window": {"name": "history", "length": 100}},
    "continuous": {"window": "continuous"},
    "sliding(100), divrank": {"window": {"name": "sliding", "length": 100}, "diversify": "divrank"},
}
ROUNDS, TRIGGERS, FIRST, SMALL = 2, 40, 10, 100
"""Runs per number of cores; triggers of SMALL events, of which the FIRST do not count."""


def sizes(offers: Offers, wanted: argparse.Namespace) -> Row:
    most = 0 if wanted.speeds else SQL_SIZE
    cases = [Case(f"{size:,}", size, sql=size <= most) for size in wanted.sizes]
    return titled("The pipeline on Spark", "subscriptions", cases, offers)


def million(offers: Offers, wanted: argparse.Namespace) -> Row:
    size = wanted.size or MILLION
    title = "The pipeline on Spark over a million subscriptions"
    return titled(title, "subscriptions", [Case(f"{size:,}", size)], offers)


def fanout(offers: Offers, wanted: argparse.Namespace) -> Row:
    size, most = wanted.size or BROAD_SIZE, len(offers.events)
    cases = [
        Case(label, size, broad=broad.share, events=most // broad.divisor)
        for label, broad in BROAD.items()
    ]
    return titled("The pipeline over matches per event", "matches", cases, offers)


def policies(offers: Offers, wanted: argparse.Namespace) -> Row:
    size = wanted.size or FEW
    cases = [
        Case(label, size, (Policy(k=K, **parts),), broad=1.0, prune=label.endswith("pruned"))
        for label, parts in POLICIES.items()
    ]
    own = [Policy(k=K, window={"name": "sliding", "length": 50 + extra}) for extra in range(OWN)]
    cases.append(Case(f"{OWN} lengths of sliding", size, tuple(own), broad=1.0))
    return titled("The pipeline over policies", "policy", cases, offers)


def titled(title: str, what: str, cases: list[Case], offers: Offers) -> Row:
    return {"title": title, "what": what, "sizes": [measured(case, offers) for case in cases]}


def rows_page(result: Row) -> str:
    by = "" if result["what"] == "policy" else f"sliding({WINDOW}), "
    lines = opening(
        result["title"],
        result,
        f"local[{result['cores']}], {result['sizes'][0]['size']:,} subscriptions unless stated "
        f"otherwise, {by}k = {K}. "
        "`x`: the ratio of events per second to the column before it; those after the feed are its "
        "own. `stages alone` is what the cores could do if they ran the two stages in Python and "
        "nothing else. SQL and DuckDB have only the first of the events where all would take "
        "minutes.",
    )
    return "\n".join([*lines, *rows_of(result["what"], result["sizes"]), ""])


def cores(offers: Offers, wanted: argparse.Namespace) -> Row:
    """Measure the same size on one core and on two, each in its own processes, in turn."""
    size, rows = wanted.size or SIZE, list[Row]()
    for number in (1, 2) * (1 if wanted.quick else ROUNDS):
        line = [sys.executable, str(Path(__file__).with_name("pipeline.py")), "--only", "sizes"]
        line += ["--json", "--speeds", "--cores", str(number), "--sizes", str(size)]
        line += ["--events", str(len(offers.events))]
        output = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True).stdout
        rows += [{"cores": number, **row} for row in json.loads(output)["sizes"]]
    best = {
        number: {name: max(row[name] for row in rows if row["cores"] == number) for name in SPEEDS}
        for number in (1, 2)
    }
    right = all(row["right"] for row in rows)
    events = len(offers.events)
    return {"size": size, "events": events, "rows": rows, "best": best, "right": right}


SPEEDS = {"match_per_s": "match, events/s", "feed_per_s": "feed, events/s"}


def cores_page(result: Row) -> str:
    one, two = result["best"][1], result["best"][2]
    remark = (
        f"{result['size']:,} subscriptions, {result['events']:,} events; the best of several runs."
    )
    right = "the same as the engine's" if result["right"] else "DIFFERENT FROM THE ENGINE'S"
    rows = [
        (about, f"{one[name]:,.0f}", f"{two[name]:,.0f}", f"{two[name] / one[name]:.2f}")
        for name, about in SPEEDS.items()
    ]
    head = ("", "local[1]", "local[2]", "times")
    lines = opening(
        "The pipeline on one core and on two", result, f"{remark} Deliveries are {right}."
    )
    return "\n".join([*lines, *table(head, rows), ""])


def latency(offers: Offers, wanted: argparse.Namespace) -> Row:
    """Run triggers of few events through nothing, the match stage, and everything."""
    size = wanted.size or SIZE
    folder = offers.folder / "small"
    (folder / "in").mkdir(parents=True)
    first, count = (1, 3) if wanted.quick else (FIRST, FIRST + TRIGGERS)
    stream = market.events(count * SMALL)
    for number in range(count):
        some = [next(stream) for _ in range(SMALL)]
        write_events(some, folder / "in" / f"{number:04d}.jsonl")
    (folder / "index").mkdir()
    people = market.people(size, POLICY)
    index = build_folder(folder / "index", bundle_subscribers(people, market.subscriptions(size)))
    reader = offers.spark.readStream.option("maxFilesPerTrigger", 1)
    lines = reader.text(str(folder / "in"))
    frames = {
        "identity": lines,
        "match": ts.match(lines, index),
        "feed": ts.feed(lines, index, buckets=8),
    }
    medians = {name: triggers(frame, folder / name, first) for name, frame in frames.items()}
    return {"size": size, "small": SMALL, "ms": medians}


def triggers(frame: DataFrame, checkpoint: Path, first: int) -> float:
    """Return the milliseconds that a trigger takes after the first ones, which warm up."""
    writer = frame.writeStream.format("noop").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    query.awaitTermination()
    done = [progress for progress in query.recentProgress if progress.numInputRows]
    return median(progress.durationMs["triggerExecution"] for progress in done[first:])


def latency_page(result: Row) -> str:
    ms = result["ms"]
    lines = opening(
        "Latency of a trigger",
        result,
        f"Triggers of {result['small']} events, {result['size']:,} subscriptions, "
        f"local[{result['cores']}], dropped at the end; `identity` is a query that does nothing.",
    )
    rows = [
        (name, f"{median_ms:,.0f} ms", f"{median_ms / ms['identity']:.2f}")
        for name, median_ms in ms.items()
    ]
    return "\n".join([*lines, *table(("", "median per trigger", "x identity"), rows), ""])
