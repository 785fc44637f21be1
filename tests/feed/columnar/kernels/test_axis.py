"""Positions on an axis and the ends of periods and steps, compared with their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.feed.columnar.kernels import layout
from tidings.feed.columnar.kernels.axis import (
    axis_end,
    event_position,
    has_passed,
    is_due,
    match_position,
    next_step,
    open_end,
    report_end,
)
from tidings.feed.columnar.kernels.layout import (
    MATCHING,
    NEVER,
    PUBLISHED,
    TIME,
    EventColumns,
    Output,
    PolicyCodes,
)
from tidings.feed.columnar.policy_codes import policy_codes
from tidings.policy import Policy
from tidings.window import Moment

EVENTS = EventColumns(np.array([50, 70]), np.array([3, 9]), np.array([0, 1]), np.zeros(0, np.int64))


def jumping(length: int, step: int, axis: int = TIME, origin: int = 0) -> PolicyCodes:
    window = {"name": "jumping", "length": length, "step": step}
    return policy_codes(Policy(window=window))._replace(axis=axis, step_axis=axis, origin=origin)


def head_of(seen: int, end: int) -> np.ndarray:
    head = np.zeros((1, layout.RANKED_WIDTH), np.int64)
    head[0, [layout.SEEN, layout.END]] = seen, end
    return head


def test_positions_count_from_zero() -> None:
    assert [event_position(EVENTS, TIME, slot) for slot in (0, 1)] == [50, 70]
    assert [event_position(EVENTS, PUBLISHED, slot) for slot in (0, 1)] == [2, 8]
    assert match_position(EVENTS, MATCHING, 0, 2 * 5 + 1) == 4
    assert match_position(EVENTS, TIME, 1, 2 * 5 + 1) == 70


@pytest.mark.parametrize(("axis", "end"), [(TIME, 71), (PUBLISHED, 9), (MATCHING, 4)])
def test_the_axis_ends_after_the_newest_position(axis: int, end: int) -> None:
    assert axis_end(axis, 4, 70, 9) == end


@pytest.mark.parametrize("axis", [TIME, PUBLISHED, MATCHING])
@given(st.integers(0, 20), st.integers(0, 20))
def test_an_end_has_passed_when_no_match_before_it_can_arrive(
    axis: int, end: int, now: int
) -> None:
    """Later events have at least the time of now, and higher sequences and numbers."""
    next_position = now
    assert has_passed(axis, end, now, now, now) == (next_position >= end)
    codes, head = jumping(4, 2, axis), head_of(now, end)
    assert is_due(head, codes, 0, Moment(now, now)) == (next_position >= end)
    assert not is_due(head_of(now, NEVER), codes, 0, Moment(now, now))


@given(st.integers(1, 9), st.integers(0, 9), st.integers(0, 30), st.integers(0, 40))
def test_steps_are_skipped_only_while_the_oldest_match_stays(
    step: int, more: int, oldest: int, wait: int
) -> None:
    length = step + more
    end = (oldest // step + 1) * step
    now = end + wait
    following = next_step(end, jumping(length, step), oldest, now)
    stops = [end + i * step for i in range(1, 100)]
    expected = next(stop for stop in stops if stop - length > oldest or stop > now)
    assert following == expected


@given(st.integers(-9, 9), st.integers(1, 9), st.integers(0, 60))
def test_an_end_is_the_first_aligned_position_after_the_newest_match(
    origin: int, step: int, us: int
) -> None:
    events = EVENTS._replace(us=np.array([us]))
    head = head_of(1, NEVER)
    open_end(head, events, jumping(step, step, origin=origin), 0, 0)
    end = int(head[0, layout.END])
    assert us < end <= us + step
    assert (end - origin) % step == 0
    open_end(head, events._replace(us=np.array([us + 100])), jumping(step, step), 0, 0)
    assert head[0, layout.END] == end  # an open end stays


def test_only_a_new_end_is_reported() -> None:
    output = Output(
        np.zeros((1, layout.DELIVERY_WIDTH), np.int64),
        np.zeros(1),
        np.zeros(1),
        np.zeros((3, 2), np.int64),
        np.zeros(3, np.int64),
    )
    for before, end in ((NEVER, 7), (7, 7), (7, NEVER), (7, 9)):
        report_end(head_of(1, end), output, 0, before)
    assert output.progress[layout.ENDS] == 2
    assert output.ends[:2].tolist() == [[0, 7], [0, 9]]
