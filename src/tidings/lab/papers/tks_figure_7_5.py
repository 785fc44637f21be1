"""TKS Figure 7.5: how often LSH chooses what the greedy algorithm for MAXDIVREL chooses.

From the text: the thresholds, the windows of its Table 7.9, the error of 0.07 that it settles on
(7.4.2.1), the views, and that all publications match. Not in the text, and so our choice: k = 10,
alpha = 1 - s, and the probability as the share of the greedy choice.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, NamedTuple

from tidings.diversify import Candidate
from tidings.diversify.covers import MaxDivRel
from tidings.diversify.distance import Jaccard
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.protocol import best_first
from tidings.lab.papers.experiment import Claim, DataTable, Exhibit, Experiment, Progress
from tidings.lab.svg import Panel, Series, chart
from tidings.lab.workloads.catalogue import CatalogueChoice
from tidings.lab.workloads.ranked_window import best_matching_window


@dataclass(frozen=True)
class AgreementParameters:
    """Windows, thresholds s, the error e of LSH, and the size of the choice."""

    windows: tuple[int, ...] = (10, 20, 50, 100, 500, 1000)
    thresholds: tuple[float, ...] = (0.35, 0.55, 0.85)
    error: float = 0.07
    k: int = 10
    windows_per_view: int = 20
    catalogue: CatalogueChoice = CatalogueChoice()


class Agreement(NamedTuple):
    """Two probabilities over all events of the reference choices.

    `diversity`: the event is chosen as well. `rank`: it is even at the same position.
    """

    diversity: float
    rank: float


Agreements = Mapping[float, Mapping[int, Agreement]]
"""By threshold and window."""


def run(parameters: AgreementParameters, seed: int, progress: Progress) -> Sequence[Exhibit]:
    """Choose from windows of all views by LSH and by the greedy algorithm."""
    views = parameters.catalogue.views(seed)
    agreements: dict[float, dict[int, Agreement]] = {s: {} for s in parameters.thresholds}
    for step, w in enumerate(parameters.windows):
        progress(step, len(parameters.windows), f"windows of {w}")
        windows = [
            best_matching_window(view, w, seed + number)
            for view in views.values()
            for number in range(parameters.windows_per_view)
        ]
        for s in parameters.thresholds:
            lsh = MaxDivRelLsh(error=parameters.error, threshold=s)
            greedy = MaxDivRel(alpha=1 - s, distance=Jaccard())
            agreements[s][w] = compared(windows, lsh, greedy, parameters.k)
    return [exhibit(agreements, parameters)]


def compared(
    windows: Iterable[list[Candidate]], lsh: MaxDivRelLsh, greedy: MaxDivRel, k: int
) -> Agreement:
    """Compare choices; the greedy choice is ordered by relevance, as in the thesis."""
    pairs = []
    for window in windows:
        reference = sorted(greedy.choose(window, k), key=lambda i: best_first(window[i]))
        pairs.append((lsh.choose(window, k), reference))
    return agreement(pairs)


def agreement(choices: Iterable[tuple[Sequence[Hashable], Sequence[Hashable]]]) -> Agreement:
    """Compare pairs of a choice and its reference, both in order of rank.

    >>> agreement([("abc", "acd"), ("xy", "xy")])
    Agreement(diversity=0.8, rank=0.6)
    """
    shared = in_position = total = 0
    for chosen, reference in choices:
        shared += len(set(chosen) & set(reference))
        in_position += sum(a == b for a, b in zip(chosen, reference, strict=False))
        total += len(reference)
    return Agreement(shared / total, in_position / total) if total else Agreement(1.0, 1.0)


def exhibit(agreements: Agreements, parameters: AgreementParameters) -> Exhibit:
    """Return the figure: a panel for each threshold."""
    rows = tuple(
        (s, w, *both) for s, by_window in agreements.items() for w, both in by_window.items()
    )
    panels = [
        Panel(
            f"similarity threshold s = {s}",
            "window w",
            "probability",
            [
                Series(name, list(by_window), [getattr(both, name) for both in by_window.values()])
                for name in Agreement._fields
            ],
            log_x=10,
            y_range=(0, 1.05),
        )
        for s, by_window in agreements.items()
    ]
    telling = with_a_choice(agreements, parameters.k)
    return Exhibit(
        "TKS",
        "Figure 7.5",
        "Accuracy of LSH against the greedy algorithm",
        DataTable(("s", "w", "diversity probability", "rank probability"), rows),
        (sets_agree(telling), ranks_agree_less(telling), ranks_fall(telling)),
        chart(panels),
        f"If w = k = {parameters.k}, everything is chosen; the claims are about larger windows.",
    )


def with_a_choice(agreements: Agreements, k: int) -> Agreements:
    """Return the agreements in windows of more than k, from which something is left out."""
    return {
        s: {w: both for w, both in by_window.items() if w > k}
        for s, by_window in agreements.items()
    }


def _mean(by_window: Mapping[int, Agreement], name: str) -> float:
    return fmean(getattr(both, name) for both in by_window.values())


def sets_agree(agreements: Agreements) -> Claim:
    """Claim that LSH chooses most of the greedy set, whatever the threshold."""
    means = {s: _mean(by_window, "diversity") for s, by_window in agreements.items()}
    return Claim(
        "LSH chooses about 0.7 of the greedy set or more, on average over the windows, at every "
        "threshold.",
        "around 0.7",
        ", ".join(f"{mean:.2f} at s = {s}" for s, mean in means.items()),
        min(means.values()) >= 0.65,
    )


def ranks_agree_less(agreements: Agreements) -> Claim:
    """Claim that the same rank is less probable than the same set."""
    pairs = [(_mean(by, "rank"), _mean(by, "diversity")) for by in agreements.values()]
    return Claim(
        "The same rank is less probable than the same set, at every threshold.",
        "comparatively low values",
        ", ".join(f"{rank:.2f} against {diversity:.2f}" for rank, diversity in pairs),
        all(rank < diversity for rank, diversity in pairs),
        "Where nearly all publications have a vote in each table, ties are broken by relevance, "
        "which is the order of the greedy choice as well.",
    )


def ranks_fall(agreements: Agreements) -> Claim:
    """Claim that the rank probability falls as the window grows."""
    ends = [
        (by_window[min(by_window)].rank, by_window[max(by_window)].rank)
        for by_window in agreements.values()
    ]
    return Claim(
        "The rank probability is lower in the largest window than in the smallest.",
        "low when the distribution increases",
        ", ".join(f"{first:.2f} to {last:.2f}" for first, last in ends),
        all(last < first for first, last in ends),
    )


EXPERIMENT: Final = Experiment(
    "tks-figure-7.5",
    "TKS",
    ("Figure 7.5",),
    run,
    paper_parameters=AgreementParameters(),
    laptop=AgreementParameters(windows_per_view=5, catalogue=CatalogueChoice(2_000)),
    quick=AgreementParameters(windows=(10, 40), windows_per_view=1, catalogue=CatalogueChoice(60)),
)
