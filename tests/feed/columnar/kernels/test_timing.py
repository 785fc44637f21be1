"""Positions on an axis and the ends of periods and steps, compared with their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.exact_sum import PARTS, mean_without, sum_add, sum_total
from tidings.diversify import Candidate, set_divrank
from tidings.diversify.distance import Overlap
from tidings.feed.columnar.kernels import layout
from tidings.feed.columnar.kernels.layout import (
    MATCHING,
    NEVER,
    PUBLISHED,
    TIME,
    EventColumns,
    Output,
    PolicyCodes,
)
from tidings.feed.columnar.kernels.timing import (
    axis_end,
    event_position,
    fresh_rank,
    has_passed,
    is_due,
    match_position,
    next_step,
    open_end,
    order_keys,
    report_end,
)
from tidings.feed.columnar.policy_codes import decay_codes, policy_codes
from tidings.model.records import Event
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


decays = st.sampled_from(
    [
        "none",
        {"name": "exponential", "rate": 1e-5},
        {"name": "exponential", "rate": 700.0, "landmark": 1e9},
        {"name": "polynomial", "exponent": 0.5},
        {"name": "polynomial", "exponent": 3, "landmark": 100},
        "logarithmic",
        {"name": "logarithmic", "landmark": 1e9},
    ]
)
scores = st.one_of(st.sampled_from([0.0, 1.0, 1e100, 1e-300]), st.floats(0, 10))
times = st.one_of(st.integers(-(10**9), 10**9), st.integers(0, 2 * 10**15))
ranks = st.one_of(st.sampled_from([0.3, 0.1, 0.8, 0.8 + 1e-13, 1e100]), st.floats(0, 1e4))


@given(decays, st.lists(st.tuples(scores, times, st.integers(0, 10**12)), min_size=1))
def test_keys_and_fresh_ranks_are_those_of_the_decay(
    form: object, rows: list[tuple[float, int, int]]
) -> None:
    policy = Policy(decay=form)
    numbers = decay_codes(policy)
    score, us = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    keys = np.empty(len(rows))
    order_keys(numbers, score, us, keys)
    assert keys.tolist() == [policy.decay.key(score, us) for score, us, _ in rows]
    for rank, then, later in rows:
        fresh = fresh_rank(numbers, rank, then, then + later)
        assert fresh == policy.decay.fresh(rank, then, then + later)


@given(st.lists(st.floats(-1e100, 1e100), max_size=30))
def test_a_sum_is_exact_but_for_one_rounding(values: list[float]) -> None:
    partials, count = np.empty(PARTS), 0
    for value in values:
        count = sum_add(partials, count, value)
    assert sum_total(partials, count) == math.fsum(values)


def test_a_sum_that_lies_between_two_doubles_goes_to_the_even_one() -> None:
    """2^53 + 1 lies in the middle; the smallest of further terms decides."""
    partials = np.empty(PARTS)
    for values in ([2.0**53, 1.0], [2.0**53, 1.0, 1e-30], [2.0**53, 1.0, -1e-30]):
        count = 0
        for value in values:
            count = sum_add(partials, count, value)
        assert sum_total(partials, count) == math.fsum(values)


@given(st.lists(ranks, min_size=2, max_size=12), st.data())
def test_the_mean_of_a_set_is_its_divrank_without_diversity(
    values: list[float], data: st.DataObject
) -> None:
    left_out = data.draw(st.integers(-1, len(values) - 1))
    event = Event("e", {}, published_at=0)
    chosen = [Candidate(event, rank, 0) for i, rank in enumerate(values) if i != left_out]
    mean = mean_without(np.array(values), len(values), left_out, np.empty(PARTS))
    assert mean == set_divrank(chosen, 1.0, Overlap())
