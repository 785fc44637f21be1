"""Indexes over the whole condition language, against a naive check compiled in the same way.

python bench/predicates.py [--sizes 10000 100000 1000000] [--quick]

300 attributes by Zipf's law, half of them numbers and half strings, 2 to 8 predicates per
subscription, 10 to 50 attributes per event. `naive` checks every conjunction, in arrays and with
kernels like those of the access index, after the same encoding of the event. Times are the best of
several chunks of new events, on one core; ratios hold within one run. Results go to bench/results.
"""

import argparse
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pages
from pages import line, machine, opening, publish, ratio
from timing import OWN, per, timed

from tidings.index import INDEXES
from tidings.index.access import Access
from tidings.index.access.encoding import encode
from tidings.index.access.kernels.match import match_events, scan_events, top_events
from tidings.index.access.query import Query, ScratchBuffers
from tidings.index.access.segment import Segment
from tidings.model.conditions.predicate import Condition, Predicate, predicate
from tidings.model.records import Event, Subscription

K, ATTRIBUTES, WORDS, EVENTS = 20, 300, 1000, 200
LARGEST = {"scan": 10_000, "op": 100_000}
CHANCE = np.random.default_rng


def main() -> None:
    wanted = arguments()
    result = {"machine": machine(), "k": K}
    result["sizes"] = {size: measured(size, wanted) for size in wanted.sizes}
    publish("predicates", result, page, wanted)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "10,000 subscriptions, few rounds")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=7)
    wanted = parser.parse_args()
    if wanted.quick:
        wanted.sizes, wanted.rounds = [10_000], 3
    return wanted


class Words:
    """A generator of attributes and values by Zipf's law."""

    def __init__(self, seed: int) -> None:
        self.chance = CHANCE(seed)
        self.law, self.words = cumulated(ATTRIBUTES), cumulated(WORDS)

    def attributes(self, count: int) -> list[int]:
        """Return distinct attributes, common ones more often."""
        attributes: dict[int, None] = {}
        while len(attributes) < count:
            drawn = np.searchsorted(self.law, self.chance.random(2 * count))
            attributes |= dict.fromkeys(drawn.tolist())
        return list(attributes)[:count]

    def word(self) -> str:
        number = int(np.searchsorted(self.words, self.chance.random()))
        return f"{number * 7919 % 9973:04d}-w{number}"


def cumulated(count: int) -> Any:
    often = 1 / np.arange(1, count + 1)
    return np.cumsum(often / often.sum())[:-1]


def part(words: Words, attribute: int) -> Predicate:
    name, dice = f"a{attribute}", words.chance.random()
    if attribute % 2:
        return number_part(name, dice, words)
    word = words.word()
    if dice < 0.80:
        return predicate(name, "=", word)
    if dice < 0.88:
        return predicate(name, "in", [word, words.word(), words.word()])
    if dice < 0.93:
        return predicate(name, "prefix", word[: 2 + int(dice * 1000) % 3])
    if dice < 0.96:
        return predicate(name, "suffix", word[-3:])
    if dice < 0.98:
        return predicate(name, "substring", word[1 : 4 + int(dice * 1000) % 3])
    return predicate(name, "!=", word)


def number_part(name: str, dice: float, words: Words) -> Predicate:
    at = round(words.chance.random() * 1000, 2)
    if dice < 0.7:
        return predicate(name, "between", (at, at + round(words.chance.exponential(50), 2)))
    return predicate(name, "<=" if dice < 0.85 else ">=", at)


def subscriptions(size: int, seed: int) -> list[Subscription]:
    words = Words(seed)
    sizes = words.chance.integers(2, 9, size).tolist()
    scores = np.round(words.chance.random(size) * 100, 1).tolist()
    made = []
    for number in range(size):
        parts = tuple(part(words, attribute) for attribute in words.attributes(sizes[number]))
        made.append(Subscription(f"s{number:07d}", "u", Condition((parts,)), score=scores[number]))
    return made


def events(count: int, seed: int) -> list[Event]:
    words = Words(seed)
    return [Event(f"e{number}", said(words), 0) for number in range(count)]


def said(words: Words) -> dict[str, Any]:
    found = words.attributes(int(words.chance.integers(10, 51)))
    return {
        f"a{each}": round(words.chance.random() * 1000, 2) if each % 2 else words.word()
        for each in found
    }


