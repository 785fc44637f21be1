"""Ranks in bulk, against a plain reading of PREF Def. 5."""

from math import fsum
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import Event, Policy, Subscriber, Subscription
from tidings.compiled.exact_sum import PARTS
from tidings.index.access.kernels.partial_match import Hits
from tidings.model.values import rounded
from tidings.rank.bulk.kernels.rank import EDGE, PART, Spans, first_edge, weigh_hits
from tidings.rank.bulk.rank_table import AGGREGATES, RankRows, RankTable
from tidings.rank.matcher import Matcher

OWNERS = [0, 0, 0, 1, 1, 2, -1]
AGGREGATE = ["max", "mean", "sum"]  # by owner
WORTHS = [0.1, 0.7, 0.2, 1.0, 0.3, 0.9, 0.5]
COVERS = [[1, 2], [2], [], [4], [], [], []]
PLAIN: dict[str, Any] = {
    "max": max,
    "min": min,
    "sum": lambda worths: rounded(fsum(worths)),
    "mean": lambda worths: rounded(fsum(worths) / len(worths)),
}


def expected(event: list[int]) -> list[tuple[int, float, list[int]]]:
    """Return the matches of one event, in order of the first hit of each owner."""
    owners = list(dict.fromkeys(OWNERS[number] for number in event if OWNERS[number] >= 0))
    matches = []
    for owner in owners:
        own = [number for number in event if OWNERS[number] == owner]
        specific = [number for number in own if not {*COVERS[number]} & {*event}]
        rank = PLAIN[AGGREGATE[owner]]([WORTHS[number] for number in specific])
        matches.append((owner, rank, own))
    return matches


@given(st.lists(st.lists(st.integers(0, 6), unique=True), max_size=6))
def test_the_most_specific_subscriptions_make_the_rank(events: list[list[int]]) -> None:
    table = RankTable()
    table.put(
        RankRows(
            np.arange(7, dtype=np.int32),
            np.array(OWNERS, np.int32),
            np.array(WORTHS),
            np.cumsum([0, *map(len, COVERS)]),
            np.array([number for covers in COVERS for number in covers], np.int32),
        )
    )
    for owner, name in enumerate(AGGREGATE):
        table.set_aggregate(owner, name)
    numbers = np.array([number for event in events for number in event], np.int32)
    none = np.empty(0, np.int64), np.empty(0, np.int32)
    matches = table.rank(Hits(np.cumsum([0, *map(len, events)]), numbers, *none))
    assert [list(matches.rows(event)) for event in range(len(events))] == [*map(expected, events)]


def test_every_aggregate_has_a_number() -> None:
    assert AGGREGATES.keys() == PLAIN.keys()


WEIGHTS = st.sampled_from([0.0, 0.1, 0.2, 0.7, 2.0])
GROUPS = st.lists(st.lists(WEIGHTS, min_size=1, max_size=4), min_size=1, max_size=3)
SUBSCRIPTIONS = st.lists(st.none() | GROUPS, min_size=1, max_size=5)


@given(SUBSCRIPTIONS, st.randoms(use_true_random=False), st.booleans())
def test_the_heaviest_group_counts(subscriptions, random, uncertain):
    parts = [[] if groups is None else _parts(groups) for groups in subscriptions]
    sizes = np.array([len(own) for own in parts])
    firsts = np.where([groups is None for groups in subscriptions], -1, np.cumsum(sizes) - sizes)
    values = np.array([part for own in parts for part in own], PART)
    held = [
        [number for number in range(max(1, len(own))) if not own or random.random() < 0.6]
        for own in parts
    ]
    hits = Hits(
        np.array([0, len(parts)]),
        np.arange(len(parts), dtype=np.int32),
        np.cumsum([0, *map(len, held)]),
        np.array([number for own in held for number in own], np.int32),
    )
    chances = [random.choice([0.25, 0.5, 1.0]) for _ in hits.parts]
    probabilities = np.array(chances) if uncertain else np.empty(0)
    out = np.empty(len(parts))
    weigh_hits(Spans(firsts.astype(np.int64), values), hits, probabilities, np.empty(PARTS), out)
    chance = iter(chances if uncertain else [1.0] * len(chances))
    weighed = [
        [(own[n] if own else None, next(chance)) for n in some]
        for own, some in zip(parts, held, strict=True)
    ]
    assert out.tolist() == [_heaviest(some) for some in weighed]


def _parts(groups):
    return [(weight, group, 0) for group, own in enumerate(groups) for weight in own]


def _heaviest(weighed):
    sums: dict[int, list[float]] = {}
    for part, chance in weighed:
        if part is not None:
            sums.setdefault(part[1], []).append(part[0] * chance)
    return max((rounded(fsum(own)) for own in sums.values()), default=0.0)


CONDITIONS = ["a = 1", "b >= 1", "b >= 2", "c = 1", "a in (1, 2)", "c <> 3"]


def subscriptions(chance: Random, subscriber: str) -> list[Subscription]:
    return [
        Subscription(
            f"{subscriber}{number}",
            subscriber,
            any=[[part, chance.choice([0.1, 0.4, 0.9])] for part in chance.sample(CONDITIONS, 3)],
        )
        for number in range(3)
    ]


@pytest.mark.parametrize("aggregate", ["mean", "sum"])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_a_graph_scores_as_its_scorer_does_alone(aggregate: str, share: float) -> None:
    chance = Random(5)
    scorer = {"name": "graph", "lambda": share, "aggregate": aggregate}
    owners = [Subscriber(name, Policy(scorer=scorer)) for name in ("ann", "bob", "cy")]
    wanted = [subscription for owner in owners for subscription in subscriptions(chance, owner.id)]
    compiled, plain = (Matcher(owners, wanted, index) for index in ("access", "scan"))
    for a, b, c in ((1, 0, 3), (1, 2, 1), (2, 1, 0), (9, 2, 1), (9, 0, 3)):
        event = Event("e", {"a": a, "b": b, "c": c}, 0)
        assert compiled.matches(event) == plain.matches(event)


def test_edges_are_found_by_binary_search() -> None:
    edges = np.zeros(6, EDGE)
    edges["to"] = [1, 2, 2, 2, 5, 7]
    for to in range(9):
        assert first_edge(edges, 0, 6, to) == np.searchsorted(edges["to"], to)
        assert first_edge(edges, 2, 5, to) == 2 + np.searchsorted(edges["to"][2:5], to)
