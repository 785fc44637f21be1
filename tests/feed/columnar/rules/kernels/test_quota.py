"""The kernel of `quota` against the state machine of one subscriber, call by call."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.rules.groups import EVENTS, pick_of, put, room, rule_group

from tidings.feed.columnar.rules.group import RuleGroup
from tidings.feed.columnar.rules.kernels.held_list import list_cell, reserve_cells
from tidings.feed.columnar.rules.kernels.layout import (
    BEFORE,
    CHOSEN,
    EVENT,
    HELD,
    PASSED,
    VERDICTS,
    RuleOutput,
)
from tidings.feed.columnar.rules.kernels.quota import (
    count_choice,
    enter_period,
    may_hold,
    offer_quota,
    period_at,
)
from tidings.feed.columnar.rules.kernels.rings import reserve_rank
from tidings.feed.columnar.rules.verdicts import VerdictColumns
from tidings.feed.single import PolicyChooser
from tidings.rules.quota import Quota, QuotaState
from tidings.rules.verdict import Verdict

SECOND = 1_000_000
RANKS = (0.0, 0.25, 0.5, 0.75, 1.0)


def group_of(quota: dict[str, Any]) -> RuleGroup:
    """Return the rows of a quota, which know its periods from 1970 on."""
    group = rule_group([{"name": "quota", **quota}])
    group.rows.packed.learn(np.array(RANKS))
    if group.rules.calendars[0] is not None:
        group._span_tables.load(0)
    return group


def state_of(group: RuleGroup) -> QuotaState:
    [part] = group.policy.rules
    assert isinstance(part, Quota)
    return part.open(PolicyChooser(group.policy))


def verdicts_of(group: RuleGroup, output: RuleOutput) -> list[Verdict]:
    count = int(output.progress[VERDICTS])
    columns = VerdictColumns(
        output.verdicts[:count, 0],
        output.verdicts[:count],
        output.figures[:count],
        group.policy.rules,
    )
    return [verdict for _, _, verdict in columns.objects(group._tables)]


quotas = st.fixed_dictionaries(
    {
        "n": st.integers(1, 3),
        "per": st.sampled_from(["3s", "7s", "hour", "day"]),
        "pick": st.sampled_from(["best", "best", "best", "first"]),
        "urgent": st.sampled_from([None, None, 0.9]),
    }
)
offers = st.lists(
    st.tuples(
        st.integers(0, 31),
        st.sampled_from([0, 0, 1, 2, 8, 1_300, 40_000]),
        st.sampled_from(RANKS),
        st.booleans(),
    ),
    min_size=1,
    max_size=25,
)


@settings(max_examples=150)
@given(quotas, offers)
def test_it_decides_as_the_state_of_one_subscriber(
    quota: dict[str, Any], offers: list[tuple[int, int, float, bool]]
) -> None:
    """An event may also be dropped by an earlier rule: then it is counted and not offered."""
    group, output, row, now = group_of(quota), room(), 1, 0
    arrays, state = group.arrays, state_of(group)
    for slot, gap, rank, dropped in offers:
        now += gap * SECOND
        if state.deadline is not None and state.deadline <= now:
            break  # the chain releases what is due first
        if now >= 86_400 * SECOND:
            break
        put(arrays, 0, slot, now, rank, rank)
        pick = pick_of(slot, now, rank)
        assert reserve_cells(arrays, row, int(group.rows.lists[row, HELD]) + 1)
        assert reserve_rank(arrays, row)
        if not dropped:
            assert offer_quota(arrays, output, row, 0, 0) == bool(state.offer(pick))
        count_choice(arrays, row, 0, 0)
        state.chosen(pick)
        held = [list_cell(arrays, row, place) for place in range(int(group.rows.lists[row, HELD]))]
        slots = [int(group.rows.held_cell[cell, EVENT]) for cell in held]
        assert slots == [EVENTS.index(each.match.event) for each in state.waiting]
        counts = group.rows.rings[row, [PASSED, CHOSEN, BEFORE]].tolist()
        assert counts == [state.passed, state.count, state.count_before]
        assert group.rows.end[row] == state.period.end
    assert verdicts_of(group, output) == state.verdicts


@pytest.mark.parametrize(
    ("per", "us", "start", "end"),
    [
        ("3s", 0, 0, 3),
        ("3s", 3 * SECOND - 1, 0, 3),
        ("3s", 3 * SECOND, 3, 6),
        ("3s", -1, -3, 0),
        ("hour", 3_600 * SECOND - 1, 0, 3_600),
        ("hour", 3_600 * SECOND, 3_600, 7_200),
        ("day", 5, 0, 86_400),
    ],
)
def test_a_period_contains_its_start(per: str, us: int, start: int, end: int) -> None:
    arrays = group_of({"n": 1, "per": per}).arrays
    assert period_at(arrays, 0, us) == (start * SECOND, end * SECOND)


def test_only_the_period_just_before_counts() -> None:
    group = group_of({"n": 1, "per": "3s"})
    arrays, rings = group.arrays, group.rows.rings
    enter_period(arrays, 0, 0, 0)
    assert rings[0, [PASSED, CHOSEN, BEFORE]].tolist() == [0, 0, 0]
    rings[0, [PASSED, CHOSEN]] = 1, 5
    enter_period(arrays, 0, 0, 3 * SECOND - 1)  # the same one
    assert rings[0, [PASSED, CHOSEN, BEFORE]].tolist() == [1, 5, 0]
    enter_period(arrays, 0, 0, 3 * SECOND)
    assert rings[0, [PASSED, CHOSEN, BEFORE]].tolist() == [0, 0, 5]
    rings[0, CHOSEN] = 7
    enter_period(arrays, 0, 0, 9 * SECOND)  # one was left out
    assert rings[0, [PASSED, CHOSEN, BEFORE]].tolist() == [0, 0, 0]
    assert group.rows.end[0] == 12 * SECOND


def test_nothing_is_held_before_a_period_has_shown_what_comes() -> None:
    group = group_of({"n": 1, "per": "3s"})
    arrays = group.arrays
    assert not may_hold(arrays, 0, 0, 0)
    enter_period(arrays, 0, 0, 0)
    group.rows.rings[0, CHOSEN] = 1
    assert not may_hold(arrays, 0, 0, 3 * SECOND - 1)
    assert may_hold(arrays, 0, 0, 3 * SECOND)  # what was chosen is then of the one before
    group.rows.rings[0, [CHOSEN, BEFORE]] = 0, 1
    assert may_hold(arrays, 0, 0, 3 * SECOND - 1)
    assert not may_hold(arrays, 1, 0, 0)  # another row


def test_rows_count_for_themselves() -> None:
    group, output = group_of({"n": 1, "per": "day"}), room()
    arrays = group.arrays
    put(arrays, 0, 2, 8, 0.5, 0.5)
    assert offer_quota(arrays, output, 0, 0, 0)
    assert not offer_quota(arrays, output, 0, 0, 0)
    assert offer_quota(arrays, output, 2, 0, 0)
    assert group.rows.rings[:3, PASSED].tolist() == [1, 0, 1]
    [spent] = verdicts_of(group, output)
    assert str(spent.reason) == "1 has passed in the period that ends at 1970-01-02T00:00:00Z"


def offered(group: RuleGroup, output: RuleOutput, slot: int, at: int, rank: float) -> bool:
    """Offer an event to a quota and count it, as the chain does."""
    arrays = group.arrays
    put(arrays, 0, slot, at, rank, rank)
    assert reserve_cells(arrays, 0, int(group.rows.lists[0, HELD]) + 1)
    assert reserve_rank(arrays, 0)
    passes = offer_quota(arrays, output, 0, 0, 0)
    count_choice(arrays, 0, 0, 0)
    return passes


def busy(n: int, urgent: float | None = None) -> tuple[RuleGroup, RuleOutput]:
    """Return a quota for periods of four seconds, in the first of which four best ranks came."""
    group, output = group_of({"n": n, "per": "4s", "urgent": urgent}), room()
    for slot in range(4):
        offered(group, output, slot, 0, 1.0)
    output.progress[VERDICTS] = 0
    return group, output


@pytest.mark.parametrize(("at", "passes"), [(5, False), (6, False), (7, True)])
def test_as_many_better_ones_as_are_left_are_waited_for(at: int, passes: bool) -> None:
    """Of four expected in four seconds, two are expected in the last two, and one in the last."""
    group, output = busy(2)
    assert offered(group, output, 9, at * SECOND, 0.5) == passes


@pytest.mark.parametrize(("rank", "passes"), [(0.5, False), (0.75, True)])
def test_an_urgent_rank_is_not_held(rank: float, passes: bool) -> None:
    group, output = busy(2, urgent=0.75)
    assert offered(group, output, 9, 4 * SECOND, rank) == passes


def test_one_that_passes_takes_the_place_of_the_worst_that_is_held() -> None:
    group, output = busy(2)
    assert not offered(group, output, 9, 4 * SECOND, 0.25)
    assert not offered(group, output, 10, 4 * SECOND, 0.5)
    assert group.rows.lists[0, HELD] == 2
    assert offered(group, output, 11, 4 * SECOND, 1.0)
    assert group.rows.lists[0, HELD] == 1
    assert [str(verdict.reason) for verdict in verdicts_of(group, output)] == [
        "4 better ones are expected, with 2 left of the quota",
        "3.2 better ones are expected, with 2 left of the quota",
        "better ones take all 1 left of the quota since e11 came",
    ]
