"""Graph scores in bulk, against the scorer of one subscriber."""

from random import Random

import numpy as np
import pytest

from tidings import Event, Policy, Subscriber, Subscription
from tidings.rank.bulk.kernels.graph import EDGE, first_edge
from tidings.rank.matcher import Matcher

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
    wanted = [one for owner in owners for one in subscriptions(chance, owner.id)]
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
