"""RPS Figure 6 (Experiment 2): the time of queries over the number of getnext() calls."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tidings.index.intervals import interval_index
from tidings.lab.papers.experiment import Claim, DataTable, Exhibit, Experiment, Progress, span
from tidings.lab.papers.getnext import LABELS, QueryCost, query_cost
from tidings.lab.svg import Panel, Series, chart
from tidings.lab.workloads.rps import ZipfSpace, intervals

Costs = dict[str, dict[int, QueryCost]]
"""The cost of a query by index and number of calls."""
SIMILAR: Final = 2.0
"""The ratio up to which times are about the same."""


@dataclass(frozen=True)
class GetnextParameters:
    """The intervals, the queries, and how many calls each makes; `rounds` are timed."""

    intervals: int = 1_000_000
    queries: int = 1_000
    calls: tuple[int, ...] = (1, 10, 20, 100, 1_000, 10_000, 100_000)
    rounds: int = 5
    space: ZipfSpace = field(default_factory=ZipfSpace)


def run(parameters: GetnextParameters, seed: int, progress: Progress) -> Sequence[Exhibit]:
    """Ask every index the same queries, for more and more answers."""
    work = intervals(parameters.intervals, parameters.queries, seed, parameters.space)
    costs: Costs = {}
    for number, name in enumerate(LABELS):
        progress(number, len(LABELS), LABELS[name])
        index = interval_index(name, work.low, work.high, work.score)
        costs[name] = {
            calls: query_cost(index, work.queries, calls, parameters.rounds)
            for calls in parameters.calls
        }
    return [exhibit(costs)]


def exhibit(costs: Costs) -> Exhibit:
    """Return the figure with its claims."""
    columns = ("index", "getnext calls", *QueryCost._fields)
    rows = tuple(
        (LABELS[name], calls, *cost)
        for name, by_calls in costs.items()
        for calls, cost in by_calls.items()
    )
    return Exhibit(
        "RPS",
        "Figure 6",
        "Time over the number of getnext() calls",
        DataTable(columns, rows, ("microseconds",)),
        (
            interval_is_slowest(costs),
            interval_scans_most(costs),
            r_tree_has_holes(costs),
            segment_and_ir_are_alike(costs),
            sopt_is_fastest(costs),
            differences_shrink(costs),
            at_most_two_leaves(costs),
        ),
        picture(costs),
        "Nodes, leaves and intervals are those that a query visits, on average.",
    )


def times(costs: Costs, calls: int) -> dict[str, float]:
    """Return the microseconds of all indexes."""
    return {name: by_calls[calls].microseconds for name, by_calls in costs.items()}


def calls_of(costs: Costs) -> list[int]:
    """Return the numbers of calls."""
    return list(costs["sopt-r"])


def listed(values: Sequence[int]) -> str:
    """Return numbers as text, or "none"."""
    return ", ".join(f"{value:,}" for value in values) or "none"


def interval_is_slowest(costs: Costs) -> Claim:
    """Claim that the interval tree is the slowest."""
    slowest = {
        calls: max(by := times(costs, calls), key=by.__getitem__) for calls in calls_of(costs)
    }
    slower = [calls for calls, name in slowest.items() if name != "interval"]
    first = times(costs, calls_of(costs)[0])
    ratio = first["interval"] / sorted(first.values())[-2]
    return Claim(
        "The interval tree is the slowest index, because of the high cost of its first answer.",
        "the slowest throughout",
        f"{ratio:.0f} times the next for one call; another is slower for {listed(slower)} calls",
        not slower,
        "It is by far the slowest for few calls, as the paper says. For many calls the initial "
        "scan no longer counts, only the cost per answer: the IR-tree, which merges the small "
        "R-trees of all nodes on its path, then needs more than a scan of sorted lists.",
        timed=True,
    )


def interval_scans_most(costs: Costs) -> Claim:
    """Claim the reason: the interval tree passes many intervals before its first answer."""
    first = calls_of(costs)[0]
    visited = {name: by_calls[first].intervals for name, by_calls in costs.items()}
    most = max(count for name, count in visited.items() if name != "interval")
    return Claim(
        "For its first answer the interval tree passes more intervals than any other index.",
        "high initial processing cost",
        f"{visited['interval']:,.0f} intervals, the others at most {most:,.0f}",
        visited["interval"] > most,
    )


def r_tree_has_holes(costs: Costs) -> Claim:
    """Claim that the R-tree enters more leaves needlessly, the more calls there are."""
    counts = [calls for calls in calls_of(costs) if calls <= 1_000]
    extra = [costs["r"][calls].leaves - costs["sopt-r"][calls].leaves for calls in counts]
    return Claim(
        "The R-tree degrades with the number of calls, because it enters more and more leaves "
        "without an answer (holes).",
        "degrades with the number of calls",
        f"from {extra[0]:,.0f} to {extra[-1]:,.0f} leaves more than the SOPT-R-tree, for "
        f"{counts[0]:,} to {counts[-1]:,} calls",
        extra == sorted(extra) and extra[0] > 0,
    )


def segment_and_ir_are_alike(costs: Costs) -> Claim:
    """Claim that segment tree and IR-tree take about the same time."""
    ratios = [by["ir"] / by["segment"] for by in (times(costs, calls) for calls in calls_of(costs))]
    return Claim(
        f"The segment tree and the IR-tree take about the same time (within {SIMILAR:g} times).",
        "about the same",
        f"the IR-tree takes {span(ratios)} times as long",
        max(ratios) <= SIMILAR and min(ratios) >= 1 / SIMILAR,
        "All intervals in the lists of a segment tree are stabbed, and as flat arrays of ranks "
        "they are merged without a look at a bound; the IR-tree compares bounds in each leaf. The "
        "paper's segment tree follows references to objects, which hides that difference.",
        timed=True,
    )


def sopt_is_fastest(costs: Costs) -> Claim:
    """Claim that the SOPT-R-tree is always the fastest."""
    gains = [
        min(spent for name, spent in by.items() if name != "sopt-r") / by["sopt-r"]
        for by in (times(costs, calls) for calls in calls_of(costs))
    ]
    return Claim(
        "The SOPT-R-tree is always the fastest.",
        "up to 2 times as fast as the others",
        f"{span(gains)} times as fast as the next",
        min(gains) > 1,
        timed=True,
    )


def differences_shrink(costs: Costs) -> Claim:
    """Claim that the indexes differ less for more calls."""
    spreads = [
        max(by.values()) / min(by.values())
        for by in (times(costs, calls) for calls in calls_of(costs))
    ]
    return Claim(
        "The difference between the indexes decreases with the number of calls.",
        "decreases",
        f"slowest to fastest: {spreads[0]:,.0f} times for {calls_of(costs)[0]:,} call, "
        f"{spreads[-1]:,.0f} times for {calls_of(costs)[-1]:,} calls",
        spreads[-1] < spreads[0] / 2,
        timed=True,
    )


def at_most_two_leaves(costs: Costs) -> Claim:
    """Claim the bound of Theorem 3.2."""
    shares = [cost.most_leaves / calls for calls, cost in costs["sopt-r"].items()]
    return Claim(
        "The SOPT-R-tree enters at most 2k leaves for k answers (Theorem 3.2).",
        "at most 2 per answer",
        f"at most {max(shares):.2f} per answer",
        max(shares) <= 2,
    )


def picture(costs: Costs) -> str:
    """Draw milliseconds over calls, as in the paper, and relative to the SOPT-R-tree."""
    calls = calls_of(costs)
    total = [
        Series(LABELS[name], calls, [cost.microseconds / 1e3 for cost in by_calls.values()])
        for name, by_calls in costs.items()
    ]
    leaves = [
        Series(LABELS[name], calls, [costs[name][count].leaves for count in calls])
        for name in ("r", "ir", "sopt-r")
    ]
    words = ("getnext() calls", "ms per query")
    return chart(
        [
            Panel("Time", *words, total, log_x=10, log_y=True),
            Panel("Leaves entered", words[0], "leaves per query", leaves, log_x=10, log_y=True),
        ]
    )


EXPERIMENT: Final = Experiment(
    "rps-figure-6",
    "RPS",
    ("Figure 6",),
    run,
    paper_parameters=GetnextParameters(),
    laptop=GetnextParameters(queries=300, rounds=3),
    quick=GetnextParameters(intervals=5_000, queries=20, calls=(1, 20, 1_000), rounds=1),
)
