"""Outcomes as the state stage emits them, written by hand."""

from datetime import UTC, datetime
from typing import Any

NAMES = (
    *("kind", "subscriber", "event", "rank", "position", "window", "matched", "sequence"),
    *("delivered_at", "content", "record", "reason"),
)


def row(**cells: Any) -> dict[str, Any]:
    return dict.fromkeys(NAMES) | cells


def delivery(subscriber: str, event: str, sequence: int = 1) -> dict[str, Any]:
    return row(
        kind="delivery",
        subscriber=subscriber,
        event=event,
        rank=0.5,
        position=1,
        window='{"name": "continuous"}',
        matched=["s1"],
        sequence=sequence,
        delivered_at=datetime(2026, 11, 15, tzinfo=UTC),
    )


def letter(kind: str, event: str | None = None) -> dict[str, Any]:
    return row(kind=kind, event=event, record='{"id": "e9"}', reason="too bad")


ROWS = [
    delivery("ann", "e1"),
    delivery("ann", "e2", 2),
    delivery("bob", "e1"),
    letter("late", "e0"),
    letter("late", "e0"),
    letter("late", "e3"),
    letter("dead"),
    letter("dead"),
    letter("dead", "e9"),
    letter("dead", "e9"),
    row(kind="account", subscriber="ann", rank=0.5, position=2),
    row(kind="dropped", subscriber="bob", event="e2", reason="the subscriber is paused"),
    row(kind="dropped", subscriber="ann", event="e4", reason="quota: 2 have passed: none is left"),
    row(kind="dropped", subscriber="bob", event="e4", reason="quota: 1 has passed"),
    row(kind="held", subscriber="ann", reason="quota", position=3),
    row(kind="held", subscriber="ann", reason="quiet", position=1),
    row(kind="released", subscriber="bob", reason="quota", position=2),
]
