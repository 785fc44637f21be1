"""ILSH gives what BLSH gives for the same window, whatever comes and goes (TKS 5.2.6)."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.diversify.small import WIDE, candidate

from tidings.diversify import Ilsh
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.plain.lsh import maxdivrel_lsh
from tidings.diversify.protocol import Candidate
from tidings.errors import TidingsError
from tidings.model.records import Event
from tidings.score.decay import Exponential

ARRIVALS = st.tuples(WIDE, st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(0, 2))
STEPS = st.lists(ARRIVALS | st.integers(0, 30), max_size=30)
SHAPES = st.sampled_from([(1, 1), (3, 1), (4, 2), (7, 3)])


@dataclass
class Twins:
    """An `Ilsh` and the candidates in it, by slot; ids sort as they come."""

    part: MaxDivRelLsh
    room: int = 1
    there: dict[int, Candidate] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    made: int = 0

    def __post_init__(self) -> None:
        self.ilsh = Ilsh(self.part.shape, self.part.seed, self.room)

    def add(self, each: Candidate, *, enter: bool) -> None:
        slot = self.free.pop() if self.free else len(self.there)
        order = (each.event.published_us, self.made)
        if enter:
            self.ilsh.enter(slot, each.event, each.key, order)
        else:
            self.ilsh.arrive(slot, self.part.bands([each.event])[0], each.key, order)
        self.there[slot] = each
        self.made += 1

    def drop(self, slot: int) -> None:
        self.ilsh.expire(slot)
        del self.there[slot]
        self.free.append(slot)

    def agree(self, k: int) -> None:
        window = list(self.there.values())
        expected = [window[i].event.id for i in maxdivrel_lsh(self.part, window, k)]
        assert [self.there[slot].event.id for slot in self.ilsh.top(k)] == expected


@settings(max_examples=60)
@given(SHAPES, STEPS, st.integers(1, 6), st.booleans())
def test_it_is_blsh_after_every_step(
    shape: tuple[int, int], steps: list[object], k: int, enter: bool
) -> None:
    twins = Twins(MaxDivRelLsh(tables=shape[0], rows=shape[1]))
    for number, step in enumerate(steps):
        if isinstance(step, tuple):
            attributes, key, time = step
            twins.add(candidate(f"e{number:03}", key, time, **attributes), enter=enter)
        elif twins.there:
            twins.drop(sorted(twins.there)[step % len(twins.there)])  # type: ignore[operator]
        assert len(twins.ilsh) == len(twins.there)
        twins.agree(k)


@given(st.lists(st.tuples(WIDE, st.integers(1, 4)), min_size=1, max_size=30), st.integers(1, 8))
def test_keys_of_freshness_never_change(rows: list[tuple[dict[str, object], int]], w: int) -> None:
    """A sliding window with a decay so fast that ranks themselves would all be 0."""
    twins, decay = Twins(MaxDivRelLsh(tables=4, rows=1)), Exponential(rate=40.0)
    for second, (attributes, score) in enumerate(rows):
        event = Event(f"e{second:03}", attributes, 10**6 + second)
        key = decay.key(score, event.published_us)
        twins.add(Candidate(event, 0.0, key), enter=True)
        if len(twins.there) > w:
            twins.drop(min(twins.there, key=lambda slot: twins.there[slot].event.published_us))
        twins.agree(3)


def test_a_winner_that_leaves_is_followed_by_the_next() -> None:
    """One bucket in each of three tables: all votes go to the best that is there."""
    ilsh = Ilsh((3, 1))
    same = np.array([11, 12, 13], np.uint64)
    for slot, key in enumerate([0.5, 0.9, 0.7]):
        ilsh.arrive(slot, same, key, (0, slot))
    assert [ilsh.votes(slot) for slot in range(3)] == [0, 3, 0]
    ilsh.expire(1)
    assert [ilsh.votes(0), ilsh.votes(2)] == [0, 3]
    ilsh.expire(0)
    ilsh.expire(2)
    assert (len(ilsh), ilsh.buckets, ilsh.top(2)) == (0, 0, [])


@pytest.mark.parametrize(
    ("orders", "first"),
    [([(1, 5), (2, 9)], 1), ([(2, 5), (2, 9)], 0), ([(2, 9), (2, 5)], 1)],
)
def test_equal_keys_go_by_time_then_by_number(orders: list[tuple[int, int]], first: int) -> None:
    ilsh = Ilsh((1, 1))
    for slot, order in enumerate(orders):
        ilsh.arrive(slot, np.array([7], np.uint64), 0.5, order)
    assert ilsh.top(1) == [first]
    assert ilsh.top(3) == [first, 1 - first]


def test_places_that_collide_are_found_after_others_left() -> None:
    """Keys that all want the same place of the table, in a chain that goes round its end."""
    ilsh = Ilsh((1, 1), room=8)
    keys = [np.array([15 + 16 * i], np.uint64) for i in range(8)]
    for gone in range(8):
        for slot in range(8):
            ilsh.arrive(slot, keys[slot], 1.0, (0, slot))
        for slot in [gone, *(i for i in range(8) if i != gone)]:
            assert ilsh.votes(slot) == 1
            ilsh.expire(slot)
        assert ilsh.buckets == 0


def test_only_the_own_buckets_are_touched() -> None:
    """Others keep their votes; a stream of a thousand leaves no bucket behind."""
    part = MaxDivRelLsh(tables=5, rows=2)
    ilsh = Ilsh(part.shape)
    events = [Event(f"e{i}", {"a": i % 7, "b": i % 11, "c": i % 2}, i) for i in range(1000)]
    for i, event in enumerate(events):
        ilsh.enter(i % 21, event, 0.5, (i, 0))
        if i >= 20:
            ilsh.expire((i - 20) % 21)
        assert sum(ilsh.votes(slot) for slot in ilsh.top(len(ilsh))) == ilsh.buckets
    assert ilsh.buckets <= 5 * 20


def test_slots_are_taken_once() -> None:
    ilsh, own = Ilsh((1, 1)), np.array([1], np.uint64)
    ilsh.arrive(3, own, 1.0, (0, 0))
    with pytest.raises(TidingsError, match="slot 3 is taken"):
        ilsh.arrive(3, own, 1.0, (0, 0))
    with pytest.raises(TidingsError, match="slot 4 is free"):
        ilsh.expire(4)


def test_infinite_keys_are_the_last() -> None:
    """A rank of 0 has the key -inf in the log domain."""
    ilsh = Ilsh((1, 1))
    for slot, key in enumerate([-math.inf, -5.0, -math.inf]):
        ilsh.arrive(slot, np.array([1], np.uint64), key, (slot, 0))
    assert ilsh.top(4) == [1, 2, 0]