def measured(size: int, wanted: argparse.Namespace) -> dict[str, Any]:
    wishes, before = subscriptions(size, 7), events(EVENTS, 9)
    stream = events(EVENTS * wanted.rounds, 8)
    chunks = [stream[at : at + EVENTS] for at in range(0, len(stream), EVENTS)]
    gc.freeze()
    predicates = sum(len(conj) for subscription in wishes for conj in subscription.conjunctions)
    access, build = timed(lambda: settled(wishes, before))
    rows = naive_rows(access, wishes, chunks)
    rows.append({"name": "access", "build_s": build, **asked(access, chunks)})
    rows[-1] |= {"bytes": access.nbytes / predicates, **kernels(access, chunks)}
    rows[-1] |= batches(access, chunks) | changes(access, wishes)
    expected = [access.top(event, K) for event in stream[:5]]
    for name in INDEXES:
        if size <= LARGEST.get(name, 0):
            index, build = timed(lambda name=name: filled(INDEXES[name](), wishes))
            found = [index.top(event, K) for event in stream[:5]]
            few = [chunk[: 3 if name == "scan" else 20] for chunk in chunks[:3]]
            rows.append({"name": name, "build_s": build, "right": found == expected})
            rows[-1] |= asked(index, few)
    for row in rows:
        row["all_ratio"] = rows[0]["all_us"] / row["all_us"]
        row["top_ratio"] = rows[0]["top_us"] / row["top_us"]
        row["many_ratio"] = rows[0]["top_us"] / row.get("many_us", row["top_us"])
    matches = float(np.mean([len(access.matching(event)) for event in stream]))
    return {"matches": matches, "predicates": predicates, "rows": rows}


def filled(index: Any, wishes: list[Subscription]) -> Any:
    for subscription in wishes:
        index.add(subscription)
    return index


def settled(wishes: list[Subscription], before: list[Event]) -> Access:
    """Return an index that has seen some events, other than the measured ones."""
    index = Access(wishes)
    index.top_many(before, K)
    index.settle()
    return index


def fresh(ask: Callable[[Event], Any], chunks: list[list[Event]]) -> float:
    """Return microseconds per event of the fastest chunk; no event repeats, as in a stream."""
    spent = [timed(lambda chunk=chunk: [ask(event) for event in chunk], OWN)[1] for chunk in chunks]
    return min(per(chunk, took) for chunk, took in zip(chunks, spent, strict=True))


def asked(index: Any, chunks: list[list[Event]]) -> dict[str, Any]:
    """Measure whole queries, from events to subscriptions, one call each."""
    figures = {}
    count = sum(map(len, chunks))
    for kind, ask in {"all": index.matching, "top": lambda event: index.top(event, K)}.items():
        earlier = dict(index.counters())
        figures |= {f"{kind}_us": fresh(ask, chunks)}
        spent = {key: value - earlier[key] for key, value in index.counters().items()}
        figures |= {f"{kind}_{key}": value / count for key, value in spent.items()}
    return figures


def naive_rows(
    index: Access, wishes: list[Subscription], chunks: list[list[Event]]
) -> list[dict[str, Any]]:
    """Measure the compiled check of all conjunctions, as written and in the best order.

    Conjunctions are in order of rank, so the first 20 that match are the top.
    """
    best, vocabulary = index.snapshot.segments[0], index.snapshot.vocabulary
    plain = Segment(encode(wishes, range(len(wishes)), vocabulary), vocabulary, sort=False)
    few = [chunk[:20] for chunk in chunks]
    rows = []
    for name, segment in {"naive, as written": plain, "naive, best order": best}.items():
        room = np.empty((2, len(segment)), np.int32)
        took = fresh(lambda event, of=segment, room=room: naive(index, of, event, room), few)
        rows.append({"name": name, "all_us": took, "top_us": took, "right": True})
        for event in few[0]:
            matching = sorted(naive(index, segment, event, room))
            numbers = index.matching_many([event]).hits.numbers.tolist()
            ids = [wishes[number].id if segment is plain else number for number in matching]
            known = [index.subscription(number).id for number in numbers]
            right = sorted(known if segment is plain else numbers)
            rows[-1]["right"] &= sorted(ids) == right
    return rows


def naive(index: Access, segment: Segment, event: Event, room: Any) -> list[int]:
    """Return the numbers of the conjunctions that an event satisfies, after checking all."""
    query, starts = Query(index.snapshot, [event], BUFFERS), np.zeros(2, np.int64)
    scan_events(
        segment.view(0),
        query.batch,
        query.scratch(0)._replace(ranks=room[0]),
        0,
        starts,
        room[1],
    )
    covering: list[int] = segment.numbers[room[1][: starts[1]]].tolist()
    return covering


BUFFERS = ScratchBuffers()


