"""Turns of picks against `groupby`."""

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.feed.columnar.rules.kernels.layout import Turns
from tidings.feed.columnar.rules.kernels.turns import AHEAD, RuleNumbers, choice_turns

SUBSCRIBERS = 5
GROUPS = np.array([0, 1, 0, -1, 0], np.int32)
ROWS = np.array([4, 0, 2, 9, 1], np.int32)
OFFERS = 40
SLOTS = (np.arange(OFFERS, dtype=np.int32) * 7) % 11
US = np.arange(11) * 1_000 - 3_000


def empty(size: int) -> Turns:
    return Turns(np.empty(size, np.int32), *(np.empty(size + 1, np.int64) for _ in range(4)))


def turns_of(
    picks: list[tuple[int, int]], group: int, dtype: type[np.signedinteger] = np.int64
) -> tuple[int, Turns]:
    """Return the turns of picks, each the number of an offer and its subscriber."""
    order = np.array([offer for offer, _ in picks], np.int64)
    subscriber = np.array([owner for _, owner in picks], dtype)
    turns = empty(len(picks))
    count = choice_turns(order, subscriber, RuleNumbers(group, GROUPS, ROWS), SLOTS, US, turns)
    return count, turns


@st.composite
def some_picks(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Draw up to four picks of each of some offers; an offer is to one subscriber."""
    offers = sorted(draw(st.sets(st.integers(0, OFFERS - 1), min_size=1)))
    owners = [draw(st.sampled_from([0, 2, 4])) for _ in offers]
    pairs = zip(offers, owners, strict=True)
    return [pair for pair in pairs for _ in range(draw(st.integers(1, 4)))]


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@given(picks=some_picks())
def test_the_picks_of_an_offer_are_one_turn(
    dtype: type[np.signedinteger], picks: list[tuple[int, int]]
) -> None:
    count, turns = turns_of(picks, 0, dtype)
    expected = [(pair, len(list(each))) for pair, each in groupby(picks)]
    assert count == len(expected)
    kept = turns.first_ones(count)
    assert kept.order.tolist() == [offer for (offer, _), _ in expected]
    assert kept.subscriber.tolist() == [owner for (_, owner), _ in expected]
    assert kept.row.tolist() == [ROWS[owner] for (_, owner), _ in expected]
    assert kept.us.tolist() == [US[SLOTS[offer]] for (offer, _), _ in expected]
    assert np.diff(kept.first).tolist() == [size for _, size in expected]
    assert (kept.first[0], kept.first[-1]) == (0, len(picks))


@pytest.mark.parametrize("owner", [1, 3])
@pytest.mark.parametrize("place", [0, 1, AHEAD, 2 * AHEAD])
def test_a_subscriber_of_another_group_is_noticed(owner: int, place: int) -> None:
    picks = [(offer, 0) for offer in range(2 * AHEAD + 1)]
    assert turns_of(picks, 0)[0] == len(picks)
    picks[place] = (place, owner)
    assert turns_of(picks, 0)[0] == -1


def test_subscribers_without_rules_are_a_group_as_well() -> None:
    count, turns = turns_of([(0, 3), (0, 3), (5, 3)], -1)
    assert count == 2
    assert turns.first[: count + 1].tolist() == [0, 2, 3]


def test_equal_offers_apart_are_two_turns() -> None:
    count, turns = turns_of([(2, 0), (1, 2), (2, 0)], 0)
    assert (count, turns.order[:3].tolist()) == (3, [2, 1, 2])
