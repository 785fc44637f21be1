"""Every subscriber's rank of an event: compiled fan-out against each subscriber's own ranker.

python bench/fanout.py [--sizes 10000 100000 1000000] [--quick]

5 subscriptions per subscriber: a condition of two predicates with two refinements, another with
one, so that preferences involve covers; attributes and values as in bench/predicates.py, 20
attributes per event. `plain` runs the scan and every ranker, at 10,000 subscriptions, and is
extrapolated in proportion. `engine` publishes through columnar feeds, sliding(100) with k = 10.
Times are those of the calling thread. Results go to bench/results/fanout.json and fanout.md.
"""

import argparse
import gc
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import pages
from pages import figure, machine, opening, publish, table
from predicates import Words, part
from timing import OWN, timed

from tidings.engine.engine import Engine
from tidings.model.conditions.predicate import Condition
from tidings.model.records import Event, Subscription
from tidings.policy import Policy, Subscriber
from tidings.rank.matcher import Matcher
from tidings.window.sliding import Sliding

PLAIN, CHUNK, OWNED, ATTRIBUTES = 10_000, 500, 5, 20
DEPTHS = (3, 2)
SCORERS: dict[str, Any] = {
    "preference": "preference",
    "preference, mean": {"name": "preference", "aggregate": "mean"},
    "exact": "exact",
    "relaxed": "relaxed",
    "graph": "graph",
}
MOST, LARGE = 100_000, ("preference", "graph")
"""Above this size, one scorer that needs whole matches and one that needs partial ones."""
FEW = {"relaxed": 20, "graph": 20}
"""There are so many partial matches that fewer events suffice."""


