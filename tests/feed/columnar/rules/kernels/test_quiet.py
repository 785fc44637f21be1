"""The kernel of `quiet` against the state machine of one subscriber, call by call."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.rules.groups import EVENTS, pick_of, put, room, rule_group
from tests.feed.columnar.rules.kernels.test_quota import verdicts_of

from tidings.feed.columnar.rules.group import RuleGroup
from tidings.feed.columnar.rules.kernels.held_list import list_cell, reserve_cells
from tidings.feed.columnar.rules.kernels.layout import EVENT, HELD
from tidings.feed.columnar.rules.kernels.quiet import drop_behind, offer_quiet
from tidings.feed.single import PolicyChooser
from tidings.rules.quiet import Quiet, QuietState
from tidings.rules.verdict import Outranked

SECOND = 1_000_000
NIGHT = {"name": "quiet", "start": "00:00:02", "end": "00:00:07"}
END = 7 * SECOND


def group_of(**policy: Any) -> RuleGroup:
    """Return rows that are quiet from the third second on."""
    rule = NIGHT | {"urgent": policy.pop("urgent", None)}
    group = rule_group([rule], **policy)
    group._span_tables.load(0)
    return group


def state_of(group: RuleGroup) -> QuietState:
    [part] = group.policy.rules
    assert isinstance(part, Quiet)
    return part.open(PolicyChooser(group.policy))


def slots_held(group: RuleGroup, row: int) -> list[int]:
    cells = [list_cell(group.arrays, row, n) for n in range(int(group.rows.lists[row, HELD]))]
    return [int(group.rows.held_cell[cell, EVENT]) for cell in cells]


offers = st.lists(
    st.tuples(st.integers(0, 31), st.integers(0, 9), st.sampled_from([0.0, 0.3, 0.6, 0.9])),
    min_size=1,
    max_size=14,
    unique_by=lambda offer: offer[0],
)
DECAYS: list[Any] = ["none", {"name": "exponential", "rate": 0.5}, "logarithmic"]


@settings(max_examples=120)
@pytest.mark.parametrize("diversify", ["none", "divrank"])
@given(st.integers(1, 4), st.sampled_from([None, 0.9]), st.sampled_from(DECAYS), offers)
def test_it_decides_as_the_state_of_one_subscriber(
    diversify: str, k: int, urgent: float | None, decay: Any, offers: list[tuple[int, int, float]]
) -> None:
    group, output, row = group_of(k=k, urgent=urgent, decay=decay, diversify=diversify), room(), 1
    arrays, state = group.arrays, state_of(group)
    # A window chooses in order of time, and nothing before it was published.
    for slot, second, rank in sorted(offers, key=lambda offer: offer[1]):
        at = max(second, slot // 4) * SECOND
        if at > 7 * SECOND or (state.deadline is not None and at >= state.deadline):
            continue
        put(arrays, 0, slot, at, rank, rank)
        assert reserve_cells(arrays, row, min(int(group.rows.lists[row, HELD]) + 1, 40))
        passes = offer_quiet(arrays, output, row, 0, 0)
        assert passes == bool(state.offer(pick_of(slot, at, rank)))
        waiting = [EVENTS.index(pick.match.event) for pick in state.waiting]
        if diversify == "none":
            assert sorted(slots_held(group, row)) == sorted(waiting)
        else:
            assert slots_held(group, row) == waiting  # as they came
        if waiting:
            assert group.rows.end[row] == state.end
    found, expected = verdicts_of(group, output), state.verdicts
    # The kernel names one that outranks, the state all that are held.
    assert [(v.event, v.fate, v.at_us, v.until_us) for v in found] == [
        (v.event, v.fate, v.at_us, v.until_us) for v in expected
    ]
    for verdict, same in zip(found, expected, strict=True):
        if isinstance(verdict.reason, Outranked):
            assert isinstance(same.reason, Outranked)
            assert {*verdict.reason.chosen} <= {*same.reason.chosen}
        else:
            assert verdict.reason == same.reason


@pytest.mark.parametrize(("second", "passes"), [(1, True), (2, False), (6, False), (7, True)])
def test_quiet_hours_contain_their_start_and_not_their_end(second: int, passes: bool) -> None:
    group = group_of()
    arrays = group.arrays
    put(arrays, 0, 0, second * SECOND, 0.5, 0.5)
    assert reserve_cells(arrays, 0, 1)
    assert offer_quiet(arrays, room(), 0, 0, 0) == passes
    assert group.rows.lists[0, HELD] == (not passes)


@pytest.mark.parametrize(("rank", "passes"), [(0.79, False), (0.8, True), (1.0, True)])
def test_a_rank_that_is_urgent_enough_passes(rank: float, passes: bool) -> None:
    group, output = group_of(urgent=0.8), room()
    put(group.arrays, 0, 0, 3 * SECOND, rank, rank)
    assert reserve_cells(group.arrays, 0, 1)
    assert offer_quiet(group.arrays, output, 0, 0, 0) == passes
    assert len(verdicts_of(group, output)) == (not passes)


def test_an_equal_key_gives_way_to_the_newer_one_and_not_to_an_older() -> None:
    group, output = group_of(k=1), room()
    arrays = group.arrays
    assert reserve_cells(arrays, 0, 1)
    for slot in (4, 8, 5, 9):  # of seconds 1, 2, 1 and 2, all of rank 0.5
        put(arrays, 0, slot, 3 * SECOND, 0.5, 0.5)
        assert not offer_quiet(arrays, output, 0, 0, 0)
    assert slots_held(group, 0) == [8]
    dropped = [v for v in verdicts_of(group, output) if v.fate == "dropped"]
    assert [v.event for v in dropped] == ["e04", "e05", "e09"]
    assert [str(v.reason) for v in dropped] == ["the quiet hours held better ones: e08"] * 3


@pytest.mark.parametrize("kept", [0, 1, 2, 3, 9])
def test_what_is_behind_the_first_ones_is_dropped(kept: int) -> None:
    group, output = group_of(k=3), room()
    arrays = group.arrays
    assert reserve_cells(arrays, 2, 3)
    for slot, rank in ((0, 0.9), (1, 0.6), (2, 0.3)):
        put(arrays, 0, slot, 3 * SECOND, rank, rank)
        offer_quiet(arrays, output, 2, 0, 0)
    output.progress[:] = 0
    drop_behind(arrays, output, 2, 0, kept, END)
    assert slots_held(group, 2) == [0, 1, 2][:kept]
    verdicts = verdicts_of(group, output)
    assert [verdict.event for verdict in verdicts] == ["e00", "e01", "e02"][kept:]
    assert {verdict.at_us for verdict in verdicts} <= {END}
    # Without any that is kept, there is none to name.
    named = ["e00"] if kept else []
    assert [verdict.reason for verdict in verdicts] == [Outranked(named)] * len(verdicts)
