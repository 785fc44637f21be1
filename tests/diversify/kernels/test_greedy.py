"""Greedy growth over windows large enough for its bounds to matter."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.diversify import Candidate, distances, order_of
from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.greedy import DivRank
from tidings.diversify.hashed_distances import from_events, from_matrix
from tidings.diversify.kernels.distances import source_arrays
from tidings.diversify.kernels.greedy import LEAST, MEAN, NEAREST, SUM, grow
from tidings.diversify.plain.diversifiers import PLAIN
from tidings.diversify.protocol import Distance
from tidings.model.records import Event

RULES = {"divrank": NEAREST, "maxmin": LEAST, "maxsum": SUM, "maxavg": MEAN}
SPREADS = {
    "equal": lambda chance: 0.5,
    "few": lambda chance: chance.choice([0.1, 0.2, 0.3]),
    "any": lambda chance: chance.random(),
    "steep": lambda chance: 10 ** chance.uniform(-6, 3),
}


def crowd(seed: int, count: int, spread: str) -> list[Candidate]:
    chance = Random(seed)
    candidates = []
    for i in range(count):
        attributes = {name: chance.randrange(3) for name in chance.sample("abcdefgh", 5)}
        rank = SPREADS[spread](chance)
        event = Event(f"e{chance.randrange(10**6)}-{i}", attributes, chance.randrange(5))
        candidates.append(Candidate(event, rank, rank))
    return candidates


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("name", RULES)
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), sigma=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
def test_skipped_pairs_are_not_the_best(name: str, spread: str, seed: int, sigma: float) -> None:
    window = crowd(seed, 30, spread)
    part = DivRank(sigma=sigma)
    assert chosen(name, sigma, window, Overlap()) == PLAIN[name](part, window, 6)


def chosen(name: str, sigma: float, window: list[Candidate], distance: Distance) -> list[int]:
    """Return the choice of the kernel, from a matrix and from lists."""
    events = [member.event for member in window]
    ranks, order = np.array([member.rank for member in window]), order_of(events)
    descending = np.lexsort((order.newest, -ranks))
    members = [events[i] for i in descending]
    choices: list[list[int]] = []
    for source in (from_events(members, distance), from_matrix(distances(members, distance))):
        out = np.empty(6, np.int64)
        grow(
            source_arrays(source),
            ranks[descending],
            order.take(descending),
            sigma,
            RULES[name],
            out,
        )
        choices.append(descending[out].tolist())
    assert choices[0] == choices[1]
    return choices[0]


@pytest.mark.parametrize("distance", [Overlap(), Jaccard(), Overlap({"a": 0.3, "b": 2})])
@pytest.mark.parametrize("name", RULES)
def test_lists_and_matrices_choose_the_same(name: str, distance: Distance) -> None:
    for seed in range(5):
        window = crowd(seed, 25, "few")
        part = DivRank(sigma=0.3, distance=distance)
        assert chosen(name, 0.3, window, distance) == PLAIN[name](part, window, 6)


@pytest.mark.parametrize("k", [2, 3, 30, 40])
def test_every_size_up_to_all(k: int) -> None:
    window = crowd(3, 30, "any")
    part = DivRank(sigma=0.5)
    assert part.choose(window, k) == PLAIN["divrank"](part, window, k)


def test_equal_pairs_go_to_the_latest() -> None:
    """All events differ in all, so that every pair ties but for times and ids."""
    window = [
        Candidate(Event(f"e{i:02}", {"name": f"n{i}"}, 7 * i % 20), 0.5, 0.5) for i in range(40)
    ]
    part = DivRank(sigma=0.5)
    chosen = part.choose(window, 5)
    assert chosen == PLAIN["divrank"](part, window, 5)
    assert sorted(window[i].event.published_at for i in chosen[:2]) == [19, 19]
