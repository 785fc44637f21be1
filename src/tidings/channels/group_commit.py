"""Group commit: concurrent reads and writes of many tasks share one transaction.

A commit waits for the disk, and takes more processor time than a few small changes.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from tidings.errors import StoreError
from tidings.store.protocol import Session, Transactions

_AWAY: Final = 2
T = TypeVar("T")
Work = Callable[[Transactions], T]


class GroupCommit:
    """The reads and writes of the tasks of one event loop.

    What is asked for while a transaction is in progress is done in the next one. A write is durable
    when its task continues.
    """

    def __init__(self, database: Transactions) -> None:
        self._reads, self._writes = _Group(database.read), _Group(database.write)

    async def read(self, work: Work[T]) -> T:
        """Return the result of read-only work."""
        result: T = await self._reads.run(work)
        return result

    async def write(self, work: Work[T]) -> T:
        """Return the result of work that writes; if it raises, it has changed nothing."""
        result: T = await self._writes.run(work)
        return result


class _Group:
    """Work that waits for the transaction in progress to end."""

    def __init__(self, transact: Callable[[Callable[[Session], Any]], Any]) -> None:
        self._transact = transact
        self._waiting = list[tuple[Work[Any], asyncio.Future[Any]]]()
        self._task: asyncio.Task[None] | None = None

    async def run(self, work: Work[Any]) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run_all())
        return await future

    async def _run_all(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            works = [work for work, _ in waiting]
            try:
                results = await asyncio.to_thread(self._transact, partial(_work_on, works))
            except Exception:  # noqa: BLE001 - one of them may have failed: try each
                results = await self._one_by_one(works)
            for (_, future), result in zip(waiting, results, strict=True):
                if future.done():  # its task was cancelled
                    continue
                if isinstance(result, BaseException):
                    future.set_exception(result)
                else:
                    future.set_result(result)

    async def _one_by_one(self, works: Sequence[Work[Any]]) -> list[Any]:
        """Return the result of each work in a transaction of its own, or its error.

        After the store has refused two in a row, it counts as away: the others get the same error.
        """
        results = list[Any]()
        for work in works:
            if len(results) >= _AWAY and all(isinstance(e, StoreError) for e in results[-_AWAY:]):
                results.append(results[-1])
                continue
            try:
                results += await asyncio.to_thread(self._transact, partial(_work_on, [work]))
            except Exception as error:  # noqa: BLE001 - it belongs to the task that asked for it
                results.append(error)
        return results


class _InProgress:
    """A database whose transactions are all parts of one that is in progress."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def read(self, work: Callable[[Session], Any]) -> Any:
        return work(self._session)

    def write(self, work: Callable[[Session], Any]) -> Any:
        return work(self._session)


def _work_on(works: Sequence[Work[Any]], session: Session) -> list[Any]:
    database: Transactions = _InProgress(session)
    return [work(database) for work in works]
