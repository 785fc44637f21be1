"""TKS Tables 7.7 and 7.9: the exponent of the power law that the votes of LSH buckets follow.

The votes are those of all publications of a window that win a bucket (k = w), and the exponent is
the estimator of TKS 7.3.1.1 with x_min = 1: 1 + n / sum of ln x.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.lab.papers.experiment import Claim, DataTable, Exhibit, Experiment, Progress
from tidings.lab.svg import Panel, Series, chart
from tidings.lab.workloads.catalogue import CatalogueChoice
from tidings.lab.workloads.ranked_window import best_matching_window

THRESHOLD: Final = 0.55
"""The threshold of Table 7.7: its averages are the row of 0.55 in Table 7.9."""
TABLE_7_7: Final = {
    10: 2.4883,
    20: 2.4805,
    50: 2.4851,
    100: 2.4819,
    225: 2.2295,
    350: 1.9907,
    500: 1.9420,
    1000: 1.9591,
}
"""The average exponents of the thesis by window."""
TABLE_7_9: Final = {
    0.35: {10: 2.4827, 20: 2.4858, 50: 2.4762, 100: 2.4800, 500: 1.9700, 1000: 1.9630},
    0.55: {10: 2.4883, 20: 2.4805, 50: 2.4851, 100: 2.4819, 500: 1.9420, 1000: 1.9591},
    0.85: {10: 2.4796, 20: 2.4670, 50: 2.4840, 100: 2.4790, 500: 1.9413, 1000: 1.9500},
}


@dataclass(frozen=True)
class VoteParameters:
    """Windows of each size per view, thresholds s, and the error e that m = 1 / e² follows from.

    The thesis has 19,030 distributions of votes: 132 for each window, view and threshold.
    """

    windows: tuple[int, ...] = tuple(TABLE_7_7)
    thresholds: tuple[float, ...] = tuple(TABLE_7_9)
    error: float = 0.07
    windows_per_view: int = 132
    catalogue: CatalogueChoice = CatalogueChoice()


@dataclass(frozen=True)
class Exponents:
    """The mean exponent by threshold, size of the window, and view; and L by threshold."""

    mean: Mapping[float, Mapping[int, Mapping[str, float]]]
    tables: Mapping[float, int]

    def average(self, threshold: float, window: int) -> float:
        """Return the mean over the views."""
        return fmean(self.mean[threshold][window].values())


def run(parameters: VoteParameters, seed: int, progress: Progress) -> Sequence[Exhibit]:
    """Count the votes of windows of all views, and fit the exponent of each."""
    exponents = measure(parameters, seed, progress)
    return [table_7_7(exponents, parameters.catalogue), table_7_9(exponents)]


def measure(parameters: VoteParameters, seed: int, progress: Progress) -> Exponents:
    """Return the mean exponents over all windows."""
    views = parameters.catalogue.views(seed)
    parts = {s: MaxDivRelLsh(error=parameters.error, threshold=s) for s in parameters.thresholds}
    exponents: dict[float, dict[int, dict[str, list[float]]]] = {
        s: {w: {name: [] for name in views} for w in parameters.windows} for s in parts
    }
    total = len(parameters.windows) * len(views)
    for step, (w, name) in enumerate((w, name) for w in parameters.windows for name in views):
        progress(step, total, f"windows of {w} in {name}")
        for number in range(parameters.windows_per_view):
            window = best_matching_window(views[name], w, seed + number)
            for s, part in parts.items():
                exponents[s][w][name].append(exponent(part.votes(window)))
    mean = {
        s: {w: {name: fmean(of) for name, of in by_name.items()} for w, by_name in by_w.items()}
        for s, by_w in exponents.items()
    }
    return Exponents(mean, {s: part.shape[0] for s, part in parts.items()})


def exponent(votes: Int64s) -> float:
    """Return 1 + n / sum of ln x over the n positive votes (TKS 7.3.1.1); infinite for all 1.

    >>> round(exponent(np.array([34, 34, 0])), 3)
    1.284
    """
    logarithms = np.log(votes[votes > 0])
    return 1 + len(logarithms) / float(logarithms.sum()) if logarithms.any() else math.inf


def table_7_7(exponents: Exponents, catalogue: CatalogueChoice) -> Exhibit:
    """Return the exponents by view."""
    s = THRESHOLD if THRESHOLD in exponents.mean else next(iter(exponents.mean))
    by_window = exponents.mean[s]
    views = list(next(iter(by_window.values())))
    synthetic = "synthetic, with its categories and attributes"
    products = "those of a file" if catalogue.file else synthetic
    rows = tuple(
        (w, *by_view.values(), exponents.average(s, w), TABLE_7_7.get(w))
        for w, by_view in by_window.items()
    )
    claims = (
        falls(exponents, s),
        is_near_two(exponents, s),
        views_agree(exponents, s),
    )
    return Exhibit(
        "TKS",
        "Table 7.7",
        "Exponent of the votes by window and view",
        DataTable(("w", *views, "average", "average in the thesis"), rows),
        claims,
        picture(
            {name: {w: by[name] for w, by in by_window.items()} for name in views},
            {"average in the thesis": TABLE_7_7},
        ),
        f"The thesis draws its products from a shop; ours are {products}. The threshold is {s}, "
        f"which gives {exponents.tables[s]} tables.",
    )


def falls(exponents: Exponents, s: float) -> Claim:
    """Claim that the exponent converges to 1 from above."""
    windows = list(exponents.mean[s])
    first, last = (exponents.average(s, w) for w in (windows[0], windows[-1]))
    return Claim(
        "The exponent falls towards 1 as the window grows.",
        "2.49 at w = 10, 1.96 at w = 1,000",
        f"{first:.3f} at w = {windows[0]:,}, {last:.3f} at w = {windows[-1]:,}",
        last < first,
        _alone(exponents, s),
    )


def _alone(exponents: Exponents, s: float) -> str:
    tables = exponents.tables[s]
    return (
        f"A publication without similar ones wins its bucket in each of the {tables} tables, so "
        f"that the exponent of a small window is 1 + 1 / ln {tables} = "
        f"{1 + 1 / math.log(tables):.3f} whatever its publications are. In larger windows similar "
        "ones take votes from each other, and fewer votes mean a larger exponent. The thesis' 2.49 "
        "is that of publications with about two votes each; it does not say how many tables it had."
    )


def is_near_two(exponents: Exponents, s: float) -> Claim:
    """Claim the value for large windows."""
    large = [exponents.average(s, w) for w in exponents.mean[s] if w >= 350]
    large = large or [exponents.average(s, max(exponents.mean[s]))]
    return Claim(
        "The exponent is around 2.0 in windows of 350 and more.",
        "1.94 to 1.99",
        f"{min(large):.2f} to {max(large):.2f}",
        all(abs(value - 2) <= 0.25 for value in large),
        f"With {exponents.tables[s]} tables and votes near that number the exponent is near "
        f"{1 + 1 / math.log(exponents.tables[s]):.2f}, as explained above: nearer to the 1 of a "
        "perfect Zipf law than the thesis' figures.",
    )


def views_agree(exponents: Exponents, s: float) -> Claim:
    """Claim that small windows of all views have about the same exponent."""
    small = [
        max(by_view.values()) - min(by_view.values())
        for w, by_view in exponents.mean[s].items()
        if w <= 100
    ]
    return Claim(
        "In windows of up to 100, the views differ by at most 0.06.",
        "0.02 to 0.06",
        f"{min(small):.3f} to {max(small):.3f}",
        max(small) <= 0.06,
    )


def table_7_9(exponents: Exponents) -> Exhibit:
    """Return the average exponents by threshold."""
    windows = [w for w in next(iter(TABLE_7_9.values())) if w in _windows(exponents)]
    windows = windows or _windows(exponents)
    rows = tuple(
        (s, exponents.tables[s], *(exponents.average(s, w) for w in windows))
        for s in exponents.mean
    )
    return Exhibit(
        "TKS",
        "Table 7.9",
        "Exponent of the votes by threshold",
        DataTable(("s", "tables", *(f"w = {w:,}" for w in windows)), rows),
        (threshold_does_not_matter(exponents, windows),),
        picture(
            {f"s = {s}": {w: exponents.average(s, w) for w in windows} for s in exponents.mean},
            {f"s = {s}": by_w for s, by_w in TABLE_7_9.items()},
        ),
    )


def _windows(exponents: Exponents) -> list[int]:
    return list(next(iter(exponents.mean.values())))


def threshold_does_not_matter(exponents: Exponents, windows: Sequence[int]) -> Claim:
    """Claim that the exponents of all thresholds are almost identical."""
    spread = _spread(exponents.average, list(exponents.mean), windows)
    thesis = _spread(lambda s, w: TABLE_7_9[s][w], list(TABLE_7_9), list(TABLE_7_9[THRESHOLD]))
    return Claim(
        "The threshold does not matter: in every window the exponents differ by at most 0.03.",
        f"at most {thesis:.3f}",
        f"at most {spread:.3f}",
        spread <= 0.03,
        "L and r follow from the threshold (TKS 5.2.7): "
        + ", ".join(f"{tables} tables for {s}" for s, tables in exponents.tables.items())
        + ". Publications without similar ones have one vote per table, and the exponent is "
        "1 + 1 / ln L.",
    )


def _spread(
    value: Callable[[float, int], float], thresholds: Sequence[float], windows: Sequence[int]
) -> float:
    """Return the largest difference between thresholds over all windows."""
    columns = [[value(s, w) for s in thresholds] for w in windows]
    return max(max(column) - min(column) for column in columns)


def picture(
    ours: Mapping[str, Mapping[int, float]], thesis: Mapping[str, Mapping[int, float]]
) -> str:
    """Draw exponents over the window."""
    return chart(
        [
            Panel(title, "window w", "exponent", lines(curves), log_x=10, y_range=(1, None))
            for title, curves in (("Ours", ours), ("The thesis", thesis))
        ],
    )


def lines(curves: Mapping[str, Mapping[int, float]]) -> list[Series]:
    """Return a line per curve."""
    return [Series(name, list(of), list(of.values())) for name, of in curves.items()]


EXPERIMENT: Final = Experiment(
    "tks-table-7.7",
    "TKS",
    ("Table 7.7", "Table 7.9"),
    run,
    paper_parameters=VoteParameters(),
    laptop=VoteParameters(windows_per_view=6, catalogue=CatalogueChoice(2_000)),
    quick=VoteParameters(windows=(10, 40), windows_per_view=1, catalogue=CatalogueChoice(60)),
)
