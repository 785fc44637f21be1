"""TKS Figures 7.12 to 7.20 and Table 7.12: MAXDIVREL by NAIVE, BLSH and ILSH.

NAIVE is the greedy algorithm 4.1 over all distances of a window, BLSH hashes the whole window, and
ILSH updates a window by one arrival. After each of them the top k are known. The tokens of events
are hashed before, once for all three. A publication has D attributes, all of which are tokens.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from statistics import fmean
from typing import Final

import numpy as np

from tidings.diversify import Candidate
from tidings.diversify.covers import MaxDivRel
from tidings.diversify.distance import Jaccard
from tidings.diversify.hashed_distances import distances, token_rows
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.tie_order import order_of, ranks_and_keys
from tidings.lab.papers.experiment import Claim, DataTable, Exhibit, Experiment, Progress
from tidings.lab.papers.lsh_window import LshWindow
from tidings.lab.stopwatch import least_times
from tidings.lab.svg import Panel, Series, chart
from tidings.lab.workloads.catalogue import Category, SyntheticCategory, View, publications

NAIVE, BLSH, ILSH = "NAIVE", "BLSH", "ILSH"
TABLE_7_12: Final = {50: 0.165, 250: 0.314, 500: 0.523, 1000: 0.917}
"""Seconds of an update in the thesis, by D."""
ARRIVALS: Final = 50
"""Arrivals that are timed together for ILSH."""
NUMBERS: Final = (
    "Figure 7.12",
    "Figure 7.13",
    "Figure 7.14",
    "Figure 7.15",
    "Figure 7.16",
    "Figure 7.17",
    "Figure 7.18",
    "Table 7.12",
    "Figure 7.19",
    "Figure 7.20",
)


@dataclass(frozen=True)
class IndexParameters:
    """Dimensions D, windows w, errors e of MinHash, and the shape of the choice."""

    dimensions: tuple[int, ...] = tuple(TABLE_7_12)
    windows: tuple[int, ...] = (100, 500, 1000, 2500, 5000)
    errors: tuple[float, ...] = (0.05, 0.07, 0.1, 0.2)
    error: float = 0.07
    threshold: float = 0.5
    k: int = 10
    subcategories: int = 60
    rounds: int = 10


@dataclass
class Measured:
    """Milliseconds by D, w and method, and of BLSH by error and w; whether BLSH and ILSH agree."""

    parameters: IndexParameters
    ms: dict[tuple[int, int, str], float] = field(default_factory=dict)
    by_error: dict[tuple[float, int], float] = field(default_factory=dict)
    agreed: list[bool] = field(default_factory=list)

    def over_windows(self, size: int, method: str) -> dict[int, float]:
        """Return the times of a method for publications of D = `size`."""
        return {w: self.ms[size, w, method] for w in self.parameters.windows}

    def over_dimensions(self, method: str, w: int) -> dict[int, float]:
        """Return the times of a method in windows of w."""
        return {size: self.ms[size, w, method] for size in self.parameters.dimensions}

    @property
    def widest(self) -> int:
        """The largest window."""
        return max(self.parameters.windows)


def run(parameters: IndexParameters, seed: int, progress: Progress) -> Sequence[Exhibit]:
    """Measure all three methods on the same windows."""
    measured = Measured(parameters)
    cases = list(product(parameters.dimensions, parameters.windows))
    streams = _Streams(parameters, seed)
    for step, (size, w) in enumerate(cases):
        progress(step, len(cases), f"windows of {w:,} with D = {size:,}")
        measure(measured, streams.of(size), size, w)
    return [
        figure_7_12(measured),
        figure_7_13(measured),
        *(by_dimension(measured, *of) for of in (("Figure 7.14", BLSH), ("Figure 7.15", NAIVE))),
        *(blsh_against_naive(measured, *of) for of in _sizes(measured, NUMBERS[4:6])),
        by_dimension(measured, "Figure 7.18", ILSH),
        table_7_12(measured),
        *(all_three(measured, *of) for of in _sizes(measured, NUMBERS[8:])),
    ]


def _sizes(measured: Measured, numbers: Sequence[str]) -> list[tuple[str, int]]:
    """Return which D each of two figures has: 250 and 500, or what is nearest in the run."""
    sizes = measured.parameters.dimensions
    return [
        (number, min(sizes, key=lambda size: abs(size - aim)))
        for number, aim in zip(numbers, (250, 500), strict=True)
    ]


class _Streams:
    """The candidates of each D, drawn when they are needed, of which one stream is kept."""

    def __init__(self, parameters: IndexParameters, seed: int) -> None:
        self._parameters, self._seed = parameters, seed
        self._size, self._candidates = 0, list[Candidate]()

    def of(self, size: int) -> list[Candidate]:
        """Return enough candidates for the largest window and all arrivals."""
        if size != self._size:
            count = max(self._parameters.windows) + ARRIVALS * (self._parameters.rounds + 1)
            category = Category(f"D{size}", self._parameters.subcategories, 0, size)
            supply = SyntheticCategory(category, self._seed, dimensions=size)
            events = publications(View("", supply.products(count)), count, seed=self._seed)
            token_rows(events)  # events keep the hashes of their tokens
            ranks = np.random.default_rng(self._seed).random(count).tolist()
            pairs = zip(events, ranks, strict=True)
            self._candidates = [Candidate(event, rank, rank) for event, rank in pairs]
            self._size = size
        return self._candidates


def measure(measured: Measured, stream: Sequence[Candidate], size: int, w: int) -> None:
    """Time all methods on one window, and BLSH with each error for the smallest D."""
    parameters = measured.parameters
    window, k = stream[:w], parameters.k
    part = MaxDivRelLsh(error=parameters.error, threshold=parameters.threshold)
    greedy = MaxDivRel(alpha=1 - parameters.threshold, distance=Jaccard())
    calls = {BLSH: partial(part.choose, window, k), NAIVE: partial(naive, greedy, window, k)}
    if size == min(parameters.dimensions):
        for error in parameters.errors:
            other = MaxDivRelLsh(error=error, threshold=parameters.threshold)
            calls[f"{error}"] = partial(other.choose, window, k)
    ms = least_times(calls, parameters.rounds)
    measured.by_error |= {(float(name), w): ms.pop(name) for name in list(ms) if name[0] == "0"}
    for method, spent in ms.items():
        measured.ms[size, w, method] = spent
    incremental = LshWindow(w, part, k)
    measured.ms[size, w, ILSH], after = time_arrivals(incremental, stream, w, parameters.rounds)
    expected = [after[place].event.id for place in part.choose(after, k)]
    measured.agreed.append(incremental.chosen() == expected)


def naive(greedy: MaxDivRel, window: Sequence[Candidate], k: int) -> list[int]:
    """Choose from all distances: `choose` would compute only those of events that share a value."""
    events, (ranks, keys) = [match.event for match in window], ranks_and_keys(window)
    matrix = distances(events, greedy.distance)
    return greedy.pick(ranks, keys, order_of(events), matrix, k).tolist()  # type: ignore[no-any-return]


def time_arrivals(
    window: LshWindow, stream: Sequence[Candidate], w: int, rounds: int
) -> tuple[float, Sequence[Candidate]]:
    """Return the least milliseconds of an arrival in a full window, and what is in it then."""
    window.offer(stream[:w])
    best = float("inf")
    for turn in range(rounds + 1):
        arrivals = stream[w + turn * ARRIVALS : w + (turn + 1) * ARRIVALS]
        started = time.process_time()
        window.offer(arrivals)
        spent = (time.process_time() - started) * 1e3 / len(arrivals)
        best = min(best, spent) if turn else best  # the first round may compile
    end = w + (rounds + 1) * ARRIVALS
    return best, stream[end - w : end]


def exhibit(
    number: str, title: str, curves: Mapping[str, Mapping[int, float]], claims: Iterable[Claim]
) -> Exhibit:
    """Return a figure of times over windows, on a logarithmic scale as in the thesis."""
    rows = tuple((name, w, ms) for name, curve in curves.items() for w, ms in curve.items())
    lines = [Series(name, list(curve), list(curve.values())) for name, curve in curves.items()]
    return Exhibit(
        "TKS",
        number,
        title,
        DataTable(("", "w", "ms"), rows, timed=("ms",)),
        tuple(claims),
        chart([Panel("", "window w", "ms of CPU time", lines, log_x=10, log_y=True)]),
    )


def figure_7_12(measured: Measured) -> Exhibit:
    """Return BLSH and NAIVE batch by batch, for the smallest publications."""
    size = min(measured.parameters.dimensions)
    curves = {method: measured.over_windows(size, method) for method in (BLSH, NAIVE)}
    title = f"Batch-wise top k by BLSH and NAIVE, D = {size}"
    claims = (
        blsh_is_always_faster(curves),
        blsh_is_faster(curves),
        work_of_a_batch(measured.parameters, size),
    )
    return exhibit("Figure 7.12", title, curves, claims)


def blsh_is_always_faster(curves: Mapping[str, Mapping[int, float]]) -> Claim:
    """Claim that BLSH is faster than NAIVE whatever the window is."""
    ratios = {w: curves[NAIVE][w] / ms for w, ms in curves[BLSH].items()}
    slower = [w for w, ratio in ratios.items() if ratio <= 1]
    return Claim(
        "BLSH needs less time than NAIVE in every window.",
        "performs really well",
        ", ".join(f"{ratio:.2f} times as fast at w = {w:,}" for w, ratio in ratios.items()),
        not slower,
        f"In windows of up to {max(slower, default=0):,} NAIVE has fewer comparisons to make than "
        "BLSH hashes to compute, or makes them faster: 64 attributes at a time.",
        timed=True,
    )


def blsh_is_faster(curves: Mapping[str, Mapping[int, float]]) -> Claim:
    """Claim that BLSH is faster than NAIVE in the largest window."""
    w = max(curves[BLSH])
    blsh, naive = curves[BLSH][w], curves[NAIVE][w]
    return Claim(
        f"BLSH needs less time than NAIVE in windows of {w:,}.",
        "performs really well",
        f"{blsh:.2f} ms against {naive:.2f} ms, {naive / blsh:.1f} times as fast",
        blsh < naive,
        "NAIVE compares 64 attributes at a time, and BLSH multiplies twice for each attribute and "
        "hash function. One is quadratic in w and the other linear: how large a window has to be "
        "for BLSH to win depends on the processor.",
        timed=True,
    )


def work_of_a_batch(parameters: IndexParameters, size: int) -> Claim:
    """Claim that BLSH has less to do in large windows, counted instead of timed."""
    w, m = max(parameters.windows), hash_functions(parameters.error, parameters.threshold)
    hashes, comparisons = w * size * m, w * (w - 1) // 2 * size
    return Claim(
        f"In windows of {w:,} NAIVE compares more tokens than BLSH hashes.",
        "O(k (D n)²) against O(n D m)",
        f"{comparisons:,} comparisons, {hashes:,} hashes with m = {m}",
        comparisons > hashes,
        f"A window needs more than 2 m = {2 * m} publications for that.",
    )


def hash_functions(error: float, threshold: float) -> int:
    """Return m = L * r."""
    tables, rows = MaxDivRelLsh(error=error, threshold=threshold).shape
    return tables * rows


def figure_7_13(measured: Measured) -> Exhibit:
    """Return BLSH for each expected error."""
    parameters = measured.parameters
    curves = {
        f"e = {error}, m = {hash_functions(error, parameters.threshold)}": {
            w: measured.by_error[error, w] for w in parameters.windows
        }
        for error in sorted(parameters.errors)
    }
    title = f"BLSH by the expected error, D = {min(parameters.dimensions)}"
    return exhibit("Figure 7.13", title, curves, (grows_with_windows(curves), error_costs(curves)))


def grows_with_windows(curves: Mapping[str, Mapping[int, float]]) -> Claim:
    """Claim that larger windows take longer, for every curve."""
    growths = [_growth(curve) for curve in curves.values()]
    sizes = list(next(iter(curves.values())))
    return Claim(
        "The time increases with the window.",
        "gradually increased",
        f"{min(growths):.1f} to {max(growths):.1f} times for {sizes[-1] / sizes[0]:.0f} times the "
        "publications",
        min(growths) > 1,
        timed=True,
    )


def error_costs(curves: Mapping[str, Mapping[int, float]]) -> Claim:
    """Claim that smaller errors take longer in the largest window."""
    last = [list(curve.values())[-1] for curve in curves.values()]
    return Claim(
        "The smaller the expected error, the longer it takes.",
        "longer when e is reduced or m increased",
        ", ".join(f"{ms:.2f} ms" for ms in last) + f" for {', '.join(curves)}",
        last == sorted(last, reverse=True),
        timed=True,
    )


def by_dimension(measured: Measured, number: str, method: str) -> Exhibit:
    """Return the times of one method for each D."""
    curves = {
        f"D = {size}": measured.over_windows(size, method)
        for size in measured.parameters.dimensions
    }
    claims: tuple[Claim, ...]
    if method == NAIVE:
        claims = (naive_grows_faster(measured),)
    elif method == BLSH:
        claims = (at_most_linear(measured, BLSH, "performs well when D increases"),)
    else:
        linear = at_most_linear(measured, ILSH, "slightly increased")
        claims = (linear, window_matters_little(measured))
    return exhibit(number, f"{method} by the size D of publications", curves, claims)


def _growth(values: Mapping[int, float]) -> float:
    """Return the last value relative to the first."""
    first, *_, last = values.values()
    return last / first


def _larger(values: Mapping[int, float]) -> float:
    """Return how many times the last size is the first."""
    first, *_, last = values
    return last / first


def at_most_linear(measured: Measured, method: str, thesis: str) -> Claim:
    """Claim that the time grows less than D."""
    times = measured.over_dimensions(method, measured.widest)
    return Claim(
        f"The time of {method} grows less than in proportion to D.",
        thesis,
        f"{_growth(times):.1f} times for {_larger(times):.0f} times the attributes",
        _growth(times) < _larger(times),
        timed=True,
    )


def naive_grows_faster(measured: Measured) -> Claim:
    """Claim that an attribute costs NAIVE much more than BLSH."""
    costs = {
        method: _slope(measured.over_dimensions(method, measured.widest))
        for method in (NAIVE, BLSH)
    }
    return Claim(
        "The time of NAIVE increases much faster with D than that of BLSH: each attribute costs it "
        "at least twice as much.",
        "increased much faster",
        f"{costs[NAIVE] * 1e3:.0f} us for each attribute, BLSH {costs[BLSH] * 1e3:.0f} us, in "
        f"windows of {measured.widest:,}",
        costs[NAIVE] >= 2 * costs[BLSH],
        "MinHash reads every attribute as often as there are hash functions, and NAIVE as often as "
        "there are other publications, 64 attributes at a time. Both are linear in D; which one is "
        "steeper depends on w and on the processor.",
        timed=True,
    )


def _slope(times: Mapping[int, float]) -> float:
    """Return milliseconds per attribute, between the smallest and the largest D."""
    (first, low), *_, (last, high) = times.items()
    return (high - low) / (last - first)


def window_matters_little(measured: Measured) -> Claim:
    """Claim that an update of ILSH hardly depends on the window."""
    growths = [
        _growth(measured.over_windows(size, ILSH)) for size in measured.parameters.dimensions
    ]
    larger = max(measured.parameters.windows) / min(measured.parameters.windows)
    return Claim(
        "An update does not compute the window again: its time grows at most half as much as the "
        "window.",
        "avoids re-computing the whole set",
        f"at most {max(growths):.1f} times for {larger:.0f} times the window",
        max(growths) <= larger / 2,
        "Buckets are not stored: the keys of an arrival are compared with all those of the window.",
        timed=True,
    )


def blsh_against_naive(measured: Measured, number: str, size: int) -> Exhibit:
    """Return both methods for one D."""
    curves = {method: measured.over_windows(size, method) for method in (BLSH, NAIVE)}
    title = f"BLSH against NAIVE, D = {size}"
    claims = (blsh_is_always_faster(curves), blsh_is_faster(curves), advantage_grows(curves))
    return exhibit(number, title, curves, claims)


def advantage_grows(curves: Mapping[str, Mapping[int, float]]) -> Claim:
    """Claim that NAIVE falls behind as windows grow."""
    ratios = {w: curves[NAIVE][w] / curves[BLSH][w] for w in curves[BLSH]}
    first, *_, last = ratios
    return Claim(
        "The larger the window, the farther NAIVE falls behind.",
        "quadratic against linear",
        f"{ratios[first]:.2f} times the time of BLSH at w = {first:,}, {ratios[last]:.2f} times at "
        f"w = {last:,}",
        ratios[last] > ratios[first],
        timed=True,
    )


def table_7_12(measured: Measured) -> Exhibit:
    """Return the cost of an update by D."""
    parameters = measured.parameters
    ours = {
        size: fmean(measured.over_windows(size, ILSH).values()) for size in parameters.dimensions
    }
    m = hash_functions(parameters.error, parameters.threshold)
    rows = tuple((size, ms, size * m, TABLE_7_12.get(size)) for size, ms in ours.items())
    panels = [
        Panel("Ours", "D", "ms of an update", [_line(ours)], y_range=(0, None)),
        Panel("The thesis", "D", "s of an update", [_line(TABLE_7_12)], y_range=(0, None)),
    ]
    return Exhibit(
        "TKS",
        "Table 7.12",
        "Cost of an update of ILSH",
        DataTable(("D", "ms", "hashes", "s in the thesis"), rows, timed=("ms",)),
        (update_cost(ours),),
        chart(panels),
    )


def _line(values: Mapping[int, float]) -> Series:
    return Series(ILSH, list(values), list(values.values()))


def update_cost(ours: Mapping[int, float]) -> Claim:
    """Claim the shape of the table."""
    return Claim(
        "The cost of an update grows with D, and less than in proportion.",
        f"{_growth(TABLE_7_12):.1f} times for {_larger(TABLE_7_12):.0f} times the attributes",
        f"{_growth(ours):.1f} times for {_larger(ours):.0f} times the attributes",
        1 < _growth(ours) < _larger(ours),
        timed=True,
    )


def all_three(measured: Measured, number: str, size: int) -> Exhibit:
    """Return all methods for one D."""
    curves = {method: measured.over_windows(size, method) for method in (BLSH, NAIVE, ILSH)}
    claims = (ilsh_is_fastest(curves), ilsh_beats_naive_by_far(curves), both_agree(measured.agreed))
    return exhibit(number, f"ILSH, BLSH and NAIVE, D = {size}", curves, claims)


def ilsh_is_fastest(curves: Mapping[str, Mapping[int, float]]) -> Claim:
    """Claim that an update is faster than BLSH in every window."""
    ratios = [curves[BLSH][w] / ms for w, ms in curves[ILSH].items()]
    return Claim(
        "ILSH is faster than BLSH in every window.",
        "performs even better than BLSH",
        f"{min(ratios):.0f} to {max(ratios):.0f} times as fast",
        min(ratios) > 1,
        timed=True,
    )


def ilsh_beats_naive_by_far(curves: Mapping[str, Mapping[int, float]]) -> Claim:
    """Claim the distance on a logarithmic scale: an order of magnitude."""
    ratios = [curves[NAIVE][w] / ms for w, ms in curves[ILSH].items()]
    return Claim(
        "ILSH is at least ten times as fast as NAIVE in every window.",
        "a scale of logarithms is needed to show both",
        f"{min(ratios):.0f} to {max(ratios):.0f} times as fast",
        min(ratios) >= 10,
        timed=True,
    )


def both_agree(agreed: Sequence[bool]) -> Claim:
    """Claim that the incremental choice is that of a new computation."""
    return Claim(
        "ILSH chooses what BLSH chooses from the same window.",
        "solves the same problem",
        f"in {sum(agreed)} of {len(agreed)} windows",
        all(agreed),
    )


EXPERIMENT: Final = Experiment(
    "tks-figure-7.12",
    "TKS",
    NUMBERS,
    run,
    paper_parameters=IndexParameters(),
    # NAIVE may be the faster one up to 1,000: 2,500 is the first window of the thesis beyond.
    laptop=IndexParameters(windows=(100, 500, 1000, 2500), rounds=6),
    quick=IndexParameters(
        dimensions=(4, 8), windows=(10, 20), errors=(0.2, 0.3), error=0.2, k=3, rounds=1
    ),
)
