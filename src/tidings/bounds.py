"""What the limits say of a policy's window and diversifier, checked where the policy is made."""

from typing import Any, Final

from tidings.diversify.dense import check_sets
from tidings.diversify.lsh import MaxDivRelLsh
from tidings.diversify.neighbourhood import Disc
from tidings.diversify.none import NoDiversity
from tidings.diversify.optimal import Optimal
from tidings.errors import InvalidPolicy
from tidings.limits import UNLIMITED, Limits
from tidings.score.freshness import NoDecay
from tidings.values import format_duration
from tidings.window.length import Length

_BY_ORDER: Final = frozenset({NoDiversity, Disc, MaxDivRelLsh})
"""Diversifiers for which only the order of ranks counts, which no decay changes."""


def is_steady(decay: Any, diversify: Any) -> bool:
    """Tell whether the same events give the same choice, however much time passes."""
    return type(decay) is NoDecay or type(diversify) in _BY_ORDER


def check_window(window: Any, limits: Limits, *, steady: bool = True) -> None:
    """Refuse a window that is longer, or that is chosen from more often, than the limits allow.

    A steady choice is made anew only where the events change, whatever the number of steps.
    """
    for name in ("length", "expires", "step"):
        size = getattr(window, name, None)
        if isinstance(size, Length):
            _check_length(f"{window.name}: {name}", size, limits)
    if window.name == "periodic":
        _check_period("periodic: length", window.length, limits)
    if window.name == "jumping":
        _check_period("jumping: step", window.step, limits)
        _check_steps(window.length, window.step, limits)
        if not steady and window.step.us is not None:
            steps = -(-window.length.us // window.step.us)
            limits.check("decayed_steps", steps, "length / step with a decay", InvalidPolicy)


def _check_length(what: str, size: Length, limits: Limits) -> None:
    if size.us is not None:
        limits.check("window_us", size.us, f"{what} in microseconds", InvalidPolicy)
    else:
        limits.check("window_events", size.count or 0, what, InvalidPolicy)


def _check_period(what: str, period: Length, limits: Limits) -> None:
    if period.us is not None and period.us < limits.period_us:
        least = format_duration(limits.period_us)
        raise InvalidPolicy(f"{what} is {period.to_form()}, below the limit period_us = {least}")


def _check_steps(length: Length, step: Length, limits: Limits) -> None:
    for whole, part in ((length.us, step.us), (length.count, step.count)):
        if whole is not None and part is not None:
            limits.check("window_steps", -(-whole // part), "length / step", InvalidPolicy)


def within_limits(diversify: Any, k: int, window: Any, limits: Limits) -> Any:
    """Return the diversifier, bound to the limits that are checked when it chooses."""
    if isinstance(diversify, MaxDivRelLsh):
        tables, rows = diversify.shape
        limits.check("lsh_cells", tables * rows, "tables times rows", InvalidPolicy)
    if not isinstance(diversify, Optimal):
        return diversify
    if window.name != "history":  # which swaps single events, and never chooses sets
        _check_optimal(k, most_held(window, k), limits)
    return diversify.bounded(limits.optimal_sets)


def _check_optimal(k: int, most: int | None, limits: Limits) -> None:
    if most is None:
        if limits.optimal_events != UNLIMITED:
            raise InvalidPolicy(
                "optimal needs a window with a length in events, since the limit optimal_events = "
                f"{limits.optimal_events} applies"
            )
        return
    limits.check("optimal_events", most, "the window of optimal, in events,", InvalidPolicy)
    check_sets(most, k, limits.optimal_sets, InvalidPolicy)


def most_held(window: Any, k: int) -> int | None:
    """Return how many events a choice of this window may look at; None if nothing bounds them."""
    size = getattr(window, "expires" if window.name == "continuous" else "length", None)
    if not isinstance(size, Length) or size.count is None:
        return None
    if window.name == "periodic" and window.wait:
        return size.count + k  # a period with fewer than k passes its events on to the next
    return size.count
