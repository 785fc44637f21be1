"""TKS Table 7.10 and Figure 7.3: whether the votes of LSH buckets follow a power law, or another.

The test of TKS 7.3.1.1: a law is fitted to the votes of a window, and then to many synthetic sets
that are drawn from it. The p-value is the share of sets whose Kolmogorov-Smirnov distance to their
fit is at least that of the votes. Fits and distances are those of the library `powerlaw`.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final, NamedTuple

import numpy as np
import powerlaw

from tidings.compiled.array_types import Float64s
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.lab.papers.experiment import Cell, Claim, DataTable, Exhibit, Experiment, Progress
from tidings.lab.svg import Panel, Series, chart
from tidings.lab.workloads.catalogue import CatalogueChoice, View
from tidings.lab.workloads.ranked_window import best_matching_window

GOOD: Final = 0.5
"""From this p-value on, the thesis accepts a law."""
TABLE: Final = {
    "Automotive": {20: 0.5494, 50: 0.4595, 100: 0.5023, 500: 0.5743},
    "Home": {20: 0.5149, 50: 0.4894, 100: 0.5390, 500: 0.4820},
    "Electronics": {20: 0.5435, 50: 0.4588, 100: 0.5600, 500: 0.5200},
    "Movies": {20: 0.5226, 50: 0.4226, 100: 0.5963, 500: 0.5392},
    "Books": {20: 0.5421, 50: 0.5191, 100: 0.5908, 500: 0.5198},
    "Phones": {20: 0.4948, 50: 0.4049, 100: 0.5462, 500: 0.4800},
}
ZERO: Final = 0.005
"""A p-value up to this reads 0.00."""
COMPARED: Final = 2
"""How many views Figure 7.3 has: Automotive and Home, the first two of the table."""
POWER_LAW: Final = "power law"


class Law(NamedTuple):
    """A distribution of the library, and how sets are drawn from a fit."""

    kind: Callable[..., Any]
    draw: Callable[[Any, int, np.random.Generator], Float64s]


def _draw_lognormal(fit: Any, size: int, rng: np.random.Generator) -> Float64s:
    """Return rounded draws, without those below 1."""
    drawn = np.empty(0)
    while len(drawn) < size:
        more = np.rint(rng.lognormal(fit.mu, fit.sigma, 2 * size))
        drawn = np.concatenate([drawn, more[more >= 1]])
    return drawn[:size]


LAWS: Final = {
    POWER_LAW: Law(
        powerlaw.Power_Law, lambda fit, size, rng: rng.zipf(fit.alpha, size).astype(float)
    ),
    "log-normal": Law(powerlaw.Lognormal, _draw_lognormal),
    # Rounded draws of an exponential law that begins at 1/2.
    "exponential": Law(
        powerlaw.Exponential,
        lambda fit, size, rng: 1 + np.floor(rng.exponential(1 / fit.Lambda, size)),
    ),
}


@dataclass(frozen=True)
class FitParameters:
    """Windows of each size (k = w), and the number of synthetic sets per window."""

    windows: tuple[int, ...] = (20, 50, 100, 500)
    windows_per_view: int = 132
    sets: int = 1000
    error: float = 0.07
    threshold: float = 0.55
    catalogue: CatalogueChoice = CatalogueChoice()


PValues = dict[str, dict[str, dict[int, float]]]
"""Mean p-values by law, view and window."""


def run(parameters: FitParameters, seed: int, progress: Progress) -> Sequence[Exhibit]:
    """Test the power law for all views, and the alternatives for those of Figure 7.3."""
    values = measure(parameters, seed, progress)
    return [table_7_10(values[POWER_LAW], parameters), figure_7_3(values)]


def measure(parameters: FitParameters, seed: int, progress: Progress) -> PValues:
    """Return the mean p-values."""
    views = parameters.catalogue.views(seed)
    names = [name for name in TABLE if name in views] or list(views)
    cells = [
        (law, name, w)
        for law in LAWS
        for name in (names if law == POWER_LAW else names[:COMPARED])
        for w in parameters.windows
    ]
    values: PValues = {law: {} for law in LAWS}
    for step, (law, name, w) in enumerate(cells):
        progress(step, len(cells), f"{law}, windows of {w} in {name}")
        mean = fmean(_p_values(LAWS[law], views[name], w, parameters, seed))
        values[law].setdefault(name, {})[w] = mean
    return values


def _p_values(
    law: Law, view: View, size: int, parameters: FitParameters, seed: int
) -> Sequence[float]:
    part = MaxDivRelLsh(error=parameters.error, threshold=parameters.threshold)
    rng = np.random.default_rng([seed, size])
    windows = (
        best_matching_window(view, size, seed + number)
        for number in range(parameters.windows_per_view)
    )
    votes = (part.votes(window) for window in windows)
    return [p_value(law, of[of > 0].astype(float), parameters.sets, rng) for of in votes]


def p_value(law: Law, values: Float64s, sets: int, rng: np.random.Generator) -> float:
    """Return the share of synthetic sets that are at least as far from their fit as the values."""
    fit = fitted(law, values)
    distances = [fitted(law, law.draw(fit, len(values), rng)).D for _ in range(sets)]
    return float(np.mean(np.array(distances) >= fit.D))


def fitted(law: Law, values: Float64s) -> Any:
    """Return the law, fitted to integers from 1 on; its distance to them is `D`."""
    with warnings.catch_warnings():
        # The library warns of fits at the edge of its ranges, such as those to equal values.
        warnings.simplefilter("ignore")
        return law.kind(data=values, discrete=True, xmin=1, verbose=False)


def table_7_10(values: Mapping[str, Mapping[int, float]], parameters: FitParameters) -> Exhibit:
    """Return the p-values of the power law."""
    rows = tuple(
        (name, *by_window.values(), *(TABLE.get(name, {}).get(w) for w in by_window))
        for name, by_window in values.items()
    )
    columns = [f"k = {w}" for w in parameters.windows]
    return Exhibit(
        "TKS",
        "Table 7.10",
        "p-values of a power law for the votes",
        DataTable(("view", *columns, *(f"{name} in the thesis" for name in columns)), rows),
        (most_are_good(values), size_does_not_matter(values)),
        chart(
            [
                Panel("Ours", "k", "p-value", _lines(values), log_x=10, y_range=(0, 1)),
                Panel("The thesis", "k", "p-value", _lines(TABLE), log_x=10, y_range=(0, 1)),
            ]
        ),
        f"With {parameters.sets} synthetic sets a p-value is accurate to about "
        f"{0.5 * parameters.sets**-0.5:.2f}, by the thesis' rule of thumb.",
    )


def _lines(values: Mapping[str, Mapping[int, float]]) -> list[Series]:
    return [Series(name, list(of), list(of.values())) for name, of in values.items()]


def _all(values: Mapping[str, Mapping[int, float]]) -> list[float]:
    return [value for by_window in values.values() for value in by_window.values()]


def most_are_good(values: Mapping[str, Mapping[int, float]]) -> Claim:
    """Claim that the power law is accepted in most cells."""
    ours, thesis = _all(values), _all(TABLE)
    good, good_in_thesis = (sum(p >= GOOD for p in cells) for cells in (ours, thesis))
    return Claim(
        f"Most p-values are at least {GOOD}, so that votes follow a power law.",
        f"{good_in_thesis} of {len(thesis)}, {min(thesis):.2f} to {max(thesis):.2f}",
        f"{good} of {len(ours)}, {min(ours):.2f} to {max(ours):.2f}",
        good > len(ours) / 2,
        "No publication has more votes than there are tables, and most have nearly all of them. A "
        "power law has its mass at 1 and a tail without end: the votes are far from every fit.",
    )


def size_does_not_matter(values: Mapping[str, Mapping[int, float]]) -> Claim:
    """Claim that p-values depend little on k."""
    ours, thesis = (_spread_of_means(cells) for cells in (values, TABLE))
    return Claim(
        "p-values are almost the same for all k: their means differ by at most 0.1.",
        f"by {thesis:.2f}",
        f"by {ours:.2f}" + ("" if max(_all(values)) > ZERO else ", since all are 0"),
        ours <= 0.1,
    )


def _spread_of_means(values: Mapping[str, Mapping[int, float]]) -> float:
    windows = next(iter(values.values()))
    means = [fmean(by_window[w] for by_window in values.values()) for w in windows]
    return max(means) - min(means)


def figure_7_3(values: PValues) -> Exhibit:
    """Return the p-values of all laws for two views."""
    compared = list(values[POWER_LAW])[:COMPARED]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, w, *(values[law][name][w] for law in LAWS))
        for name in compared
        for w in values[POWER_LAW][name]
    )
    panels = [
        Panel(
            f"{name} subscriber view",
            "k",
            "p-value",
            [
                Series(law, list(values[law][name]), list(values[law][name].values()))
                for law in LAWS
            ],
            bars=True,
            y_range=(0, 1),
        )
        for name in compared
    ]
    return Exhibit(
        "TKS",
        "Figure 7.3",
        "p-values of a power law and of alternatives",
        DataTable(("view", "k", *LAWS), rows),
        (alternatives_are_refused(values), power_law_is_best(values)),
        chart(panels),
        "The thesis took the p-values of both alternatives from a statistical package. Ours are "
        "shares of synthetic sets for all three.",
    )


def alternatives_are_refused(values: PValues) -> Claim:
    """Claim that neither alternative fits."""
    largest = {law: max(_all(values[law])) for law in LAWS if law != POWER_LAW}
    return Claim(
        "Log-normal and exponential laws do not fit: their p-values are below 0.05.",
        "log-normal below 0.005, exponential below 0.003",
        ", ".join(f"{law} at most {value:.2f}" for law, value in largest.items()),
        max(largest.values()) < 0.05,
        "Where almost all publications have the same number of votes, a narrow log-normal law "
        "around that number fits.",
    )


def power_law_is_best(values: PValues) -> Claim:
    """Claim that the power law has the largest p-value wherever laws are compared."""
    compared = list(values[POWER_LAW])[:COMPARED]
    cells = [(name, w) for name in compared for w in values[POWER_LAW][name]]
    best = sum(
        all(values[POWER_LAW][name][w] > values[law][name][w] for law in LAWS if law != POWER_LAW)
        for name, w in cells
    )
    return Claim(
        "The power law has a larger p-value than both alternatives.",
        "for all k of both views",
        f"in {best} of {len(cells)} cases",
        best == len(cells),
        "None of the three laws describes numbers between 1 and L that are mostly near L; see "
        "Table 7.10.",
    )


EXPERIMENT: Final = Experiment(
    "tks-table-7.10",
    "TKS",
    ("Table 7.10", "Figure 7.3"),
    run,
    paper_parameters=FitParameters(),
    laptop=FitParameters(windows_per_view=1, sets=100, catalogue=CatalogueChoice(2_000)),
    quick=FitParameters(
        windows=(10, 20), windows_per_view=1, sets=2, catalogue=CatalogueChoice(60)
    ),
)
