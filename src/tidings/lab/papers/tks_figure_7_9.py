"""TKS Figure 7.9: the time to build OpIndex, and the modified OpIndex with preference graphs."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np

from tidings.index.operand_lists import OPERANDS, OperandList, list_kind, list_operand
from tidings.index.papers.opindex import OpIndex
from tidings.lab.papers.experiment import Claim, DataTable, Exhibit, Experiment, Progress
from tidings.lab.stopwatch import least_times
from tidings.lab.svg import Panel, Series, chart
from tidings.lab.workloads.catalogue import CatalogueChoice, View, subscriptions
from tidings.model.conditions.predicate import Predicate
from tidings.model.records import Event, Subscription
from tidings.score.graph import PreferenceGraph, preference_graph

ORIGINAL, MODIFIED, LISTS = "OpIndex", "modified OpIndex", "modified OpIndex, lists only"
NOISE: Final = 1.1
"""Times within this ratio count as equal."""


@dataclass(frozen=True)
class ConstructionParameters:
    """Numbers of subscriptions, how many each subscriber has, and rounds of each measurement."""

    counts: tuple[int, ...] = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
    per_subscriber: int = 100
    rounds: int = 5
    catalogue: CatalogueChoice = CatalogueChoice()


class PivotOpIndex:
    """The original OpIndex (TKS 5.1.1): conjunctions, by pivot attribute and operator.

    The pivot of a subscription is its attribute that is rarest among publications.
    """

    def __init__(self, frequencies: Mapping[str, int]) -> None:
        self._frequencies = frequencies
        self._lists: dict[str, dict[tuple[str, str, str], OperandList[list[str]]]] = {}
        self._interned: dict[tuple[str, Predicate], list[str]] = {}
        self._sizes: dict[str, int] = {}

    def add(self, subscription: Subscription) -> None:
        """Add a conjunction of predicates with operands."""
        (conjunction,) = subscription.conjunctions
        predicates = list(dict.fromkeys(conjunction))
        pivot = min(
            (predicate.attribute for predicate in predicates),
            key=lambda name: (self._frequencies.get(name, 0), name),
        )
        self._sizes[subscription.id] = len(predicates)
        for predicate in predicates:
            self._holders(pivot, predicate).append(subscription.id)

    def matching(self, event: Event) -> list[str]:
        """Return the ids of the subscriptions whose predicates all hold."""
        counts: Counter[str] = Counter()
        for pivot in event.tokens.keys() & self._lists.keys():
            for (attribute, family, _), operands in self._lists[pivot].items():
                holders = {
                    id(ids): ids
                    for value_family, key in event.tokens.get(attribute, ())
                    if value_family == family
                    for ids in operands.holding(key)
                }
                for ids in holders.values():
                    counts.update(ids)
        return sorted(name for name, count in counts.items() if count == self._sizes[name])

    def _holders(self, pivot: str, predicate: Predicate) -> list[str]:
        """Return the subscriptions of this pivot that have the predicate."""
        if (pivot, predicate) not in self._interned:
            holders = self._interned[pivot, predicate] = []
            slot = (predicate.attribute, predicate.family, list_kind(predicate))
            lists = self._lists.setdefault(pivot, {})
            if slot not in lists:
                lists[slot] = OPERANDS[slot[2]]()
            lists[slot].add(list_operand(predicate), holders)
        return self._interned[pivot, predicate]


class Construction(NamedTuple):
    """The structure built from some subscriptions, and how long that took."""

    tuples: int
    relations: int
    ms: Mapping[str, float]

    def ratio(self, name: str = MODIFIED) -> float:
        """Return the time relative to the original OpIndex."""
        return self.ms[name] / self.ms[ORIGINAL]


Constructions = Mapping[int, Construction]
"""By the number of subscriptions."""
TOO_FEW: Final = 2
"""Sizes through which an exponential and a power fit equally well."""
RelationsBySize = Mapping[int, float]
"""The mean number of relations behind a subscription, by the number of its tuples."""


def run(parameters: ConstructionParameters, seed: int, progress: Progress) -> Sequence[Exhibit]:
    """Build both indexes from the same subscriptions to all views."""
    views = parameters.catalogue.views(seed)
    frequencies = Counter(
        name for view in views.values() for product in view.products for name in product.attributes
    )
    drawn = _drawn(list(views.values()), max(parameters.counts), parameters.per_subscriber, seed)
    built = {}
    for step, count in enumerate(parameters.counts):
        progress(step, len(parameters.counts), f"{count:,} subscriptions")
        built[count] = construct(drawn[:count], frequencies, parameters.rounds)
    return [exhibit(built, relations_by_size(drawn))]


def relations_by_size(drawn: Iterable[Subscription]) -> RelationsBySize:
    """Return how many relations a subscription of each size has."""
    counts = defaultdict[int, list[int]](list)
    for subscription in drawn:
        graph = preference_graph([subscription])
        counts[len(graph.preferences)].append(len(graph.edges))
    return {size: fmean(counts[size]) for size in sorted(counts)}


def _drawn(views: Sequence[View], count: int, size: int, seed: int) -> list[Subscription]:
    """Return subscriptions of subscribers that take turns in the views."""
    drawn: list[Subscription] = []
    for number in range(-(-count // size)):
        view = views[number % len(views)]
        drawn += subscriptions(view, size, subscriber=f"reader-{number:05d}", seed=seed + number)
    return drawn[:count]


def construct(
    drawn: Sequence[Subscription], frequencies: Mapping[str, int], rounds: int
) -> Construction:
    """Build the indexes from some subscriptions."""
    calls: dict[str, Callable[[], object]] = {
        ORIGINAL: lambda: _add_all(PivotOpIndex(frequencies), drawn),
        LISTS: lambda: OpIndex(drawn),
        MODIFIED: lambda: (OpIndex(drawn), graphs(drawn)),
    }
    return Construction(
        sum(len(subscription.groups[0]) for subscription in drawn),
        sum(len(graph.edges) for graph in graphs(drawn)),
        least_times(calls, rounds),
    )


def _add_all(index: PivotOpIndex, drawn: Iterable[Subscription]) -> PivotOpIndex:
    for subscription in drawn:
        index.add(subscription)
    return index


def graphs(drawn: Iterable[Subscription]) -> list[PreferenceGraph]:
    """Return the preference graph of every subscriber."""
    owned: dict[str, list[Subscription]] = defaultdict(list)
    for subscription in drawn:
        owned[subscription.subscriber].append(subscription)
    return [preference_graph(of) for of in owned.values()]


def exhibit(built: Constructions, by_size: RelationsBySize) -> Exhibit:
    """Return the figure."""
    rows = tuple(
        (count, build.tuples, build.relations, *build.ms.values(), build.ratio())
        for count, build in built.items()
    )
    names = [f"{name} (ms)" for name in next(iter(built.values())).ms]
    columns = ("subscriptions", "tuples", "relations", *names, "modified / original")
    return Exhibit(
        "TKS",
        "Figure 7.9",
        "Construction of OpIndex and of the modified OpIndex",
        DataTable(columns, rows, timed=(*names, "modified / original")),
        (
            takes_twice_as_long(built),
            overhead_is_the_graph(built),
            updates_take_longer(built),
            relations_explode(built, by_size),
        ),
        chart(
            [
                Panel(
                    "",
                    "subscriptions",
                    "construction (ms of CPU time)",
                    [
                        Series(name, list(built), [build.ms[name] for build in built.values()])
                        for name in (ORIGINAL, LISTS, MODIFIED)
                    ],
                )
            ]
        ),
        "Both indexes are written in Python, in the same style, over the same operator lists.",
    )


def takes_twice_as_long(built: Constructions) -> Claim:
    """Claim the overhead of the modified index."""
    ratios = [build.ratio() for build in built.values()]
    return Claim(
        "The modified OpIndex takes about twice as long to build: 1.5 to 3 times.",
        "almost twice",
        f"{min(ratios):.1f} to {max(ratios):.1f} times",
        min(ratios) >= 1.5 and max(ratios) <= 3,
        "A subscription of d tuples has d (d - 1) / 2 relations: at the thesis' sizes, ten for "
        "each tuple. Every one is entered in the graph of its subscriber.",
        timed=True,
    )


def overhead_is_the_graph(built: Constructions) -> Claim:
    """Claim that the graphs, not the lists, take the additional time."""
    lists = [build.ratio(LISTS) for build in built.values()]
    whole = [build.ratio() for build in built.values()]
    return Claim(
        "The overhead comes from the graphs: without them the modified index is less than half of "
        "the way above the original.",
        "the overhead of maintaining the graph is significant",
        f"{min(lists):.1f} to {max(lists):.1f} times without graphs, {min(whole):.1f} to "
        f"{max(whole):.1f} with them",
        all(a - 1 < (b - 1) / 2 for a, b in zip(lists, whole, strict=True)),
        timed=True,
    )


def updates_take_longer(built: Constructions) -> Claim:
    """Claim that a subscription takes longer to add, the more there are."""
    ms = {count: build.ms[MODIFIED] / count for count, build in built.items()}
    first, *_, last = ms
    return Claim(
        "The more subscriptions there are, the longer it takes to add one to the modified OpIndex.",
        "it takes relatively longer time to update",
        f"{ms[first] * 1e3:.0f} us of {first:,}, {ms[last] * 1e3:.0f} us of {last:,}",
        ms[last] > NOISE * ms[first],
        "A subscription has the same relations whatever others there are, and each is entered in a "
        "hash table.",
        timed=True,
    )


def relations_explode(built: Constructions, by_size: RelationsBySize) -> Claim:
    """Claim exponential growth: the logarithm of the relations is linear in the tuples.

    It fails if a power of the number of tuples fits better.
    """
    per_tuple = [build.relations / build.tuples for build in built.values()]
    known = {size: count for size, count in by_size.items() if count}
    sizes, logarithms = np.array(list(known), float), np.log(list(known.values()))
    exponential = power = 0.0
    if len(known) > TOO_FEW:
        exponential, power = (
            float(np.corrcoef(of, logarithms)[0, 1]) for of in (sizes, np.log(sizes))
        )
    first, last = min(known), max(known)
    return Claim(
        "The number of relations behind a subscription grows exponentially with its tuples.",
        "may grow exponentially",
        f"{known[first]:.0f} of {first} tuples, {known[last]:.0f} of {last}; correlation with an "
        f"exponential {exponential:.3f}, with a power {power:.3f}",
        exponential > power,
        "A subscription of d tuples has d (d - 1) / 2 relations, which is quadratic. With "
        f"{min(per_tuple):.1f} to {max(per_tuple):.1f} for each tuple they still take most of the "
        "time.",
    )


EXPERIMENT: Final = Experiment(
    "tks-figure-7.9",
    "TKS",
    ("Figure 7.9",),
    run,
    paper_parameters=ConstructionParameters(),
    laptop=ConstructionParameters(
        counts=(500, 1_000, 2_000, 3_000), rounds=4, catalogue=CatalogueChoice(2_000)
    ),
    quick=ConstructionParameters(
        counts=(10, 30), per_subscriber=5, rounds=1, catalogue=CatalogueChoice(60)
    ),
)
