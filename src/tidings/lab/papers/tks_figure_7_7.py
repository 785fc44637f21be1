"""TKS Figures 7.7 and 7.8: relevance with and without forward decay, and the rate of decay.

Relevant publications come at random among others (Best-Matching-Random), by a Poisson process. The
thesis gives its rates in microseconds without a unit of time; ours are per second.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

import numpy as np

from tidings.diversify import Candidate
from tidings.lab.papers.experiment import Claim, DataTable, Exhibit, Experiment, Progress
from tidings.lab.svg import Panel, Series, chart
from tidings.lab.workloads.catalogue import publications, synthetic_catalogue
from tidings.lab.workloads.ranked_window import asked_of, ranked
from tidings.model.values import SECOND_US
from tidings.score.decay import Exponential

VIEW: Final = "Phones"
WITHOUT, WITH = "without decay", "with forward decay"


@dataclass(frozen=True)
class FreshnessParameters:
    """A window by its number of publications, their mean delays, and rates of decay per second."""

    window: int = 225
    mean_delays_ms: tuple[float, ...] = (1000, 5000)
    rate: float = 0.005
    rates: tuple[float, ...] = (0.0005, 0.001, 0.005, 0.01, 0.02)
    k: int = 10
    products_per_view: int | None = None


@dataclass(frozen=True)
class ScoredWindow:
    """A window with its mean delay: ages in seconds at its end, relevance, and times."""

    mean_delay_ms: float
    candidates: Sequence[Candidate]

    @property
    def now_us(self) -> int:
        """The time of the last publication."""
        return max(each.event.published_us for each in self.candidates)

    def ages_s(self) -> list[float]:
        """Return how old each publication is."""
        return [(self.now_us - each.event.published_us) / SECOND_US for each in self.candidates]

    def fresh(self, rate: float, later_s: float = 0) -> list[float]:
        """Return the fresh relevance of each publication (TKS Def. 4.2.5), at the end or later."""
        decay, now_us = Exponential(rate=rate), self.now_us + round(later_s * SECOND_US)
        return [decay.fresh(each.rank, each.event.published_us, now_us) for each in self.candidates]

    def top(self, scores: Sequence[float], k: int) -> list[int]:
        """Return the places of the k highest scores, of ties the newer."""
        return sorted(range(len(scores)), key=lambda place: (-scores[place], -place))[:k]

    def mean_age_s(self, places: Sequence[int]) -> float:
        """Return the mean age of some publications."""
        ages = self.ages_s()
        return fmean(ages[place] for place in places)

    def relevance(self) -> list[float]:
        """Return the relevance of each publication."""
        return [each.rank for each in self.candidates]


def run(parameters: FreshnessParameters, seed: int, progress: Progress) -> Sequence[Exhibit]:
    """Score windows of the same publications with different delays."""
    view = synthetic_catalogue(seed, parameters.products_per_view)[VIEW]
    asked = asked_of(view, seed)
    windows = []
    for step, delay in enumerate(parameters.mean_delays_ms):
        progress(step, len(parameters.mean_delays_ms), f"delays of {delay:g} ms")
        stream = publications(
            view, parameters.window, asked, "best-matching", mean_delay_ms=delay, seed=seed
        )
        windows.append(ScoredWindow(delay, ranked(stream, asked)))
    return [figure_7_7(windows, parameters), figure_7_8(windows[-1], parameters)]


def figure_7_7(windows: Sequence[ScoredWindow], parameters: FreshnessParameters) -> Exhibit:
    """Return relevance with and without decay for each delay."""
    rows = []
    for window in windows:
        for name, scores in _scored(window, parameters).items():
            top = window.top(scores, parameters.k)
            rows.append(
                (window.mean_delay_ms, name, window.mean_age_s(top), _replaced(window, parameters))
            )
    columns = ("mean delay (ms)", "scores", "mean age of the top k (s)", "replaced by decay")
    panels = [
        Panel(
            f"Mean delay {window.mean_delay_ms:g} ms",
            "publication, oldest first",
            "relevance",
            [
                Series(name, list(range(1, len(scores) + 1)), scores)
                for name, scores in _scored(window, parameters).items()
            ],
            log_y=True,
            markers=False,
        )
        for window in windows
    ]
    return Exhibit(
        "TKS",
        "Figure 7.7",
        "Relevance with forward decay and without",
        DataTable(columns, tuple(rows)),
        (
            top_is_newer(windows, parameters),
            longer_delays_matter_more(windows, parameters),
            order_stays(windows, parameters),
        ),
        chart(panels, columns=1),
    )


def _scored(window: ScoredWindow, parameters: FreshnessParameters) -> dict[str, list[float]]:
    return {WITHOUT: window.relevance(), WITH: window.fresh(parameters.rate)}


def _replaced(window: ScoredWindow, parameters: FreshnessParameters) -> int:
    """Return how many of the top k are no longer in it with decay."""
    before, after = (
        set(window.top(scores, parameters.k)) for scores in _scored(window, parameters).values()
    )
    return len(before - after)


def _mean_ages(window: ScoredWindow, parameters: FreshnessParameters) -> tuple[float, float]:
    """Return the mean age of the top k without and with decay."""
    before, after = (
        window.mean_age_s(window.top(scores, parameters.k))
        for scores in _scored(window, parameters).values()
    )
    return before, after


def top_is_newer(windows: Sequence[ScoredWindow], parameters: FreshnessParameters) -> Claim:
    """Claim that decay lets newer publications overtake older ones."""
    ages = [_mean_ages(window, parameters) for window in windows]
    return Claim(
        f"With decay the top {parameters.k} are newer: less relevant new publications overtake "
        "more relevant old ones.",
        "less relevant publications are emphasized on freshness",
        ", ".join(
            f"mean age {before:.0f} s to {after:.0f} s at {window.mean_delay_ms:g} ms"
            for (before, after), window in zip(ages, windows, strict=True)
        ),
        all(after < before for before, after in ages),
    )


def longer_delays_matter_more(
    windows: Sequence[ScoredWindow], parameters: FreshnessParameters
) -> Claim:
    """Claim that the effect grows with the time that the window spans."""
    replaced = [_replaced(window, parameters) for window in windows]
    return Claim(
        "The longer the delays, the more of the top are replaced.",
        "significant when the delay is high",
        ", ".join(
            f"{count} of {parameters.k} at {window.mean_delay_ms:g} ms"
            for count, window in zip(replaced, windows, strict=True)
        ),
        replaced[-1] > replaced[0],
    )


def order_stays(windows: Sequence[ScoredWindow], parameters: FreshnessParameters) -> Claim:
    """Claim that scores need not be computed again as time passes."""
    later_s = 600.0
    same = 0  # time takes the same constant from all logarithms, up to the last digits
    for window in windows:
        orders = [
            window.top(np.round(np.log(window.fresh(parameters.rate, later)), 9).tolist(), 10**9)
            for later in (0, later_s)
        ]
        same += orders[0] == orders[1]
    return Claim(
        "The order by fresh relevance does not change as time passes.",
        "relative ranking does not change",
        f"the same order after {later_s:.0f} s in {same} of {len(windows)} windows",
        same == len(windows),
    )


def figure_7_8(window: ScoredWindow, parameters: FreshnessParameters) -> Exhibit:
    """Return the fresh relevance for each rate."""
    curves = {rate: window.fresh(rate) for rate in parameters.rates}
    ages = {rate: window.mean_age_s(window.top(of, parameters.k)) for rate, of in curves.items()}
    slopes = {rate: slope(window, of) for rate, of in curves.items()}
    rows = tuple((rate, ages[rate], slopes[rate]) for rate in curves)
    return Exhibit(
        "TKS",
        "Figure 7.8",
        "The rate of decay",
        DataTable(("rate per second", "mean age of the top k (s)", "ln score lost per s"), rows),
        (freshness_counts_more(ages), effect_is_proportional(slopes)),
        chart(
            [
                Panel(
                    f"Mean delay {window.mean_delay_ms:g} ms",
                    "publication, oldest first",
                    "fresh relevance",
                    [
                        Series(f"rho = {rate:g}", list(range(1, len(of) + 1)), of)
                        for rate, of in curves.items()
                    ],
                    log_y=True,
                    markers=False,
                )
            ]
        ),
    )


def slope(window: ScoredWindow, fresh: Sequence[float]) -> float:
    """Return how much of the logarithm of relevance is lost per second of age: a regression."""
    lost = np.log(window.relevance()) - np.log(fresh)
    return float(np.polyfit(window.ages_s(), lost, 1)[0])


def freshness_counts_more(ages: Mapping[float, float]) -> Claim:
    """Claim that the top is newer the higher the rate."""
    in_order = list(ages.values())
    return Claim(
        "The higher the rate, the newer the top.",
        "when rho is high, the more the significance of freshness",
        ", ".join(f"mean age {age:.0f} s at {rate:g}" for rate, age in ages.items()),
        in_order == sorted(in_order, reverse=True) and in_order[0] > in_order[-1],
    )


def effect_is_proportional(slopes: Mapping[float, float]) -> Claim:
    """Claim that ln(relevance) falls in proportion to the rate."""
    ratios = [found / rate for rate, found in slopes.items()]
    return Claim(
        "The effect is proportional to the rate: ln(relevance) falls by rho per second of age.",
        "proportional to rho",
        f"{min(ratios):.3f} to {max(ratios):.3f} times rho",
        max(abs(ratio - 1) for ratio in ratios) < 0.001,
    )


EXPERIMENT: Final = Experiment(
    "tks-figure-7.7",
    "TKS",
    ("Figure 7.7", "Figure 7.8"),
    run,
    paper_parameters=FreshnessParameters(),
    laptop=FreshnessParameters(products_per_view=2_000),
    quick=FreshnessParameters(window=30, products_per_view=60),
)
