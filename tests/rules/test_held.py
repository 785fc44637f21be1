"""Picks that a rule holds: their order, their release, and their form in snapshots."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.streams import pick, picks

from tidings.errors import InvalidForm
from tidings.rules.held import (
    best_rank_first,
    is_urgent,
    pick_form,
    read_pick,
    read_rank,
    released,
)
from tidings.window import Pick


def test_higher_ranks_then_newer_events_then_smaller_ids_come_first() -> None:
    held = [
        pick("b", "2026-11-15T10:00Z", 0.5),
        pick("a", "2026-11-15T10:00Z", 0.5),
        pick("c", "2026-11-15T11:00Z", 0.5),
        pick("d", "2026-11-15T09:00Z", 0.9),
        pick("e", "2026-11-15T12:00Z", 0.1),
    ]
    ordered = sorted(held, key=best_rank_first)
    assert [each.match.event.id for each in ordered] == ["d", "c", "a", "b", "e"]


@pytest.mark.parametrize(
    ("rank", "urgent", "expected"),
    [
        (0.5, None, False),
        (0.5, 0.5, True),
        (0.49, 0.5, False),
        (0.0, 0.0, True),
        (1e9, None, False),
    ],
)
def test_a_rank_is_urgent_from_a_limit_on(
    rank: float, urgent: float | None, expected: bool
) -> None:
    assert is_urgent(pick("a", "2026-11-15", rank), urgent) == expected


@given(picks(), st.integers(0, 10**15))
def test_released_picks_are_numbered_and_otherwise_unchanged(held: list[Pick], at_us: int) -> None:
    due = released(held, at_us)
    assert [each.position for each in due] == [*range(1, len(held) + 1)]
    assert {each.at_us for each in due} == {at_us}
    for before, after in zip(held, due, strict=True):
        assert (after.match, after.rank, after.window) == (before.match, before.rank, before.window)
    assert released([], at_us) == []


@given(picks())
def test_a_pick_is_read_as_it_was_written(held: list[Pick]) -> None:
    for each in held:
        assert read_pick(json.loads(json.dumps(pick_form(each)))) == each


FORM = pick_form(pick("a", "2026-11-15T10:00Z", 0.5))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (1, -0.5, "a rank must be a number of at least 0, not -0.5"),
        (1, "1", "a rank must be a number of at least 0, not '1'"),
        (2, 0, "the position of a held event must be an integer from 1 to"),
        (2, 1.0, "the position of a held event must be an integer from 1 to"),
        (3, [], "the window of a held event must be an object, not []"),
        (3, None, "the window of a held event must be an object, not None"),
        (4, "now", "the time of a held event must be an integer from"),
        (4, 1 << 63, "the time of a held event must be an integer from"),
        (0, {}, ""),
        (0, None, ""),
    ],
)
def test_a_damaged_pick_is_refused(place: int, value: Any, message: str) -> None:
    form = [*FORM]
    form[place] = value
    with pytest.raises(InvalidForm) as error:
        read_pick(form)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(("rank", "read"), [(0, 0.0), (1, 1.0), (0.25, 0.25), (10**9, 1e9)])
def test_a_rank_is_a_number(rank: Any, read: float) -> None:
    assert read_rank(rank) == read
    assert type(read_rank(rank)) is float


@pytest.mark.parametrize(
    "rank", [-1, -0.1, float("nan"), float("inf"), True, None, "0.5", [0.5], {}]
)
def test_other_ranks_are_refused(rank: Any) -> None:
    with pytest.raises(InvalidForm, match=r"^a rank must be a number of at least 0, not "):
        read_rank(rank)
