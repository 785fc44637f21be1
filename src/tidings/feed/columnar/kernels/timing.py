"""How time counts in windows: positions on an axis, the ends of periods and steps, and decay."""

import math
from typing import Final

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner, kernel
from tidings.feed.columnar.kernels.layout import (
    END,
    ENDS,
    MATCHING,
    NEVER,
    PUBLISHED,
    SEEN,
    TIME,
    DecayCodes,
    EventColumns,
    Output,
    PolicyCodes,
)
from tidings.window.protocol import Moment

# Positions on the axis of a window or of its steps, and the ends of periods and steps.
#
# Windows are measured in time, in publications or in matches. The n-th publication and the n-th
# match have position n - 1, an event published at t microseconds has position t. A window that ends
# at `stop` holds the positions [stop - length, stop); periods and steps end at origin + i * step.


@inlined
def event_position(events: EventColumns, axis: int, slot: int) -> int:
    """Return the position of an event on the axis of time or of publications."""
    return int64(events.us[slot]) if axis == TIME else int64(events.sequence[slot]) - 1


@inlined
def match_position(events: EventColumns, axis: int, slot: int, mark: int) -> int:
    """Return the position of a match, whose mark is twice its number among those seen."""
    return int64(mark >> 1) - 1 if axis == MATCHING else event_position(events, axis, slot)


@inlined
def axis_end(axis: int, seen: int, us: int, sequence: int) -> int:
    """Return the first position after now."""
    if axis == TIME:
        return us + 1
    return sequence if axis == PUBLISHED else seen


@inlined
def has_passed(axis: int, end: int, seen: int, us: int, sequence: int) -> bool:
    """Return whether no match before `end` can arrive any more."""
    # Later events have at least the time `us`, but higher sequences and numbers than now.
    return end <= us if axis == TIME else end <= axis_end(axis, seen, us, sequence)


@inlined
def is_due(head: Int64s, policy: PolicyCodes, row: int, now: Moment) -> bool:
    """Return whether the open period or step of a row has ended."""
    end, axis = head[row, END], policy.step_axis
    return end != NEVER and has_passed(axis, end, head[row, SEEN], now.us, now.sequence)


@inlined
def next_step(end: int, policy: PolicyCodes, oldest: int, now: int) -> int:
    """Return the next step at which an unchanged window can choose something else.

    Without new matches the choice changes only when the oldest position leaves the window, so the
    steps before that are skipped; but not beyond the first step after `now`, since a match may
    arrive by then.
    """
    leaving = (oldest + policy.length - end) // policy.step + 1
    passed = (now - end) // policy.step + 1
    return end + policy.step * max(1, min(leaving, passed))


@inlined
def end_after(ends: Int64s, us: int) -> int:
    """Return the first end after an instant; there must be one."""
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) >> 1
        if ends[middle] > us:
            high = middle
        else:
            low = middle + 1
    return int64(ends[low])


@inlined
def open_end(head: Int64s, events: EventColumns, policy: PolicyCodes, row: int, slot: int) -> None:
    """Set the end of the period or step that the newest match lies in, if none is open."""
    if head[row, END] == NEVER:
        axis, origin, step = policy.step_axis, policy.origin, policy.step
        newest = head[row, SEEN] - 1 if axis == MATCHING else event_position(events, axis, slot)
        if len(events.period_ends) > 0:
            head[row, END] = end_after(events.period_ends, newest)
        else:
            head[row, END] = origin + ((newest - origin) // step + 1) * step


@inlined
def report_end(head: Int64s, output: Output, row: int, before: int) -> None:
    """Report the end of a row if it has changed, so that the caller can schedule it."""
    end, progress = head[row, END], output.progress
    if end != before and end != NEVER:  # noqa: PLR1714 - compiled
        output.ends[progress[ENDS], 0] = row
        output.ends[progress[ENDS], 1] = end
        progress[ENDS] += 1


# Forward decay over arrays of windows: the keys and fresh ranks of `tidings.score.decay`.
#
#     key(score, t)        = ln(score) + ln g(t - L)          sorts fresh scores at every time
#     fresh(score, t, now) = score * g(t - L) / g(now - L)
#
# with the landmark L, in seconds, and g(x) = exp(rate * x), x ** exponent or ln(1 + x). The kernels
# make the same calls of the C library in the same order, so every value is the same to the last
# bit.

NONE, EXPONENTIAL, POLYNOMIAL, LOGARITHMIC = range(4)
SECOND_US: Final = 1_000_000


@inner
def log_or_least(x: float) -> float:
    """Return ln x, or minus infinity where x is not positive."""
    return math.log(x) if x > 0 else -math.inf


@inner
def order_key(decay: DecayCodes, score: float, us: int) -> float:
    """Return the key of a score; without decay, the score itself."""
    if decay.kind == NONE:
        return score
    if score <= 0:
        return -math.inf
    age_s = us / SECOND_US - decay.landmark
    # Exponential decay is a line in the log domain: no score overflows, however long the stream.
    if decay.kind == EXPONENTIAL:
        return log_or_least(score) + decay.parameter * age_s
    if decay.kind == POLYNOMIAL:
        return log_or_least(score) + decay.parameter * log_or_least(age_s)
    return log_or_least(score) + log_or_least(math.log1p(max(0.0, age_s)))


@inner
def share_left(then: float, now: float) -> float:
    """Return then / now within [0, 1]; nothing has faded where `now` is not after the landmark."""
    return min(1.0, max(0.0, then) / now) if now > 0 else 1.0


@inner
def fresh_rank(decay: DecayCodes, score: float, us: int, now_us: int) -> float:
    """Return the fresh score at `now_us`."""
    if decay.kind == NONE:
        return score
    if decay.kind == EXPONENTIAL:
        # The landmark cancels out. An event of the future has not faded.
        age_s = max(0, now_us - us) / SECOND_US
        return score * math.exp(-decay.parameter * age_s)
    then, now = us / SECOND_US - decay.landmark, now_us / SECOND_US - decay.landmark
    if decay.kind == POLYNOMIAL:
        return score * math.pow(share_left(then, now), decay.parameter)
    then, now = math.log1p(max(0.0, then)), math.log1p(max(0.0, now))
    return score * share_left(then, now)


@kernel
def order_keys(decay: DecayCodes, scores: Float64s, us: Int64s, keys: Float64s) -> None:
    """Write the keys of many scores."""
    for i in range(len(scores)):
        keys[i] = order_key(decay, scores[i], us[i])
