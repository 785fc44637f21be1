"""All matches of an event: blocks of rows that are compared at once, next to posting lists alone.

python bench/matches.py [--sizes 100000 1000000] [--quick]

`lists` is the access index with every conjunction in a posting list, as it was before it had
blocks. Workloads: `wide` has 5 ranges on 20 attributes, each half as wide as the values are spread;
`narrow` has ranges of a hundredth of that; `mixed` adds a text to every second one; `text` has 3
texts, each of which one event in 4 has; `sparse` has 5 half-wide ranges on 253 attributes, of which
an event has 30. 200 events a call; processor time, the best of several rounds in which both take
turns, in microseconds an event. Where nothing is in blocks, both are the same structure. Answers
are compared in full. Results go to bench/results/matches.json and matches.md.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pages
from pages import machine, opening, publish, table
from timing import OWN, timed

from tidings import Event, Subscription
from tidings.index.access import Access, scan_blocks
from tidings.model.conditions.predicate import Condition, Predicate, predicate

CALL, ROUNDS, NEVER = 200, 5, 1 << 60
Row = dict[str, Any]
Parts = list[Predicate]


def main() -> None:
    options = arguments()
    result: Row = {"machine": machine()}
    result["rows"] = [measured(name, size) for size in options.sizes for name in options.workloads]
    publish("matches", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "3,000 subscriptions")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=[*WORKLOADS])
    options = parser.parse_args()
    if options.quick:
        options.sizes = [3_000]
    return options


def ranges(chance: Random, attributes: int, width: float) -> Parts:
    parts = []
    for name in chance.sample(range(attributes), 5):
        low = round(chance.random() * (1 - width), 6)
        parts.append(predicate(f"a{name}", "between", (low, low + width)))
    return parts


def texts(chance: Random) -> Parts:
    return [
        predicate(f"t{name}", "=", f"w{chance.randrange(4)}")
        for name in chance.sample(range(20), 3)
    ]


def mixed(chance: Random) -> Parts:
    parts = ranges(chance, 20, 0.5)
    if chance.random() < 0.5:
        parts[0] = predicate("t0", "=", f"w{chance.randrange(1000)}")
    return parts


WORKLOADS: dict[str, Callable[[Random], Parts]] = {
    "wide": lambda chance: ranges(chance, 20, 0.5),
    "narrow": lambda chance: ranges(chance, 20, 0.005),
    "mixed": mixed,
    "text": texts,
    "sparse": lambda chance: ranges(chance, 253, 0.5),
}


def events(name: str) -> list[Event]:
    chance, found = Random(8), []
    for number in range(CALL):
        columns = chance.sample(range(253), 30) if name == "sparse" else range(20)
        values: dict[str, Any] = {f"a{column}": chance.random() for column in columns}
        values |= {f"t{column}": f"w{chance.randrange(4)}" for column in range(20)}
        if name == "mixed":
            values["t0"] = f"w{chance.randrange(1000)}"
        found.append(Event(f"e{number}", values, number))
    return found


def measured(name: str, size: int) -> Row:
    """Time both ways; the index has seen some events, as one that is in use has."""
    chance, stream = Random(7), events(name)
    held = [
        Subscription(f"s{number:07d}", "u", Condition((tuple(WORKLOADS[name](chance)),)))
        for number in range(size)
    ]
    row: Row = {"workload": name, "size": size}
    answers, calls = [], dict[str, Callable[[], Any]]()
    for way, fewest in (("lists", NEVER), ("blocks", scan_blocks.FEWEST_ROWS)):
        with patch.object(scan_blocks, "FEWEST_ROWS", fewest):
            index, row[f"{way}_build_s"] = timed(lambda: Access(held), OWN)
            index.top_many(stream, 1)
            index.settle()
        some = stream[: CALL if way == "blocks" or name != "wide" else 20]
        calls[way] = lambda index=index, some=some: index.matching_many(some)
        hits = calls[way]()
        answers.append([found(hits, number) for number in range(20)])
        row[f"{way}_us"], row[f"{way}_bytes"] = float("inf"), index.nbytes / size
        row[f"{way}_events"] = len(some)
    for _ in range(ROUNDS):
        for way, call in calls.items():
            us = timed(call, OWN)[1] / row[f"{way}_events"] * 1e6
            row[f"{way}_us"] = min(row[f"{way}_us"], us)
    (segment,) = index.snapshot.segments
    row["in_blocks"] = len(segment.blocks.rows)
    row["matches"] = float(np.mean([len(numbers) for numbers in answers[1]]))
    row |= {"ratio": row["lists_us"] / row["blocks_us"], "right": answers[0] == answers[1]}
    print(row, file=sys.stderr, flush=True)
    return row


def found(hits: Any, event: int) -> list[int]:
    starts, numbers = hits.hits.starts, hits.hits.numbers
    return sorted(numbers[starts[event] : starts[event + 1]].tolist())


HEAD = ("workload", "subscriptions", "matches", "in blocks", "lists", "blocks", "x lists", "right")


def page(result: Row) -> str:
    remark = f"Microseconds an event for all matches, {CALL} events a call; processor time."
    lines = opening("All matches of an event", result, remark)
    return "\n".join([*lines, *table(HEAD, map(cells, result["rows"]))])


def cells(row: Row) -> tuple[str, ...]:
    return (
        row["workload"],
        f"{row['size']:,}",
        f"{row['matches']:,.0f}",
        f"{row['in_blocks']:,}",
        f"{row['lists_us']:,.1f}",
        f"{row['blocks_us']:,.1f}",
        f"{row['ratio']:.1f}",
        "yes" if row["right"] else "NO",
    )


if __name__ == "__main__":
    main()
