"""Lists of neighbours stay symmetric as slots arrive and leave."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.diversify.kernels.neighbour_lists import (
    PaddedLists,
    join_lists,
    leave_lists,
    mark_near,
)

SLOTS = 6
STEPS = st.lists(
    st.tuples(st.integers(0, SLOTS - 1), st.sets(st.integers(0, SLOTS - 1))), max_size=20
)


def as_dicts(lists: PaddedLists) -> list[dict[int, float]]:
    return [
        dict(zip(ids[:size].tolist(), distances[:size].tolist(), strict=True))
        for ids, distances, size in zip(*lists, strict=True)
    ]


@given(STEPS)
def test_lists_equal_a_dict_of_pairs(steps: list[tuple[int, set[int]]]) -> None:
    """A step lets a slot leave if it is there, or else arrive with some neighbours."""
    shape = (SLOTS, SLOTS)
    lists = PaddedLists(np.zeros(shape, np.int64), np.zeros(shape), np.zeros(SLOTS, np.int64))
    expected: list[dict[int, float]] = [{} for _ in range(SLOTS)]
    alive = set[int]()
    for number, (slot, wanted) in enumerate(steps):
        if slot in alive:
            leave_lists(lists, slot)
            alive.remove(slot)
            expected[slot] = {}
            for neighbours in expected:
                neighbours.pop(slot, None)
        else:
            others = sorted(wanted & alive)
            join_lists(lists, slot, np.array(others, np.int64), np.full(len(others), number / 9))
            alive.add(slot)
            for other in others:
                expected[slot][other] = expected[other][slot] = number / 9
        assert as_dicts(lists) == expected


def test_a_distance_within_12_decimals_of_alpha_is_near() -> None:
    near = np.empty(3, np.bool_)
    mark_near(np.array([0.5, 0.5 + 1e-13, 0.5 + 1e-11]), 0.5, near)
    assert near.tolist() == [True, True, False]
