"""Work in the background of an index that changes: one piece at a time, and its failure told."""

from collections.abc import Callable
from threading import Lock, Thread

from tidings.errors import TidingsError


class Rebuild:
    """At most one rebuild under way, and the lock that it shares with all changes.

    `begin`, `done` and `writable` are for who holds the lock. What fails is told once, to the next
    who would change something.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.count = 0
        self.running = False
        self._thread: Thread | None = None
        self._failure: Exception | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether no more changes are taken."""
        return self._closed

    def begin(self, work: Callable[[], None]) -> None:
        """Start the work on a thread, unless some is under way; it calls `done` when it swaps.

        A thread that cannot start is a rebuild that failed: what changed before it stays.
        """
        if self.running:
            return
        self.running = True
        self._thread = Thread(target=self._run, args=(work,), daemon=True)
        try:
            self._thread.start()
        except RuntimeError as failure:
            self._fail(failure)

    def done(self) -> None:
        """Say that the work has ended."""
        self.running, self._thread = False, None

    def writable(self) -> None:
        """Refuse a change if there can be none, or once if the last rebuild failed."""
        if self._closed:
            raise TidingsError("the index is closed and takes no changes")
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise TidingsError(
                f"the last rebuild failed ({failure!r}); nothing is lost, and it is tried again "
                "after the next change"
            ) from failure

    def settle(self) -> None:
        """Wait until no rebuild is under way."""
        with self.lock:  # who holds it may be about to start the thread
            thread = self._thread
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """Take no more changes, and wait for a rebuild under way."""
        with self.lock:
            self._closed = True
        self.settle()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as failure:  # noqa: BLE001 - whatever it is, the next change tells it
            with self.lock:
                self._fail(failure)

    def _fail(self, failure: Exception) -> None:
        self._failure = failure
        self.done()