def main() -> None:
    wanted = arguments()
    result = {"machine": machine(), "owned": OWNED, "attributes": ATTRIBUTES}
    result["sizes"] = {size: measured(size, wanted.rounds) for size in wanted.sizes}
    first = result["sizes"][wanted.sizes[0]]
    plain = {row["scorer"]: row["plain_us"] for row in first if "plain_us" in row}
    for size, rows in result["sizes"].items():
        for row in rows:
            if row["scorer"] in plain:
                expected = plain[row["scorer"]] * size / wanted.sizes[0]
                row["ratio"] = expected / row["rank_us"]
    publish("fanout", result, page, wanted)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "2,000 subscriptions")
    parser.add_argument("--sizes", type=int, nargs="+", default=[PLAIN, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    wanted = parser.parse_args()
    if wanted.quick:
        wanted.sizes, wanted.rounds = [2_000], 2
    return wanted


def subscriptions(size: int, seed: int) -> list[Subscription]:
    """Return chains of conditions, each refining the previous one."""
    words, drawn = Words(seed), []
    for person in range(size // OWNED):
        for chain, depth in enumerate(DEPTHS):
            parts = [part(words, attribute) for attribute in words.attributes(1 + depth)]
            for step in range(depth):
                condition = Condition((tuple(parts[: 2 + step]),))
                name, rank = f"s{person:06d}-{chain}{step}", round(words.chance.random(), 2)
                drawn.append(
                    Subscription(name, owner(person), condition, prefrank=rank, score=rank)
                )
    return drawn


def owner(person: int) -> str:
    return f"p{person:06d}"


def people(size: int, scorer: Any) -> list[Subscriber]:
    policy = Policy(k=10, scorer=scorer, window=Sliding(100))
    return [Subscriber(owner(person), policy) for person in range(size // OWNED)]


def events(count: int, seed: int) -> list[Event]:
    words = Words(seed)
    return [
        Event(f"e{number:06d}", said(words), number, sequence=number) for number in range(count)
    ]


def said(words: Words) -> dict[str, Any]:
    return {
        f"a{attribute}": round(words.chance.random() * 1000, 2) if attribute % 2 else words.word()
        for attribute in words.attributes(ATTRIBUTES)
    }


def measured(size: int, rounds: int) -> list[dict[str, Any]]:
    wishes, stream = subscriptions(size, 7), events(CHUNK * (rounds + 1), 8)
    gc.freeze()
    names = SCORERS if size <= MOST else LARGE
    return [figures(name, size, wishes, stream) for name in names]


def figures(
    name: str, size: int, wishes: list[Subscription], stream: list[Event]
) -> dict[str, Any]:
    everyone, few = people(size, SCORERS[name]), FEW.get(name, CHUNK)
    matcher, build = timed(lambda: Matcher(everyone, wishes, "access"), OWN)
    chunks = [stream[at : at + few] for at in range(CHUNK, len(stream), CHUNK)]
    first = timed(lambda: matcher.match_many(stream[:few]), OWN)[1]
    index, ranker = matcher.compiled
    index.settle()
    matcher.match_many(stream[:few])
    took = [timed(lambda chunk=chunk: matcher.match_many(chunk), OWN) for chunk in chunks]
    ranks, least = took[0][0], min(seconds for _, seconds in took)
    row = {
        "scorer": name,
        "build_s": build + first,
        "matches": len(ranks.subscribers) / few,
        "rank_us": least / few * 1e6,
        "bytes": ranker.nbytes / size,
        "right": True,
    }
    if size <= PLAIN:
        row |= plainly(matcher, everyone, wishes, stream[CHUNK : CHUNK + 5])
    if name == "preference":
        row["engine_us"] = published(everyone, wishes, chunks) / few * 1e6
    print(f"{size:,} {name}: {row['rank_us']:.0f} us", file=sys.stderr, flush=True)
    return row


def plainly(
    matcher: Matcher, everyone: list[Subscriber], wishes: list[Subscription], few: list[Event]
) -> dict[str, Any]:
    """Measure the plain form over some events, whose answers must be the same."""
    scan = Matcher(everyone, wishes, "scan")
    scan.matches(few[0])  # prepares the rankers
    timings = [timed(lambda event=event: scan.matches(event), OWN) for event in few]
    right = all(
        matches == matcher.matches(event) for event, (matches, _) in zip(few, timings, strict=True)
    )
    return {"plain_us": min(seconds for _, seconds in timings) * 1e6, "right": right}


def published(
    everyone: list[Subscriber], wishes: list[Subscription], chunks: list[list[Event]]
) -> float:
    engine = Engine(index="access", feeds="table", remember=100)
    for each in everyone:
        engine.subscribe(each)
    engine.add_many(wishes)
    engine.publish_many(chunks[0])
    rest = chunks[1:]
    return min(timed(lambda chunk=chunk: engine.publish_many(chunk), OWN)[1] for chunk in rest)


HEAD = (
    "scorer",
    "build s",
    "bytes per subscription",
    "ranks per event",
    "us per event",
    "events/s",
    "x plain",
    "us through the engine",
    "plain, us",
    "right",
)


def page(result: dict[str, Any]) -> str:
    lines = opening(
        "Ranks of all subscribers",
        result,
        "`x plain`: speed-up over the plain form, which is extrapolated in proportion to the "
        "subscriptions from the first table on. `bytes` are the records next to the index.",
    )
    for size, rows in result["sizes"].items():
        lines += [f"## {size:,} subscriptions of {size // OWNED:,} subscribers", ""]
        lines += [*table(HEAD, map(cells, rows)), ""]
    return "\n".join(lines)


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["scorer"],
        figure(row, "build_s", ".1f"),
        figure(row, "bytes", ".0f"),
        figure(row, "matches", ",.0f"),
        figure(row, "rank_us", ",.1f"),
        f"{1e6 / row['rank_us']:,.0f}",
        pages.ratio(row["ratio"]) if "ratio" in row else "-",
        figure(row, "engine_us", ",.0f"),
        figure(row, "plain_us", ",.0f"),
        "yes" if row["right"] else "NO",
    )


if __name__ == "__main__":
    main()
