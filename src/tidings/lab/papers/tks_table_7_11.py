"""TKS Table 7.11: the exponent of a power law for the relevance of what diversifiers choose."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tidings.diversify import Diversifier
from tidings.diversify.covers import Disc, MaxDivRel
from tidings.diversify.distance import Jaccard
from tidings.diversify.greedy import MaxMin
from tidings.lab.papers.experiment import Claim, DataTable, Exhibit, Experiment, Progress
from tidings.lab.svg import Panel, Series, chart
from tidings.lab.workloads.catalogue import CatalogueChoice
from tidings.lab.workloads.ranked_window import best_matching_window

METHODS: Final[dict[str, Diversifier]] = {
    "MAXMIN": MaxMin(distance=Jaccard()),
    "DisC": Disc(distance=Jaccard()),
    "MAXDIVREL": MaxDivRel(distance=Jaccard()),
}
TABLE: Final = {
    10: {"MAXMIN": 4.6123, "DisC": 3.4632, "MAXDIVREL": 2.4883},
    50: {"MAXMIN": 12.2535, "DisC": 2.7392, "MAXDIVREL": 2.4851},
    250: {"MAXMIN": 46.1347, "DisC": 2.5381, "MAXDIVREL": 2.1956},
    500: {"MAXMIN": 50.3878, "DisC": 2.1023, "MAXDIVREL": 1.9420},
    1000: {"MAXMIN": 62.5921, "DisC": 2.2003, "MAXDIVREL": 1.9591},
}
SAME_MEASURE: Final = (
    "The thesis' column of MAXDIVREL is that of Table 7.7, fitted to votes; its other columns are "
    "fitted to relevance. Here all three are fitted to the relevance of what was chosen, from the "
    "same windows."
)
Exponents = Mapping[int, Mapping[str, float]]
"""By k and method."""


@dataclass(frozen=True)
class DiversityParameters:
    """Sizes k of the choice, from windows of `candidates` times k publications."""

    ks: tuple[int, ...] = tuple(TABLE)
    candidates: int = 2
    windows_per_view: int = 10
    catalogue: CatalogueChoice = CatalogueChoice()


def run(parameters: DiversityParameters, seed: int, progress: Progress) -> Sequence[Exhibit]:
    """Choose from the same windows with all methods, and fit the relevance of the chosen."""
    views = parameters.catalogue.views(seed)
    steps = [(k, name) for k in parameters.ks for name in views]
    ratios: dict[int, dict[str, list[float]]] = {
        k: {method: [] for method in METHODS} for k in parameters.ks
    }
    for step, (k, name) in enumerate(steps):
        progress(step, len(steps), f"{k} of {parameters.candidates * k} in {name}")
        for number in range(parameters.windows_per_view):
            window = best_matching_window(views[name], parameters.candidates * k, seed + number)
            for method, part in METHODS.items():
                chosen = [window[place].rank for place in part.choose(window, k)]
                ratios[k][method] += [rank / min(chosen) for rank in chosen]
    return [
        exhibit(
            {
                k: {method: pooled_exponent(of) for method, of in by_method.items()}
                for k, by_method in ratios.items()
            }
        )
    ]


def pooled_exponent(ratios: Sequence[float]) -> float:
    """Return 1 + n / sum of ln(x / x_min), where each x is divided by the least of its choice.

    >>> round(pooled_exponent([1, 2, 4]), 3)
    2.443
    """
    return 1 + len(ratios) / float(np.log(ratios).sum())


def exhibit(exponents: Exponents) -> Exhibit:
    """Return the table with its claims."""
    rows = tuple(
        (k, *by_method.values(), *(TABLE.get(k, {}).get(method) for method in METHODS))
        for k, by_method in exponents.items()
    )
    return Exhibit(
        "TKS",
        "Table 7.11",
        "Exponent of the relevance of the chosen by diversity method",
        DataTable(("k", *METHODS, *(f"{method} in the thesis" for method in METHODS)), rows),
        (
            maxmin_is_largest(exponents),
            maxmin_grows(exponents),
            covers_fall(exponents),
            maxdivrel_is_smallest(exponents),
        ),
        chart(
            [
                Panel("Ours", "k", "exponent", _lines(exponents), log_x=10),
                Panel("The thesis", "k", "exponent", _lines(TABLE), log_x=10, log_y=True),
            ]
        ),
        SAME_MEASURE,
    )


def _lines(exponents: Exponents) -> list[Series]:
    return [
        Series(method, list(exponents), [by[method] for by in exponents.values()])
        for method in METHODS
    ]


def _ends(exponents: Exponents, method: str) -> str:
    first, *_, last = exponents
    return f"{method} {exponents[first][method]:.2f} to {exponents[last][method]:.2f}"


def maxmin_is_largest(exponents: Exponents) -> Claim:
    """Claim that MAXMIN is farthest from a Zipf law."""
    larger = sum(by["MAXMIN"] > max(by["DisC"], by["MAXDIVREL"]) for by in exponents.values())
    return Claim(
        "MAXMIN has the largest exponent for every k.",
        "for 5 of 5",
        f"for {larger} of {len(exponents)}",
        larger == len(exponents),
        "Relevance counts half in MAXMIN, so that what it chooses need not be less relevant.",
    )


def maxmin_grows(exponents: Exponents) -> Claim:
    """Claim that MAXMIN diverges."""
    first, *_, last = (by["MAXMIN"] for by in exponents.values())
    return Claim(
        "The exponent of MAXMIN grows with k, at least fivefold from the smallest to the largest.",
        "4.61 to 62.59",
        f"{first:.2f} to {last:.2f}",
        last >= 5 * first,
        "An exponent of 60 means that the chosen have almost the same relevance. By the preference "
        "graph relevance is a mean of ratios of preferences, and in every large choice it spreads "
        "over orders of magnitude.",
    )


def covers_fall(exponents: Exponents) -> Claim:
    """Claim that DisC and MAXDIVREL converge to a Zipf law."""
    first, *_, last = exponents
    fall = [exponents[last][method] < exponents[first][method] for method in ("DisC", "MAXDIVREL")]
    return Claim(
        "The exponents of DisC and MAXDIVREL fall as k grows.",
        "DisC 3.46 to 2.20, MAXDIVREL 2.49 to 1.96",
        f"{_ends(exponents, 'DisC')}, {_ends(exponents, 'MAXDIVREL')}",
        all(fall),
    )


def maxdivrel_is_smallest(exponents: Exponents) -> Claim:
    """Claim that MAXDIVREL is nearest to a Zipf law."""
    smallest = sum(by["MAXDIVREL"] == min(by.values()) for by in exponents.values())
    apart = max(abs(by["MAXDIVREL"] - by["DisC"]) for by in exponents.values())
    return Claim(
        "MAXDIVREL has the smallest exponent for every k.",
        "for 5 of 5",
        f"for {smallest} of {len(exponents)}",
        smallest == len(exponents),
        f"By the same measure MAXDIVREL and DisC differ by at most {apart:.2f}. The thesis "
        "compares votes with relevance; see the note.",
    )


EXPERIMENT: Final = Experiment(
    "tks-table-7.11",
    "TKS",
    ("Table 7.11",),
    run,
    paper_parameters=DiversityParameters(),
    # DisC and MAXDIVREL take 5 s for each window of 1,000: two windows of each view take a minute.
    laptop=DiversityParameters(
        ks=(10, 50, 250, 500), windows_per_view=2, catalogue=CatalogueChoice(2_000)
    ),
    quick=DiversityParameters(ks=(5, 20), windows_per_view=1, catalogue=CatalogueChoice(60)),
)
