"""TKS Figure 7.6: what remains of the top k when preferences change a little."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.lab.papers.experiment import Claim, DataTable, Exhibit, Experiment, Progress
from tidings.lab.papers.tks_figure_7_5 import Agreement, agreement
from tidings.lab.svg import Panel, Series, chart
from tidings.lab.workloads.catalogue import CatalogueChoice, View, publications
from tidings.lab.workloads.ranked_window import ranked, subscriptions_of
from tidings.model.records import Event, Subscription

NOISE: Final = 0.01
"""Probabilities that differ by less count as equal."""
LEAST: Final = 0.001
"""The least preference after a change; one of 0 would take the relations of a tuple away."""


@dataclass(frozen=True)
class ResiliencyParameters:
    """Changes delta of a share of the preferences, sizes k of the choice, and the window."""

    deltas: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
    ks: tuple[int, ...] = (5, 10, 20, 50)
    window: int = 100
    share: float = 0.5
    error: float = 0.07
    threshold: float = 0.55
    windows_per_view: int = 50
    catalogue: CatalogueChoice = CatalogueChoice()


Resiliency = Mapping[int, Mapping[float, Agreement]]
"""By k and delta."""
Choices = dict[tuple[int, float], list[tuple[list[str], list[str]]]]
"""By k and delta: pairs of the choice after a change and the original one."""


def run(parameters: ResiliencyParameters, seed: int, progress: Progress) -> Sequence[Exhibit]:
    """Choose from the same windows with the original and with changed preferences."""
    views = parameters.catalogue.views(seed)
    choices: Choices = {(k, delta): [] for k in parameters.ks for delta in parameters.deltas}
    for step, view in enumerate(views.values()):
        progress(step, len(views), f"windows in {view.name}")
        for number in range(parameters.windows_per_view):
            _choose(view, parameters, seed + number, choices)
    return [
        exhibit(
            {
                k: {delta: agreement(choices[k, delta]) for delta in parameters.deltas}
                for k in parameters.ks
            }
        )
    ]


def _choose(view: View, parameters: ResiliencyParameters, seed: int, choices: Choices) -> None:
    """Append the choices from one window."""
    subscriptions = subscriptions_of(view, seed)
    events = publications(view, parameters.window, subscriptions, "best-matching", seed=seed)
    part = MaxDivRelLsh(error=parameters.error, threshold=parameters.threshold)
    original = _order(part, events, subscriptions)
    rng = np.random.default_rng(seed)
    for delta in parameters.deltas:
        after = _order(part, events, changed(subscriptions, delta, parameters.share, rng))
        for k in parameters.ks:
            choices[k, delta].append((after[:k], original[:k]))


def _order(
    part: MaxDivRelLsh, events: Sequence[Event], subscriptions: Sequence[Subscription]
) -> list[str]:
    """Return all winners in order: the first k are the choice of k."""
    window = ranked(events, subscriptions)
    return [window[place].event.id for place in part.choose(window, len(window))]


def changed(
    subscriptions: Sequence[Subscription], delta: float, share: float, rng: np.random.Generator
) -> list[Subscription]:
    """Return the subscriptions with a share of the preferences raised or lowered by delta."""

    def moved(weight: float) -> float:
        if rng.random() >= share:
            return weight
        sign = 1 if rng.random() < 0.5 else -1
        return float(np.clip(weight + sign * delta, LEAST, 1))

    return [
        replace(
            subscription,
            any=[replace(part, weight=moved(part.weight)) for part in subscription.groups[0]],
        )
        for subscription in subscriptions
    ]


def exhibit(resiliency: Resiliency) -> Exhibit:
    """Return both panels of the figure."""
    rows = tuple(
        (k, delta, *both) for k, by_delta in resiliency.items() for delta, both in by_delta.items()
    )
    panels = [
        Panel(
            f"Top-k publications ({title})",
            "change of preferences, delta",
            "probability",
            [
                Series(
                    f"k = {k}", list(by_delta), [getattr(both, name) for both in by_delta.values()]
                )
                for k, by_delta in resiliency.items()
            ],
            y_range=(0, 1.05),
        )
        for title, name in (("unordered", "diversity"), ("ordered", "rank"))
    ]
    return Exhibit(
        "TKS",
        "Figure 7.6",
        "Resiliency of the top k to changes of preferences",
        DataTable(("k", "delta", "same publication", "same rank"), rows),
        (sets_remain(resiliency), ranks_do_not(resiliency), small_changes_matter_less(resiliency)),
        chart(panels),
        "A share of the tuples of a subscriber is changed, up or down, within (0, 1].",
    )


def sets_remain(resiliency: Resiliency) -> Claim:
    """Claim that small changes leave most of the set."""
    small = [
        both.diversity
        for by_delta in resiliency.values()
        for delta, both in by_delta.items()
        if delta <= 0.1
    ]
    return Claim(
        "After changes of up to 0.1, more than half of the top k are the same publications, for "
        "every k.",
        "reacts reasonably well",
        f"{min(small):.2f} to {max(small):.2f}",
        min(small) > 0.5,
        "The few publications of the highest relevance are those that satisfy one relation of very "
        "different preferences; a small change of the lower one moves them all.",
    )


def ranks_do_not(resiliency: Resiliency) -> Claim:
    """Claim that ranks change more than sets."""
    cells = [both for by_delta in resiliency.values() for both in by_delta.values()]
    lower = sum(both.rank < both.diversity for both in cells)
    ratios = [both.rank / both.diversity for both in cells if both.diversity]
    return Claim(
        "The same rank is less probable than the same publication, for every k and delta.",
        "less probable",
        f"in {lower} of {len(cells)} cases, {min(ratios):.2f} to {max(ratios):.2f} times as often",
        lower == len(cells),
    )


def small_changes_matter_less(resiliency: Resiliency) -> Claim:
    """Claim that the larger a change is, the less of the set it leaves."""
    remaining = {
        k: [by_delta[delta].diversity for delta in sorted(by_delta)]
        for k, by_delta in resiliency.items()
    }
    return Claim(
        f"The larger the change, the fewer publications remain (or at most {NOISE} more).",
        "reacts well for small changes",
        ", ".join(f"{of[0]:.2f} to {of[-1]:.2f} for k = {k}" for k, of in remaining.items()),
        all(
            of[0] > of[-1] and all(after <= before + NOISE for before, after in pairwise(of))
            for of in remaining.values()
        ),
        "Preferences stay within (0, 1], so that of large changes a part is cut off, and they "
        "differ less and less.",
    )


EXPERIMENT: Final = Experiment(
    "tks-figure-7.6",
    "TKS",
    ("Figure 7.6",),
    run,
    paper_parameters=ResiliencyParameters(),
    laptop=ResiliencyParameters(windows_per_view=15, catalogue=CatalogueChoice(2_000)),
    quick=ResiliencyParameters(
        deltas=(0.1, 1.0), ks=(3, 6), window=20, windows_per_view=1, catalogue=CatalogueChoice(60)
    ),
)
