"""TKS Figures 7.10 and 7.11: the time to match a publication with one subscriber's tuples.

The measured matching is that of the product: the index `access` finds the satisfied tuples, and a
kernel adds up the relations between them (TKS Alg. B.2). The modified OpIndex counts the satisfied
tuples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Final, NamedTuple

from tidings.index.papers.opindex import OpIndex
from tidings.lab.papers.experiment import Claim, DataTable, Exhibit, Experiment, Progress
from tidings.lab.stopwatch import least_times
from tidings.lab.svg import Panel, Series, chart
from tidings.lab.workloads.catalogue import (
    CatalogueChoice,
    Category,
    SyntheticCategory,
    View,
    publications,
)
from tidings.lab.workloads.ranked_window import SUBSCRIBER, subscriptions_of
from tidings.model.records import Event, Subscription
from tidings.policy import Policy, Subscriber
from tidings.rank.matcher import Matcher

COUNTED: Final = 50
"""Publications whose satisfied tuples are counted."""


@dataclass(frozen=True)
class MatchingParameters:
    """Sizes of subscription spaces in tuples, dimensions of publications, and publications."""

    tuples: tuple[int, ...] = (100, 400, 1_600, 6_400, 25_600)
    dimensions: tuple[int, ...] = (10, 25, 50, 75, 100)
    tuples_for_dimensions: int = 1_600
    publications: int = 1_000
    rounds: int = 10
    catalogue: CatalogueChoice = CatalogueChoice()


class Cost(NamedTuple):
    """The time of a publication, and how many tuples it satisfies."""

    us: float
    satisfied: float


BySize = Mapping[int, Cost]


def run(parameters: MatchingParameters, seed: int, progress: Progress) -> Sequence[Exhibit]:
    """Match publications with growing spaces, and growing publications with one space."""
    views = parameters.catalogue.views(seed)
    steps = len(views) + len(parameters.dimensions)
    by_view: dict[str, dict[int, Cost]] = {}
    for step, view in enumerate(views.values()):
        progress(step, steps, f"spaces in {view.name}")
        events = publications(view, parameters.publications, seed=seed)
        spaces = {size: space(view, size, seed) for size in parameters.tuples}
        by_view[view.name] = measure(
            {size: (subscriptions, events) for size, subscriptions in spaces.items()},
            parameters.rounds,
        )
    wide = Category("Wide", 40, 0, max(parameters.dimensions))
    everything = View("Wide", SyntheticCategory(wide, seed).products(parameters.publications))
    subscriptions = space(everything, parameters.tuples_for_dimensions, seed)
    cases = {}
    for step, size in enumerate(parameters.dimensions, len(views)):
        progress(step, steps, f"publications of {size} attributes")
        supply = SyntheticCategory(wide, seed, dimensions=size)
        view = View("Wide", supply.products(parameters.publications))
        cases[size] = (subscriptions, publications(view, parameters.publications, seed=seed))
    return [figure_7_10(by_view), figure_7_11(measure(cases, parameters.rounds))]


def space(view: View, tuples: int, seed: int) -> list[Subscription]:
    """Return subscriptions of one subscriber that have about this many tuples together."""
    count = 1 + tuples // 8  # subscriptions have 2 tuples or more, most of them 10 or more
    drawn, total = [], 0
    for subscription in subscriptions_of(view, seed, count=count):
        if total >= tuples:
            break
        drawn.append(subscription)
        total += len(subscription.groups[0])
    return drawn


def measure(
    cases: Mapping[int, tuple[Sequence[Subscription], Sequence[Event]]], rounds: int
) -> dict[int, Cost]:
    """Return the cost of a publication in each case; all cases take turns."""
    subscriber = Subscriber(SUBSCRIBER, Policy(scorer="graph"))
    calls = {
        str(size): partial(Matcher([subscriber], subscriptions, index="access").match_many, events)
        for size, (subscriptions, events) in cases.items()
    }
    ms = least_times(calls, rounds)
    return {
        size: Cost(
            ms[str(size)] * 1e3 / len(events), satisfied_tuples(subscriptions, events[:COUNTED])
        )
        for size, (subscriptions, events) in cases.items()
    }


def satisfied_tuples(subscriptions: Sequence[Subscription], events: Sequence[Event]) -> float:
    """Return the mean number of distinct tuples that a publication satisfies."""
    index = OpIndex(subscriptions)
    for event in events:
        index.touching(event)
    return index.counters()["predicates"] / len(events)


def figure_7_10(by_view: Mapping[str, BySize]) -> Exhibit:
    """Return the time over the size of the subscription space."""
    rows = tuple(
        (name, size, *cost) for name, by_size in by_view.items() for size, cost in by_size.items()
    )
    lines = [
        Series(name, list(by_size), [cost.us for cost in by_size.values()])
        for name, by_size in by_view.items()
    ]
    return Exhibit(
        "TKS",
        "Figure 7.10",
        "Matching time by the size of the subscription space",
        DataTable(("view", "tuples", "us", "satisfied tuples"), rows, timed=("us",)),
        (grows_with_the_space(by_view), grows_gradually(by_view), more_is_satisfied(by_view)),
        chart([Panel("", "tuples", "us per publication", lines, log_x=10, log_y=True)]),
    )


def _growth(by_size: BySize, name: str) -> float:
    """Return the value of the largest case relative to the smallest."""
    first, *_, last = (getattr(cost, name) for cost in by_size.values())
    return float(last / first) if first else float("inf")


def grows_with_the_space(by_view: Mapping[str, BySize]) -> Claim:
    """Claim that larger spaces take longer."""
    growths = [_growth(by_size, "us") for by_size in by_view.values()]
    return Claim(
        "The matching time increases with the size of the subscription space, in every view.",
        "gradually increased",
        f"{min(growths):.1f} to {max(growths):.1f} times from the smallest to the largest space",
        min(growths) > 1.2,
        timed=True,
    )


def grows_gradually(by_view: Mapping[str, BySize]) -> Claim:
    """Claim that the time grows more slowly than the space."""
    growths = [_growth(by_size, "us") for by_size in by_view.values()]
    sizes = list(next(iter(by_view.values())))
    larger = sizes[-1] / sizes[0]
    return Claim(
        "It increases gradually: more slowly than the space.",
        "gradually increased",
        f"at most {max(growths):.1f} times for {larger:.0f} times the tuples",
        max(growths) < larger,
        "Relations between satisfied tuples grow with the square of their number.",
        timed=True,
    )


def more_is_satisfied(by_view: Mapping[str, BySize]) -> Claim:
    """Claim the thesis' reason."""
    growths = [_growth(by_size, "satisfied") for by_size in by_view.values()]
    return Claim(
        "A publication satisfies more tuples of a larger space.",
        "more chances to satisfy many relations",
        f"{min(growths):.1f} to {max(growths):.1f} times as many",
        min(growths) > 1,
    )


