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
from tidings.lab.workloads.catalogue import CatalogueChoice, publications
from tidings.lab.workloads.ranked_window import ranked, subscriptions_of
from tidings.model.values import SECOND_US
from tidings.score.decay import Exponential

DRAWN: Final = "Phones"
"""The view of the pictures, or the first of another catalogue; figures are means over all views."""
WITHOUT, WITH = "without decay", "with forward decay"


@dataclass(frozen=True)
class FreshnessParameters:
    """A window by its number of publications, their mean delays, and rates of decay per second."""

    window: int = 225
    mean_delays_ms: tuple[float, ...] = (1000, 5000)
    rate: float = 0.005
    rates: tuple[float, ...] = (0.0005, 0.001, 0.005, 0.01, 0.02)
    k: int = 10
    catalogue: CatalogueChoice = CatalogueChoice()


@dataclass(frozen=True)
class ScoredWindow:
    """A window of ranked publications, as it is seen at its end."""

    candidates: Sequence[Candidate]

    @property
    def now_us(self) -> int:
        """The time of the last publication."""
        return max(candidate.event.published_us for candidate in self.candidates)

    def ages_s(self) -> list[float]:
        """Return how old each publication is."""
        return [
            (self.now_us - candidate.event.published_us) / SECOND_US
            for candidate in self.candidates
        ]

    def fresh(self, rate: float, later_s: float = 0) -> list[float]:
        """Return the fresh relevance of each publication (TKS Def. 4.2.5), at the end or later."""
        decay, now_us = Exponential(rate=rate), self.now_us + round(later_s * SECOND_US)
        return [
            decay.fresh(candidate.rank, candidate.event.published_us, now_us)
            for candidate in self.candidates
        ]

    def top(self, scores: Sequence[float], k: int) -> list[int]:
        """Return the places of the k highest scores, of ties the newer."""
        return sorted(range(len(scores)), key=lambda place: (-scores[place], -place))[:k]

    def mean_age_s(self, places: Sequence[int]) -> float:
        """Return the mean age of some publications."""
        ages = self.ages_s()
        return fmean(ages[place] for place in places)

    def relevance(self) -> list[float]:
        """Return the relevance of each publication."""
        return [candidate.rank for candidate in self.candidates]


Windows = Mapping[str, ScoredWindow]
"""By view."""


def run(parameters: FreshnessParameters, seed: int, progress: Progress) -> Sequence[Exhibit]:
    """Score windows of the same publications with different delays."""
    views = parameters.catalogue.views(seed)
    by_delay: dict[float, dict[str, ScoredWindow]] = {d: {} for d in parameters.mean_delays_ms}
    for step, (name, view) in enumerate(views.items()):
        progress(step, len(views), f"windows in {name}")
        subscriptions = subscriptions_of(view, seed)
        for delay, windows in by_delay.items():
            stream = publications(
                view,
                parameters.window,
                subscriptions,
                "best-matching",
                mean_delay_ms=delay,
                seed=seed,
            )
            windows[name] = ScoredWindow(ranked(stream, subscriptions))
    return [figure_7_7(by_delay, parameters), figure_7_8(by_delay, parameters)]


@dataclass(frozen=True)
class Effect:
    """Means over the views: the age of the top k without and with decay, and how many change."""

    age_without_s: float
    age_with_s: float
    replaced: float

    @classmethod
    def of(cls, windows: Windows, rate: float, k: int) -> "Effect":
        """Measure the effect of a rate of decay."""
        tops = [
            (window, window.top(window.relevance(), k), window.top(window.fresh(rate), k))
            for window in windows.values()
        ]
        return cls(
            fmean(window.mean_age_s(before) for window, before, _ in tops),
            fmean(window.mean_age_s(after) for window, _, after in tops),
            fmean(len(set(before) - set(after)) for _, before, after in tops),
        )


