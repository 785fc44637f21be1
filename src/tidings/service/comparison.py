"""The comparison of what one subscriber gets from the same publications, as saved and as tried."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np

from tidings.engine.subscriber_replay import RecordedSteps, ReplayResult
from tidings.model.records import Delivery
from tidings.model.values import SECOND_US, format_time

_BARS: Final = 48
"""Intervals of a timeline."""


def compare(tried: ReplayResult, saved: ReplayResult, recording: RecordedSteps, limit: int) -> Any:
    """Return figures of both, what comes, goes and stays, and when; lists begin with the newest.

    An event stays if both deliver it, at whatever time.
    """
    had = {delivery.event for delivery in saved.deliveries}
    has = {delivery.event for delivery in tried.deliveries}
    changes = {
        "comes": [each for each in tried.deliveries if each.event not in had],
        "goes": [each for each in saved.deliveries if each.event not in has],
        "stays": [each for each in tried.deliveries if each.event in had],
    }
    return {
        "tried": tried.report.to_dict(),
        "saved": saved.report.to_dict(),
        **{name: _listed(deliveries, limit) for name, deliveries in changes.items()},
        "timeline": _timeline(tried, saved, recording),
    }


def _listed(deliveries: Sequence[Delivery], limit: int) -> dict[str, Any]:
    newest = islice(reversed(deliveries), limit)
    return {"count": len(deliveries), "items": [delivery.to_dict() for delivery in newest]}


def _timeline(tried: ReplayResult, saved: ReplayResult, recording: RecordedSteps) -> Any:
    """Return how many were published and delivered in equal intervals of time; None if too few."""
    if not recording.steps:
        return None
    published = [step.now.us for step in recording.steps]
    delivered = [each.delivered_us for each in (*tried.deliveries, *saved.deliveries)]
    start, end = published[0], max([published[-1], *delivered])
    if start == end:
        return None

    def counts(times: Iterable[int]) -> list[int]:
        bars, _ = np.histogram(np.fromiter(times, np.int64), _BARS, (start, end))
        return [int(bar) for bar in bars]

    return {
        "start": format_time(start),
        "seconds": (end - start) / SECOND_US / _BARS,
        "published": counts(published),
        "tried": counts(delivery.delivered_us for delivery in tried.deliveries),
        "saved": counts(delivery.delivered_us for delivery in saved.deliveries),
    }
