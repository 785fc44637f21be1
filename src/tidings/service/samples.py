"""The figures of a tenant over time: a ring buffer of samples in memory, and its health.

The ring buffer belongs to the process, and a restart starts a new one. To keep figures longer, use
a monitoring system that reads `/metrics`.
"""

import time
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any, Final, NamedTuple

from tidings.model.values import SECOND_US, format_time
from tidings.service.metrics import TenantMetrics
from tidings.store import Store
from tidings.store.figures import StoreFigures, read_figures

EVERY_S: Final = 5.0
KEPT: Final = 720
"""Samples of one hour."""
_STALLED_S: Final = 15.0
"""A pipeline that processes nothing for this long although something is waiting is stalled."""


class Sample(NamedTuple):
    """The figures of one moment; counters such as published and taken only ever increase."""

    at_us: int
    published: int
    taken: int
    delivered: int
    waiting: int
    lag_s: float
    late: int
    dead: int
    outbox: int
    requests: int


class Sampler:
    """Takes a sample of a store every few seconds."""

    def __init__(
        self, store: Store, metrics: TenantMetrics, clock: Callable[[], float] = time.time
    ) -> None:
        self._store, self._metrics, self._clock = store, metrics, clock
        self._samples: deque[Sample] = deque(maxlen=KEPT)
        self._moved_at, self._taken = clock(), 0
        self._lock = Lock()

    def take_if_due(self) -> None:
        """Take a sample if the last one is old enough."""
        last_us = self._samples[-1].at_us if self._samples else None
        if last_us is None or self._clock() - last_us / SECOND_US >= EVERY_S:
            self.take()

    def take(self) -> StoreFigures:
        """Take a sample; return all figures of the store."""
        figures = read_figures(self._store.database)
        now = self._clock()
        now_us = int(now * SECOND_US)
        with self._lock:
            if figures.taken != self._taken or not figures.waiting:
                self._moved_at, self._taken = now, figures.taken
            if self._samples and now_us - self._samples[-1].at_us < EVERY_S * SECOND_US:
                return figures
            self._samples.append(
                Sample(
                    now_us,
                    figures.published,
                    figures.taken,
                    figures.delivered,
                    figures.waiting,
                    figures.lag_s(now_us),
                    figures.late,
                    figures.dead,
                    figures.webhooks.outbox,
                    self._metrics.total_requests(),
                )
            )
        return figures

    def pipeline_state(self, figures: StoreFigures) -> str:
        """Return whether the pipeline is idle, working, or stalled."""
        if not figures.waiting:
            return "idle"
        return "working" if self._clock() - self._moved_at < _STALLED_S else "stalled"

    def to_dict(self) -> dict[str, Any]:
        """Return the samples as columns, the oldest first."""
        with self._lock:
            samples = list(self._samples)
        columns = {name: [getattr(sample, name) for sample in samples] for name in Sample._fields}
        return {"times": list(map(format_time, columns.pop("at_us"))), **columns}
