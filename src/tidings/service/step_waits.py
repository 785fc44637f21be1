"""Requests that wait for the pipeline in the event loop, without holding a thread."""

import asyncio
from collections.abc import Callable

from tidings.store import EngineStep
from tidings.store.engine_log import EngineLog

IsEnough = Callable[[EngineStep], bool]


class StepWaits:
    """The requests that wait for one pipeline; any thread calls `look` after each commit."""

    def __init__(self, log: EngineLog) -> None:
        self._log = log
        self._waiting: dict[asyncio.Future[None], IsEnough] = {}  # changed by the event loop only

    async def until(self, is_enough: IsEnough, seconds: float) -> bool:
        """Wait until the last step of the pipeline satisfies a condition.

        Return whether it does.
        """
        reached = asyncio.get_running_loop().create_future()
        self._waiting[reached] = is_enough
        try:
            # `look` sees every step that is written from now on; this check sees earlier ones.
            if is_enough(await asyncio.to_thread(self._log.last)):
                return True
            done, _ = await asyncio.wait([reached], timeout=seconds)
            return bool(done)
        finally:
            del self._waiting[reached]

    def look(self) -> None:
        """Wake the requests that the last step satisfies; one query serves all of them."""
        for loop in {reached.get_loop() for reached in list(self._waiting)}:
            loop.call_soon_threadsafe(self._wake, self._log.last())

    def _wake(self, step: EngineStep) -> None:
        for reached, is_enough in self._waiting.items():
            if not reached.done() and is_enough(step):
                reached.set_result(None)
