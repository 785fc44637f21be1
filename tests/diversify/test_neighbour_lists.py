"""Neighbour lists choose as the plain version does from scratch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.diversify.small import AWKWARD, WIDE, candidate, ids

from tidings.diversify import Neighbours, order_of
from tidings.diversify.covers import Disc, MaxDivRel
from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.plain.diversifiers import PLAIN
from tidings.diversify.protocol import Candidate
from tidings.diversify.tie_order import ranks_and_keys
from tidings.errors import InvalidPolicy, TidingsError

STEPS = st.lists(st.tuples(WIDE, AWKWARD, st.integers(0, 2)) | st.integers(0, 30), max_size=30)
PARTS = pytest.mark.parametrize("part", [MaxDivRel, Disc])
DISTANCES = st.sampled_from([Overlap(), Jaccard(), Overlap({"a": 0.1, "b": 0.7})])


def chosen(neighbours: Neighbours, alive: dict[int, Candidate], k: int) -> list[str]:
    window = list(alive.values())
    order = order_of([member.event for member in window])
    return ids(window, neighbours.pick(np.array(list(alive)), *ranks_and_keys(window), order, k))


@PARTS
@settings(max_examples=50)
@given(
    steps=STEPS,
    alpha=st.sampled_from([0.25, 1 / 3, 0.5, 2 / 3, 1.0]),
    distance=DISTANCES,
    k=st.integers(1, 5),
)
def test_choices_equal_the_plain_ones_after_every_step(
    part: type[MaxDivRel | Disc], steps: list[object], alpha: float, distance: object, k: int
) -> None:
    greedy = part(alpha=alpha, distance=distance)
    neighbours, alive = Neighbours(greedy), dict[int, Candidate]()
    for number, step in enumerate(steps):
        if isinstance(step, tuple):
            attributes, rank, time = step
            member = candidate(f"e{number}", rank, time, **attributes)
            alive[neighbours.arrive(member.event)] = member
        elif alive:
            leaving = sorted(alive)[step % len(alive)]  # type: ignore[operator]
            neighbours.expire(leaving)
            del alive[leaving]
        assert len(neighbours) == len(alive)
        window = list(alive.values())
        if window:
            expected = ids(window, PLAIN[greedy.name](greedy, window, k))
            assert chosen(neighbours, alive, k) == expected


def test_lists_hold_the_neighbours_and_their_distances() -> None:
    neighbours = Neighbours(MaxDivRel(alpha=0.5))
    rows = [{"x": 1, "y": 1}, {"x": 1, "y": 2}, {"x": 2, "y": 2}, {"x": 1, "y": 1}]
    slots = [neighbours.arrive(candidate(f"e{i}", 1, **row).event) for i, row in enumerate(rows)]
    assert neighbours.neighbours(slots[0]) == {slots[1]: 0.5, slots[3]: 0.0}
    assert neighbours.neighbours(slots[2]) == {slots[1]: 0.5}
    neighbours.expire(slots[1])
    assert neighbours.neighbours(slots[0]) == {slots[3]: 0.0}
    assert neighbours.neighbours(slots[2]) == {}


def test_a_choice_from_some_of_the_members() -> None:
    """As after a delivery, when its event is not a candidate any more."""
    neighbours = Neighbours(MaxDivRel(alpha=0.5))
    window = [candidate(f"e{i}", 1 - i / 10, i, x=i % 2) for i in range(6)]
    alive = {neighbours.arrive(member.event): member for member in window}
    some = dict(list(alive.items())[1:4])
    expected = MaxDivRel(alpha=0.5).choose(list(some.values()), 2)
    assert chosen(neighbours, some, 2) == ids(list(some.values()), expected)


def test_a_missing_alpha_and_a_free_slot_are_refused() -> None:
    with pytest.raises(InvalidPolicy, match="need an alpha"):
        Neighbours(MaxDivRel())
    with pytest.raises(TidingsError, match="slot 2 is free"):
        Neighbours(Disc(alpha=0.5)).expire(2)
