"""Picks that a rule holds: their order, their release, and their form in snapshots."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tidings.errors import InvalidForm, shown
from tidings.window import Pick, snapshot_fields
from tidings.window.snapshot_fields import FAR


def best_rank_first(pick: Pick) -> tuple[float, int, str]:
    """Return the sort key: higher rank, then newer, then smaller id."""
    event = pick.match.event
    return (-pick.rank, -event.published_us, event.id)


def is_urgent(pick: Pick, urgent: float | None) -> bool:
    """Return whether a pick is too urgent to be held."""
    return urgent is not None and pick.rank >= urgent


def released(picks: Sequence[Pick], at_us: int) -> list[Pick]:
    """Return picks that are delivered together, later than the window chose them."""
    return [
        replace(pick, position=position, at_us=at_us)
        for position, pick in enumerate(picks, start=1)
    ]


def pick_form(pick: Pick) -> list[Any]:
    """Return the JSON form of a held pick."""
    return [pick.match.to_dict(), pick.rank, pick.position, dict(pick.window), pick.at_us]


def read_pick(form: Sequence[Any]) -> Pick:
    """Read a held pick from its JSON form."""
    match, rank, position, window, at_us = form
    if not isinstance(window, dict):
        raise InvalidForm(f"the window of a held event must be an object, not {shown(window)}")
    return Pick(
        snapshot_fields.read_match(match),
        read_rank(rank),
        snapshot_fields.number("the position of a held event", position, 1),
        window,
        snapshot_fields.number("the time of a held event", at_us, -FAR, FAR),
    )


def read_rank(rank: object) -> float:
    """Read a rank of a snapshot."""
    if type(rank) not in (int, float) or not 0 <= rank < float("inf"):  # type: ignore[operator]
        raise InvalidForm(f"a rank must be a number of at least 0, not {shown(rank)}")
    return float(rank)  # type: ignore[arg-type]
