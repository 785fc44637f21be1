"""Windows of many subscribers: offers per second and bytes per subscriber, columnar and as objects.

python bench/windows.py [--subscribers 20000] [--quick] [--diverse WINDOW...] [--million]

Each subscriber gets 130 matches of random score, so that a window of 100 is full. The plain form
takes the same stream for fewer subscribers; both take turns, and the best of several rounds counts.
An offer to the arrays is one of a batch, an event for all subscribers, including deliveries as
arrays; where only some rounds deliver, the mean of all counts. Bytes are the growth of a separate
process, including names, numbers and batches. A bucket is a snapshot of 1,000 subscribers: its
bytes, and the time to read and write it, as a stream does with every batch. Results go to
bench/results/windows.json and windows.md. Instead, --diverse measures windows with every
diversifier (windows-diverse), where bytes are those of the arrays; --million a million full windows
(windows-million).
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from tidings.feed.columnar.cohort_arrays import OfferedEvents

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pages
from pages import machine, opening, publish, table
from timing import WALL, Clock, timed

from tidings.compiled.array_types import Float64s
from tidings.feed import Feeds
from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.columnar.kernels.layout import HELD
from tidings.feed.plain import PlainFeeds
from tidings.model.records import Event, Match
from tidings.policy import Policy, Subscriber
from tidings.rank.matches import Matches
from tidings.window import Moment

K, FILL, ROUNDS, PLAIN, BUCKET = 10, 130, 20, 200, 1000
RANKS: int | None = None
FADING = {"name": "exponential", "rate": 1e-3}
POLICIES: dict[str, dict[str, Any]] = {
    "sliding(100)": {"window": {"name": "sliding", "length": 100}},
    "sliding(100), fading": {"window": {"name": "sliding", "length": 100}, "decay": FADING},
    "sliding(100 published)": {"window": {"name": "sliding", "length": 100, "count": "published"}},
    "sliding(100 s)": {"window": {"name": "sliding", "length": "100s"}},
    "sliding(1000)": {"window": {"name": "sliding", "length": 1000}},
    "jumping(100, 20)": {"window": {"name": "jumping", "length": 100, "step": 20}},
    "history(100)": {"window": {"name": "history", "length": 100}},
    "periodic(100 s)": {"window": {"name": "periodic", "length": "100s"}},
    "continuous": {"window": "continuous"},
    "continuous(100)": {"window": {"name": "continuous", "expires": 100}},
    "sliding(100), divrank": {
        "window": {"name": "sliding", "length": 100},
        "diversify": "divrank",
    },
    "sliding(100), maxdivrel-lsh": {
        "window": {"name": "sliding", "length": 100},
        "diversify": "maxdivrel-lsh",
    },
}
GRID = {
    "sliding(100)": {"name": "sliding", "length": 100},
    "continuous(100)": {"name": "continuous", "expires": 100},
    "jumping(100, 20)": {"name": "jumping", "length": 100, "step": 20},
    "periodic(100 s)": {"name": "periodic", "length": "100s"},
    "history(100)": {"name": "history", "length": 100},
}
PARTS: dict[str, Any] = {
    "divrank": "divrank",
    "maxmin": "maxmin",
    "maxsum": "maxsum",
    "maxavg": "maxavg",
    "disc": "disc",
    "disc(0.5)": {"name": "disc", "alpha": 0.5},
    "maxdivrel": "maxdivrel",
    "maxdivrel(0.5)": {"name": "maxdivrel", "alpha": 0.5},
    "maxdivrel-lsh": "maxdivrel-lsh",
}
DIVERSE, FEW = 400, 2


def main() -> None:
    options = arguments()
    if options.memory:
        kind, name = options.memory
        print(grown(kind, name, options.subscribers))
        return
    if options.million:
        publish("windows-million", million(options.subscribers), million_page, options)
        return
    if options.diverse:
        pairs = [(window, part) for window in options.diverse for part in PARTS]
        result = {"machine": machine(), "k": K, "subscribers": DIVERSE}
        result["grid"] = [crossed(*pair) for pair in (pairs[:1] if options.quick else pairs)]
        publish("windows-diverse", result, grid_page, options)
        return
    names = list(POLICIES)[:2] if options.quick else list(POLICIES)
    result = {"machine": machine(), "k": K, "subscribers": options.subscribers}
    result["rows"] = [figures(name, options.subscribers) for name in names]
    publish("windows", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "2,000 subscribers, two policies")
    parser.add_argument("--subscribers", type=int, default=20_000)
    parser.add_argument("--million", action="store_true", help="a million full windows only")
    parser.add_argument(
        "--diverse", nargs="+", choices=GRID, help="these windows with every diversifier only"
    )
    parser.add_argument("--memory", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.million:
        options.subscribers = 1_000_000
    if options.quick:
        options.subscribers = min(options.subscribers, 2_000)
    return options


def figures(name: str, subscribers: int) -> dict[str, Any]:
    """Fill both forms, and run them in turn; with a tenth of the subscribers for diverse sets."""
    if "diversify" in POLICIES[name]:
        subscribers = max(1, subscribers // 10)
    few = min(FEW if "diversify" in POLICIES[name] else PLAIN, subscribers)
    table = TableStream(name, subscribers)
    ours, theirs = in_turn(table, PlainStream(name, few), name)
    row = {
        "policy": name,
        "offers_per_s": subscribers / ours,
        "plain_offers_per_s": few / theirs,
        "deliveries_per_offer": table.delivered / table.offered,
        **bucket(name),
        "bytes": measured("table", name, subscribers),
        "plain_bytes": measured("plain", name, few),
    }
    return row | {"ratio": row["offers_per_s"] / row["plain_offers_per_s"]}


def bucket(name: str) -> dict[str, float]:
    """Return the bytes of a bucket, and the microseconds to read and write it, per subscriber."""
    stream = TableStream(name, BUCKET)
    for _ in range(FILL):
        stream.step()
    feeds, state = TableFeeds(), stream.feeds.snapshot()
    turns = [
        (timed(lambda: feeds.restore(state))[1], timed(feeds.snapshot)[1]) for _ in range(ROUNDS)
    ]
    read, write = (min(each) * 1e6 / BUCKET for each in zip(*turns, strict=True))
    return {"snapshot_bytes": len(state) / BUCKET, "read_us": read, "write_us": write}


def in_turn(table: "TableStream", plain: "PlainStream", name: str) -> tuple[float, float]:
    """Fill both forms, and run them in turn; return the seconds per step of each."""
    for _ in range(FILL):
        table.step()
        plain.step()
    seconds = [(table.step(), plain.step()) for _ in range(ROUNDS)]
    best = np.mean if name.startswith(("jumping", "periodic")) else min
    ours, theirs = (float(best(each)) for each in zip(*seconds, strict=True))
    return ours, theirs


def crossed(window: str, part: str) -> dict[str, Any]:
    """Measure a window with a diversifier: the cost of an offer, and the bytes of the arrays."""
    name = f"{window}, {part}"
    POLICIES[name] = {"window": GRID[window], "diversify": PARTS[part]}
    table = TableStream(name, DIVERSE)
    ours, theirs = in_turn(table, PlainStream(name, FEW), name)
    [cohort] = table.feeds.cohorts
    return {
        "window": window,
        "part": part,
        "offers_per_s": DIVERSE / ours,
        "plain_offers_per_s": FEW / theirs,
        "bytes": cohort.nbytes / DIVERSE,  # type: ignore[union-attr]
    }


def million(subscribers: int) -> dict[str, Any]:
    """Fill sliding(100) of very many subscribers, and measure the last rounds."""
    result: dict[str, Any] = {"machine": machine(), "k": K, "subscribers": subscribers}
    before = resident()
    stream, enrolling = timed(lambda: TableStream("sliding(100)", subscribers))
    filling = sum(stream.step() for _ in range(FILL))
    rounds = [stream.step() for _ in range(3)]
    [cohort], rows = stream.feeds.cohorts, stream.feeds.tables.subscribers.row[:subscribers]
    return result | {
        "enrol_s": enrolling,
        "fill_s": filling,
        "offers_per_s": subscribers / min(rounds),
        "array_bytes": cohort.nbytes / subscribers,  # type: ignore[union-attr]
        "bytes": (resident() - before) / subscribers,
        "held": int(cohort.head[rows, HELD].min()),  # type: ignore[union-attr]
    }


class TableStream:
    """An event for all subscribers at each step, as arrays."""

    def __init__(self, name: str, subscribers: int, clock: Clock = WALL) -> None:
        self.feeds, self.size, self.clock = TableFeeds(), subscribers, clock
        enrol(self.feeds, name, subscribers)
        self.chance, self.at = np.random.default_rng(7), 0
        self.subscription = self.feeds.subscription("s")
        self.offered = self.delivered = 0

    def step(self) -> float:
        self.at += 1
        matches = Matches(
            np.array([0, self.size]),
            self.chance.permutation(self.size).astype(np.int32),
            ranks(self.chance, self.size),
            np.arange(self.size + 1),
            np.full(self.size, self.subscription, np.int32),
        )
        slots = np.array([self.feeds.slot(event(self.at))], np.int32)
        sequences = np.array([self.at])
        offered = OfferedEvents(matches, slots, sequences)
        found, seconds = timed(lambda: self.feeds.offer_matches(offered), self.clock)
        self.feeds.advance(Moment(self.at * 1_000_000, self.at))
        self.feeds.take_verdicts()  # as an engine does, or those of rules would pile up
        self.offered, self.delivered = self.offered + self.size, self.delivered + len(found)
        return seconds


def ranks(chance: np.random.Generator, size: int) -> Float64s:
    """Return random ranks, all different unless RANKS says how many are."""
    drawn = chance.random(size)
    return drawn if RANKS is None else np.ceil(drawn * RANKS) / RANKS


class PlainStream:
    """The same as objects."""

    def __init__(self, name: str, subscribers: int) -> None:
        self.feeds, self.size = PlainFeeds(), subscribers
        enrol(self.feeds, name, subscribers)
        self.chance, self.at = np.random.default_rng(7), 0

    def step(self) -> float:
        self.at += 1
        now, published = Moment(self.at * 1_000_000, self.at), event(self.at)
        scores = self.chance.random(self.size).tolist()
        offers = [
            (Match(f"u{place}", published, score, ("s",)), now)
            for place, score in enumerate(scores)
        ]
        _, seconds = timed(lambda: self.feeds.offer_many(offers))
        self.feeds.advance(now)
        return seconds


def enrol(feeds: Feeds, name: str, subscribers: int) -> None:
    policy = Policy(k=K, **POLICIES[name])
    for place in range(subscribers):
        feeds.enrol(Subscriber(f"u{place}", policy))


def event(number: int) -> Event:
    values = {
        "genre": number * 7 % 6,
        "mood": number * 5 % 4,
        "stars": number * 3 % 5,
        "year": number * 11 % 9,
    }
    return Event(f"e{number}", values, published_at=number, sequence=number)


def measured(kind: str, name: str, subscribers: int) -> float:
    """Return the growth of a new process."""
    command = [sys.executable, __file__, "--memory", kind, name, "--subscribers", str(subscribers)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def grown(kind: str, name: str, subscribers: int) -> float:
    """Return the bytes per subscriber with a full window, including its name and number."""
    make = TableStream if kind == "table" else PlainStream
    small = make(name, 50)
    for _ in range(FILL):
        small.step()
    before = resident()
    stream = make(name, subscribers)
    for _ in range(FILL):
        stream.step()
    return (resident() - before) / subscribers


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


HEAD = (
    "policy",
    "offers/s",
    "plain",
    "ratio",
    "deliveries/offer",
    "bytes",
    "plain",
    "in a bucket",
    "read",
    "write",
)


def page(result: dict[str, Any]) -> str:
    remark = (
        f"{result['subscribers']:,} subscribers, k = {result['k']}, after {FILL} matches each. "
        "Bytes are per subscriber. Diverse policies have a tenth of the subscribers. "
        f"A bucket has {BUCKET:,}: bytes, and µs to read and to write it, per subscriber."
    )
    lines = opening("Windows of many subscribers", result, remark)
    return "\n".join(lines + table(HEAD, map(cells, result["rows"])))


GRID_HEAD = ("window", "diversifier", "offers/s", "plain", "ratio", "bytes")


def grid_cells(row: dict[str, Any]) -> tuple[str, ...]:
    ratio = row["offers_per_s"] / row["plain_offers_per_s"]
    speeds = (f"{row[name]:,.0f}" for name in ("offers_per_s", "plain_offers_per_s"))
    return (row["window"], row["part"], *speeds, f"{ratio:,.0f}x", f"{row['bytes']:,.0f}")


def grid_page(result: dict[str, Any]) -> str:
    remark = (
        f"{DIVERSE} subscribers, {FEW} of the plain form, k = {result['k']}, after {FILL} matches "
        "each; bytes are those of the arrays per subscriber."
    )
    lines = opening("Windows with every diversifier", result, remark)
    return "\n".join(lines + table(GRID_HEAD, map(grid_cells, result["grid"])))


def million_page(result: dict[str, Any]) -> str:
    remark = (
        f"{result['subscribers']:,} subscribers with sliding(100), k = {result['k']}, after {FILL} "
        f"matches each; the least full window has {result['held']}."
    )
    lines = opening("A million full windows", result, remark)
    head = ("enrolled in", "filled in", "offers/s", "bytes of arrays", "bytes of the process")
    durations = (f"{result['enrol_s']:.0f} s", f"{result['fill_s']:.0f} s")
    figures = (f"{result[name]:,.0f}" for name in ("offers_per_s", "array_bytes", "bytes"))
    return "\n".join([*lines, *table(head, [(*durations, *figures)])])


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["policy"],
        f"{row['offers_per_s']:,.0f}",
        f"{row['plain_offers_per_s']:,.0f}",
        f"{row['ratio']:,.0f}x",
        f"{row['deliveries_per_offer']:.2f}",
        f"{row['bytes']:,.0f}",
        f"{row['plain_bytes']:,.0f}",
        f"{row['snapshot_bytes']:,.0f}",
        f"{row['read_us']:,.1f}",
        f"{row['write_us']:,.1f}",
    )


if __name__ == "__main__":
    main()
