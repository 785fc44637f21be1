"""Distance matrices by kernels equal the distances themselves."""

from itertools import product
from random import Random
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.small import large_windows

from tidings.diversify import Submatrix, distances
from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.distance_matrix import as_submatrix
from tidings.diversify.protocol import Candidate, Distance
from tidings.model.records import Event

WEIGHTS = {"a": 0.1, "b": 0.7, "c": 3.0, "d": 0.0, "e": 1e-9}
KNOWN = st.sampled_from([Overlap(), Jaccard(), Overlap(WEIGHTS), Overlap({"a": 0, "b": 0})])


def expected(events: list[Event], distance: Distance) -> list[list[float]]:
    return [[distance.between(one, other) for other in events] for one in events]


@given(large_windows(), KNOWN)
def test_a_matrix_equals_the_distances_to_the_last_bit(
    window: list[Candidate], distance: Distance
) -> None:
    events = [member.event for member in window]
    assert distances(events, distance).tolist() == expected(events, distance)


@pytest.mark.parametrize("distance", [Overlap(), Jaccard(), Overlap({"a7": 0.3, "a200": 5})])
@pytest.mark.parametrize("attributes", [3, 64, 65, 253])
def test_sparse_events_with_more_than_64_attributes(distance: Distance, attributes: int) -> None:
    chance = Random(attributes)
    names = [f"a{i}" for i in range(attributes)]
    events = [
        Event(
            f"e{i}", {n: chance.randrange(3) for n in chance.sample(names, chance.randrange(4))}, 0
        )
        for i in range(60)
    ]
    assert distances(events, distance).tolist() == expected(events, distance)


class Length:
    """A user-defined distance."""

    name: ClassVar[str] = "length"

    def between(self, one: Event, other: Event) -> float:
        return abs(len(one.attributes) - len(other.attributes)) / 10


def test_user_defined_distances_are_called() -> None:
    events = [Event(f"e{i}", dict.fromkeys("abc"[:i], 1), 0) for i in range(4)]
    matrix = distances(events, Length())
    for i, j in product(range(4), repeat=2):
        assert matrix[i, j] == abs(i - j) / 10


def test_a_matrix_is_the_submatrix_of_all_its_rows() -> None:
    matrix = np.arange(9, dtype=float).reshape(3, 3)
    assert as_submatrix(matrix).members.tolist() == [0, 1, 2]
    assert as_submatrix(matrix.T).matrix.tolist() == matrix.T.tolist()
    some = Submatrix(matrix, np.array([2, 0]))
    assert as_submatrix(some) is some