def kernels(index: Access, chunks: list[list[Event]]) -> dict[str, float]:
    """Measure the parts of a query: encoding the events, and finding the answer."""
    snapshot, buffers = index.snapshot, ScratchBuffers()
    part, size = snapshot.segments[0].view(snapshot.version), len(snapshot.segments[0])
    asked = [Query(snapshot, chunk, buffers) for chunk in chunks]
    out, starts = np.empty(1 << 22, np.int32), np.zeros(EVENTS + 1, np.int64)
    ranks, limits = np.empty(EVENTS * (K + 1), np.int64), np.full(EVENTS, size, np.int32)

    def top(query: Query) -> None:
        top_events(part, query.batch, query.scratch(K), limits, ranks)

    def every(query: Query) -> None:
        match_events(part, query.batch, query.scratch(0), 0, starts, out)

    one = [[query] for query in asked]
    return {
        "encode_us": fresh(lambda chunk: Query(snapshot, chunk, buffers), [[c] for c in chunks])
        / EVENTS,
        "kernel_top_us": fresh(top, one) / EVENTS,
        "kernel_all_us": fresh(every, one) / EVENTS,
    }


def batches(index: Access, chunks: list[list[Event]]) -> dict[str, float]:
    """Measure whole queries with many events per call, from events to answers."""
    whole, few = [[chunk] for chunk in chunks], [[chunk[:20]] for chunk in chunks]
    index.touching_many(chunks[0][:1])
    return {
        "many_us": fresh(lambda chunk: index.top_many(chunk, K), whole) / EVENTS,
        "fan_us": fresh(index.matching_many, whole) / EVENTS,
        "relaxed_us": fresh(lambda chunk: index.top_relaxed_many(chunk, K), few) / 20,
        "touch_us": fresh(index.touching_many, few) / 20,
    }


def changes(index: Access, wishes: list[Subscription]) -> dict[str, float]:
    """Return changes per second with existing subscriptions, one by one and in bulk."""
    some = wishes[: min(2000, len(wishes) // 8)]
    ids, found = [item.id for item in some], {}
    scores = dict.fromkeys(ids, 1.0)
    steps = {
        "remove": lambda: [index.remove(item) for item in ids],
        "add": lambda: [index.add(item) for item in some],
        "rescore": lambda: [index.rescore(item, 2.0) for item in ids],
        "replace": lambda: [index.replace(item) for item in some],
        "remove_many": lambda: index.remove_many(ids),
        "add_many": lambda: index.add_many(some),
        "rescore_many": lambda: index.rescore_many(scores),
        "replace_many": lambda: index.replace_many(some),
    }
    for name, step in steps.items():
        found[f"{name}_per_s"] = len(some) / timed(step, OWN)[1]
    index.close()
    return found


def page(result: dict[str, Any]) -> str:
    remark = "`x naive`: speed-up over the compiled check of every conjunction, as written."
    lines = opening(f"All matches and top {K} over the condition language", result, remark)
    for size, of_size in result["sizes"].items():
        lines += [f"## {size:,} subscriptions, {of_size['predicates']:,} predicates", ""]
        lines += [f"{of_size['matches']:.0f} matches per event.", "", *table(of_size["rows"]), ""]
    return "\n".join(lines)


HEAD = (
    "index",
    "build s",
    "bytes/predicate",
    "us, all matches",
    "x naive",
    f"us, top {K}",
    "x naive",
    "predicates examined, all",
    "subscriptions, all",
    "predicates, top",
    "subscriptions, top",
)


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [line(HEAD), "|---" * len(HEAD) + "|"]
    lines += [line(cells(row)) for row in rows]
    for row in rows:
        if "encode_us" in row:
            lines += ["", parts_of(row)]
    return lines


def parts_of(row: dict[str, Any]) -> str:
    rates = {key[:-6]: value for key, value in row.items() if key.endswith("_per_s")}
    listed = ", ".join(f"{kind} {rate:,.0f}" for kind, rate in rates.items())
    us = {key[:-3]: f"{value:.1f} us" for key, value in row.items() if key.endswith("_us")}
    return (
        f"Access, {EVENTS} events per call: encoding an event in Python takes {us['encode']}; "
        f"the kernels take {us['kernel_all']} for all, {us['kernel_top']} for the top; "
        f"whole queries take {us['many']} for the top, {ratio(row['many_ratio'])} times faster "
        f"than naive, {us['fan']} for all as numbers, {us['relaxed']} for the relaxed top, "
        f"{us['touch']} for all partial matches with their satisfied predicates. "
        f"Changes per second: {listed}."
    )


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    kinds = [
        f"{kind}_{what}" for kind in ("all", "top") for what in ("predicates", "subscriptions")
    ]
    return (
        row["name"],
        f"{row['build_s']:.1f}" if "build_s" in row else "-",
        f"{row['bytes']:.1f}" if "bytes" in row else "-",
        f"{row['all_us']:.1f}",
        ratio(row["all_ratio"]),
        f"{row['top_us']:.1f}",
        ratio(row["top_ratio"]),
        *(f"{row[kind]:,.0f}" if kind in row else "-" for kind in kinds),
    )


if __name__ == "__main__":
    main()