def figure_7_7(by_delay: Mapping[float, Windows], parameters: FreshnessParameters) -> Exhibit:
    """Return relevance with and without decay for each delay."""
    drawn = _drawn(next(iter(by_delay.values())))
    effects = {
        delay: Effect.of(windows, parameters.rate, parameters.k)
        for delay, windows in by_delay.items()
    }
    rows = tuple(
        (delay, effect.age_without_s, effect.age_with_s, effect.replaced)
        for delay, effect in effects.items()
    )
    columns = ("mean delay (ms)", "age of the top (s)", "age with decay (s)", "replaced by decay")
    panels = [
        _panel(
            f"Mean delay {delay:g} ms",
            {
                WITHOUT: windows[drawn].relevance(),
                WITH: windows[drawn].fresh(parameters.rate),
            },
        )
        for delay, windows in by_delay.items()
    ]
    return Exhibit(
        "TKS",
        "Figure 7.7",
        "Relevance with forward decay and without",
        DataTable(columns, rows),
        (
            top_is_newer(effects, parameters.k),
            longer_delays_matter_more(effects, parameters.k),
            order_stays(by_delay, parameters.rate),
        ),
        chart(panels, columns=1),
        f"The pictures show the view {drawn}; ages and numbers are means over all views.",
    )


def _drawn(windows: Windows) -> str:
    return DRAWN if DRAWN in windows else next(iter(windows))


def _panel(title: str, curves: Mapping[str, Sequence[float]]) -> Panel:
    """Return relevance over the publications of a window."""
    lines = [Series(name, list(range(1, len(of) + 1)), of) for name, of in curves.items()]
    words = ("publication, oldest first", "relevance")
    return Panel(title, *words, lines, log_y=True, markers=False)


def top_is_newer(effects: Mapping[float, Effect], k: int) -> Claim:
    """Claim that decay lets newer publications overtake older ones."""
    return Claim(
        f"With decay the top {k} are newer: less relevant new publications overtake more relevant "
        "old ones.",
        "less relevant publications are emphasized on freshness",
        ", ".join(
            f"mean age {effect.age_without_s:.0f} s to {effect.age_with_s:.0f} s at {delay:g} ms"
            for delay, effect in effects.items()
        ),
        all(effect.age_with_s < effect.age_without_s for effect in effects.values()),
    )


def longer_delays_matter_more(effects: Mapping[float, Effect], k: int) -> Claim:
    """Claim that the effect grows with the time that the window spans."""
    shortest, longest = min(effects), max(effects)
    return Claim(
        "The longer the delays, the more of the top are replaced.",
        "significant when the delay is high",
        ", ".join(
            f"{effect.replaced:.1f} of {k} at {delay:g} ms" for delay, effect in effects.items()
        ),
        effects[longest].replaced > effects[shortest].replaced,
    )


def order_stays(by_delay: Mapping[float, Windows], rate: float) -> Claim:
    """Claim that scores need not be computed again as time passes."""
    later_s = 600.0
    windows = [window for of_delay in by_delay.values() for window in of_delay.values()]
    same = sum(_order(window, rate) == _order(window, rate, later_s) for window in windows)
    return Claim(
        "The order by fresh relevance does not change as time passes.",
        "relative ranking does not change",
        f"the same order after {later_s:.0f} s in {same} of {len(windows)} windows",
        same == len(windows),
    )


def _order(window: ScoredWindow, rate: float, later_s: float = 0) -> list[int]:
    """Return all publications, best first; time takes the same from all logarithms."""
    logarithms = np.log(window.fresh(rate, later_s))
    return window.top(np.round(logarithms - logarithms.max(), 9).tolist(), len(logarithms))


def figure_7_8(by_delay: Mapping[float, Windows], parameters: FreshnessParameters) -> Exhibit:
    """Return the fresh relevance for each rate, at the longest delay."""
    delay = max(by_delay)
    windows = by_delay[delay]
    ages = {rate: Effect.of(windows, rate, parameters.k).age_with_s for rate in parameters.rates}
    slopes = {
        rate: fmean(slope(window, window.fresh(rate)) for window in windows.values())
        for rate in parameters.rates
    }
    rows = tuple((rate, ages[rate], slopes[rate]) for rate in parameters.rates)
    curves = {f"rho = {rate:g}": windows[_drawn(windows)].fresh(rate) for rate in parameters.rates}
    return Exhibit(
        "TKS",
        "Figure 7.8",
        "The rate of decay",
        DataTable(("rate per second", "age of the top (s)", "ln score lost per s"), rows),
        (freshness_counts_more(ages), effect_is_proportional(slopes)),
        chart([_panel(f"Mean delay {delay:g} ms", curves)]),
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
    ratios = [slope / rate for rate, slope in slopes.items()]
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
    laptop=FreshnessParameters(catalogue=CatalogueChoice(2_000)),
    quick=FreshnessParameters(window=30, catalogue=CatalogueChoice(60)),
)
