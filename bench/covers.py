"""Covers among many conditions: building the graph, matching in it, and arrays.

python bench/covers.py [--sizes 20000 100000] [--owners 200000] [--quick]

Conditions are those of a synthetic shop (catalogue.py), five per subscriber. Counts depend on the
seed only; times are CPU seconds. Results go to bench/results.
"""

import argparse
import gc
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import pages
from catalogue import Catalogue, products, subscriptions
from pages import machine, opening, publish
from timing import per

from tidings.index import INDEXES
from tidings.index.papers.cover_graph import PreferentialGraph
from tidings.model.conditions.cover_bulk import strictly_covered
from tidings.model.records import Event, Subscription

EVENTS, CHANGED, EACH, TRACED = 20, 1000, 5, 20_000
GRAPH_LINES = (
    "- {nodes} nodes, {roots} roots, {edges} edges",
    "- {compared} conjunctions compared, {share} of all pairs",
    "- built in {build_s} s, {each_us} us per subscription; {bytes} bytes each (at {traced})",
    "- in the full graph a removal takes {remove_us} us, an addition {add_us} us",
    "- an event checks {checked} nodes for {matches} matches, in {psg_us} us; ranks: {ranks_us} us",
    "- the scan takes {scan_us} us for it, access {access_us} us",
)


def main() -> None:
    options = arguments()
    result = {
        "machine": machine(),
        "graphs": [graph_row(size) for size in options.sizes],
        "arrays": arrays_row(options.owners),
    }
    publish("covers", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "5,000 subscriptions, 5,000 owners")
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--owners", type=int, default=200_000)
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.owners = [5_000], 5_000
    return options


def graph_row(size: int) -> dict[str, Any]:
    """Build, match and change one graph, next to the other indexes."""
    wishes, stream = subscriptions(size, EACH), products(EVENTS)
    warm(wishes)
    graph, build = timed(lambda: filled(PreferentialGraph(), wishes))
    compared = graph.poset.compared
    before = graph.counters()["subscriptions"]
    row = {
        "size": size,
        "build_s": build,
        "nodes": len(graph.poset),
        "edges": sum(len(node.children) for node in graph.poset),
        "roots": len(graph.poset.roots),
        "compared": compared,
        "share": compared / size**2,
        "psg_us": least(graph.matching, stream),
        "ranks_us": least(graph.ranks, stream),
    }
    looked = graph.counters()["subscriptions"] - before
    row["checked"] = looked / (2 * ROUNDS * EVENTS)
    row["matches"] = sum(len(graph.matching(event)) for event in stream) / EVENTS
    row |= changes(graph, wishes)
    for name in ("scan", "access"):
        row[f"{name}_us"] = least(filled(INDEXES[name](), wishes).matching, stream[:5])
    return row | traced(wishes[:TRACED])


ROUNDS = 3


def least(ask: Callable[[Event], Any], stream: list[Event]) -> float:
    spent = [timed(lambda: [ask(event) for event in stream])[1] for _ in range(ROUNDS)]
    return per(stream, min(spent))


def changes(graph: PreferentialGraph, wishes: list[Subscription]) -> dict[str, float]:
    """Remove subscriptions from all over the full graph, and put them back."""
    some = wishes[:: max(1, len(wishes) // CHANGED)]
    _, removed = timed(lambda: [graph.remove(wish.id) for wish in some])
    _, added = timed(lambda: filled(graph, some))
    return {"remove_us": per(some, removed), "add_us": per(some, added)}


def traced(wishes: list[Subscription]) -> dict[str, float]:
    """Return the bytes per subscription of the graph alone, without the subscriptions."""
    tracemalloc.start()
    graph = filled(PreferentialGraph(), wishes)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"traced": len(wishes), "bytes": held / len(wishes), "traced_nodes": len(graph.poset)}


def arrays_row(owners: int) -> dict[str, Any]:
    shop, size = Catalogue(7), owners * EACH
    conditions = [shop.condition().conjunctions for _ in range(size)]
    names = [number // EACH for number in range(size)]
    gc.freeze()
    found, spent = timed(lambda: strictly_covered(conditions, names))
    pairs = size * (EACH - 1)
    return {"owners": owners, "seconds": spent, "pairs": pairs, "covers": len(found.values)}


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    started = time.process_time()
    return call(), time.process_time() - started


def warm(wishes: list[Subscription]) -> None:
    """Create what subscriptions create lazily, and keep it out of garbage collections."""
    for wish in wishes:
        assert wish.conjunctions
    gc.collect()
    gc.freeze()


def filled(index: Any, wishes: list[Subscription]) -> Any:
    for wish in wishes:
        index.add(wish)
    return index


def page(result: dict[str, Any]) -> str:
    lines = opening("Covers among conditions", result)
    for row in result["graphs"]:
        lines += ["", f"## A graph of {row['size']:,} subscriptions", "", *graph_lines(row)]
    arrays = result["arrays"]
    lines += ["", "## Strict covers of each subscriber, as arrays", ""]
    lines.append(
        f"{arrays['owners']:,} subscribers with {EACH} subscriptions each: "
        f"{arrays['seconds']:.1f} s; {arrays['covers']:,} covers among {arrays['pairs']:,} ordered "
        "pairs."
    )
    return "\n".join(lines)


def graph_lines(row: dict[str, Any]) -> list[str]:
    shown = {name: f"{value:,.0f}" for name, value in row.items()}
    shown |= {"share": f"{row['share']:.2%}", "build_s": f"{row['build_s']:.1f}"}
    shown["each_us"] = f"{row['build_s'] / row['size'] * 1e6:.0f}"
    return [template.format(**shown) for template in GRAPH_LINES]


if __name__ == "__main__":
    main()
