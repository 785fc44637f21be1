"""ILSH chooses what BLSH chooses."""

from itertools import count

import numpy as np
import pytest

from tidings.diversify import Candidate
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.lab.papers.lsh_window import LshWindow
from tidings.model.records import Event

NUMBERS = count()


def arrivals(size: int, rng: np.random.Generator) -> list[Candidate]:
    """Return events of few values, so that buckets are shared and ranks tie."""
    found = []
    for number, rank in zip(NUMBERS, rng.integers(1, 4, size).tolist(), strict=False):
        values = {name: int(rng.integers(3)) for name in "abcd"}
        found.append(Candidate(Event(f"e{number:04d}", values, number // 2), rank, rank))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_after_every_arrival_the_choice_is_that_of_a_new_computation(seed: int) -> None:
    rng, part = np.random.default_rng(seed), MaxDivRelLsh(tables=6, rows=2)
    stream, window = arrivals(40, rng), LshWindow(10, part, 4)
    for place, arrival in enumerate(stream, 1):
        window.offer([arrival])
        held = stream[max(0, place - 10) : place]
        assert window.chosen() == [held[i].event.id for i in part.choose(held, 4)]
