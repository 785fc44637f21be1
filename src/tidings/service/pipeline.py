"""The pipeline of a service: takes publications and changes from a store, and writes deliveries.

Each step and its deliveries are written in one transaction. After a crash, the log says how far the
engine had come, so nothing is lost and nothing is done twice.
"""

import logging
import time
from collections.abc import Callable
from threading import Event as Flag
from typing import Final

from tidings.errors import StoreError
from tidings.model.values import SECOND_US
from tidings.service.durable_engine import DurableEngine, StepOutput, warm_up
from tidings.service.retention import Retention
from tidings.store import EngineStep, Store
from tidings.store.append_batch import BatchAppend
from tidings.store.engine_log import QUERY

_LOG: Final = logging.getLogger(__name__)
STEP_EVENTS: Final = 1_000
"""The maximum number of publications in one step."""
PATIENCE_US: Final = 2 * SECOND_US
"""How far the clock of the stream lags behind, so that publications in transit are not late."""
_PACE_S: Final = 0.03
"""The minimum time between steps: each is a commit that publishers wait for, whatever its size."""
_TICK_S: Final = 1.0
_CHECKPOINT_EVERY_S: Final = 10.0
_NOTHING: Final = StepOutput([], [], [])
_SHARE: Final = 50
"""A checkpoint is due after this multiple of the time that the last one took."""


class Pipeline:
    """Runs the durable engine of a store. Several may run: each step is taken by one of them."""

    def __init__(
        self,
        store: Store,
        lateness: str = "0s",
        clock: Callable[[], float] = time.time,
        keep_us: int | None = None,
    ) -> None:
        self._store, self._lateness, self._clock = store, lateness, clock
        self._retention = Retention(store, keep_us)
        warm_up()
        self._durable = DurableEngine(store, lateness)
        self._durable.catch_up()
        self._clock_us: int | None = None
        self._saved_at = self._ticked_at = float("-inf")
        self._cost_s = 0.0

    def run(self, stop: Flag) -> None:
        """Take steps until the flag is set; then write a checkpoint, for a quick restart."""
        watch = self._store.database.watch()
        try:
            while not stop.is_set():
                began = time.monotonic()
                try:
                    if self.run_once():
                        stop.wait(max(0.0, began + _PACE_S - time.monotonic()))
                    else:
                        self._retention.apply_if_due()
                        watch.wait(_TICK_S)
                except StoreError as error:
                    _LOG.warning("the pipeline waits for its store: %s", error)
                    stop.wait(_TICK_S)
                    self._begin_again()
            self.save()
        finally:
            watch.close()

    def run_once(self) -> bool:
        """Process everything pending as one step; return whether there was anything."""
        durable, log = self._durable, self._store.log
        now_us = int(self._clock() * SECOND_US) - PATIENCE_US
        pending = log.pending(durable.step, STEP_EVENTS)
        # Waiting publications come first: if the clock passed them, they would be late.
        output = _NOTHING if pending.publications else self._advance_clock(now_us)
        if not (
            output.deliveries or pending.publications or pending.version > durable.step.version
        ):
            return False
        upto = pending.publications[-1].number if pending.publications else durable.step.upto
        number = durable.step.number + 1
        # The engine has already reached this time, and so will any process that repeats the step.
        step = EngineStep(number, self._clock_us, pending.version, upto)
        more = durable.run(step._replace(clock_us=None), pending.publications)
        durable.step = step
        append = BatchAppend.of(
            QUERY,
            number,
            output.deliveries + more.deliveries,
            late=output.late + more.late,
            dead=output.dead + more.dead,
        )
        if not log.append(step, append):
            _LOG.info("another pipeline has taken step %d", number)
            self._begin_again()
        elif self._is_checkpoint_due():
            self.save()
        return True

    def save(self) -> None:
        """Write a checkpoint."""
        if self._durable.step.number:
            began = time.monotonic()
            self._store.log.save(self._durable.checkpoint())
            self._saved_at = time.monotonic()
            self._cost_s = self._saved_at - began

    def _begin_again(self) -> None:
        """Return to the last written state, dropping a step that was taken but not written."""
        self._durable = DurableEngine(self._store, self._lateness)
        self._durable.catch_up()
        self._clock_us = None

    def _advance_clock(self, now_us: int) -> StepOutput:
        """Advance the engine to a time, once a second, if some policy depends on time.

        An advance that delivers nothing is not written until the next step.
        """
        if not self._durable.needs_clock or time.monotonic() - self._ticked_at < _TICK_S:
            return _NOTHING
        self._ticked_at = time.monotonic()
        step = self._durable.step
        output = self._durable.run(step._replace(clock_us=now_us), ())
        self._durable.step, self._clock_us = step, now_us
        return output

    def _is_checkpoint_due(self) -> bool:
        pause_s = max(_CHECKPOINT_EVERY_S, _SHARE * self._cost_s)
        return time.monotonic() - self._saved_at >= pause_s
