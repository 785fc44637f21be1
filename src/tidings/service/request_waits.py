"""Requests that wait in the event loop, without holding a thread.

Some wait for a step of the pipeline (`StepWaits`), and expensive questions for their turn
(`QuestionSlots`), so that threads remain for all other requests.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, ParamSpec, TypeVar

from fastapi.concurrency import run_in_threadpool

from tidings.service.problems import HttpProblem
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


_AT_ONCE: Final = 4
"""How many questions of one tenant are answered at a time: a few of the 40 threads."""
_OWN_AT_ONCE: Final = 2
"""How many of these may be from one caller."""
_OWN_ASKED: Final = 50
"""The maximum number of unanswered questions of one caller, including those in progress."""

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class _Caller:
    """The questions of one caller: how many are unanswered, and slots for those in progress."""

    asked: int = 0
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_OWN_AT_ONCE))


class QuestionSlots:
    """Slots for the questions of one tenant; a question that waits for one holds no thread."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._callers: dict[str, _Caller] = {}  # changed by the event loop only

    async def run(
        self, caller: str, answer: Callable[P, T], *arguments: P.args, **options: P.kwargs
    ) -> T:
        """Return the answer to a question of a caller, computed in a thread when it is its turn."""
        own = self._callers.setdefault(caller, _Caller())
        if own.asked >= _OWN_ASKED:
            raise HttpProblem(
                429,
                f"{_OWN_ASKED} questions are still unanswered; try again later",
                headers={"Retry-After": "1"},
            )
        own.asked += 1
        try:
            async with own.slots, self._slots:
                return await run_in_threadpool(answer, *arguments, **options)
        finally:
            own.asked -= 1
            if not own.asked:
                del self._callers[caller]