def figure_7_11(by_size: BySize) -> Exhibit:
    """Return the time over the size of publications."""
    rows = tuple((size, *cost) for size, cost in by_size.items())
    line = Series("ours", list(by_size), [cost.us for cost in by_size.values()])
    return Exhibit(
        "TKS",
        "Figure 7.11",
        "Matching time by the size of publications",
        DataTable(("D", "us", "satisfied tuples"), rows, timed=("us",)),
        (is_constant(by_size), is_at_most_proportional(by_size)),
        chart([Panel("", "attributes D", "us per publication", [line], y_range=(0, None))]),
    )


def is_constant(by_size: BySize) -> Claim:
    """Claim that larger publications take no longer."""
    first, *_, last = by_size
    satisfied = _growth(by_size, "satisfied")
    return Claim(
        "The matching time remains almost constant: at most 1.5 times from the smallest to the "
        "largest publications.",
        "almost constant",
        f"{_growth(by_size, 'us'):.1f} times from D = {first} to D = {last}",
        _growth(by_size, "us") <= 1.5,
        "Every attribute of a publication is looked up, and the more attributes it has, the more "
        f"tuples it satisfies: {satisfied:.1f} times as many. The thesis' own bound is O(D + D²).",
        timed=True,
    )


def is_at_most_proportional(by_size: BySize) -> Claim:
    """Claim the advantage of inverted indexes: no more than a constant cost per attribute."""
    first, *_, last = by_size
    larger = last / first
    costs = [cost.us / size for size, cost in by_size.items()]
    return Claim(
        "The time grows at most in proportion to D.",
        "no disadvantage of many dimensions",
        f"{_growth(by_size, 'us'):.1f} times for {larger:.0f} times the attributes, "
        f"{fmean(costs):.2f} us for each",
        _growth(by_size, "us") <= larger,
        timed=True,
    )


EXPERIMENT: Final = Experiment(
    "tks-figure-7.10",
    "TKS",
    ("Figure 7.10", "Figure 7.11"),
    run,
    paper_parameters=MatchingParameters(),
    laptop=MatchingParameters(
        tuples=(100, 400, 1_600, 6_400),
        publications=300,
        rounds=5,
        catalogue=CatalogueChoice(2_000),
    ),
    quick=MatchingParameters(
        tuples=(20, 80),
        dimensions=(5, 10),
        tuples_for_dimensions=40,
        publications=20,
        rounds=1,
        catalogue=CatalogueChoice(60),
    ),
)
