"""Background merges for indexes that change while they answer: base + delta, one merge at a time.

    writers --lock--> delta ----.
                                 +--> a thread builds the next base, takes the lock, swaps
    readers <-- snapshot of base and delta

Readers take one immutable snapshot and never wait. Writers change the delta under `lock`, publish
the next snapshot, and start a merge when the delta is large. This module owns the part that all
forms share: the lock, the thread, its failure, closing, the choice of what to merge, and the
release of memory that a merge has freed.

How a merge accounts for changes made while it ran is not shared, because it depends on the layout.
`access` copies the tombstones by the version at which subscriptions died, and may merge segments
again as soon as it has finished.
`boxes.live` keeps positions stable and copies the tombstones (a death stamp per position).
`intervals.live` numbers its versions afresh with each base and replays the changes into the new
delta. Index files append the changes to an overlay on disk instead. `rank.target_index` builds its
boxes in such a thread, too, and applies the changes that it has logged in the meantime.
"""

import ctypes
from collections.abc import Callable, Sequence
from threading import Lock, Thread

from tidings.errors import TidingsError


class BackgroundMerge:
    """At most one running merge, and the lock that it shares with all writers, its own or another.

    `start`, `finish` and `check_writable` must be called with the lock held. A failure is raised
    once, to the next writer.
    """

    def __init__(self, lock: "Lock | None" = None) -> None:
        self.lock = Lock() if lock is None else lock
        self.completed = 0
        self.running = False
        self._thread: Thread | None = None
        self._failure: Exception | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether changes are refused."""
        return self._closed

    def start(self, work: Callable[[], None]) -> None:
        """Run `work` on a thread unless a merge is running; `work` calls `finish` when it swaps.

        A thread that cannot start counts as a failed merge: the changes before it are kept.
        """
        if self.running:
            return
        self.running = True
        try:
            self._thread = Thread(target=self._run, args=(work,), daemon=True)
            self._thread.start()
        except (MemoryError, RuntimeError) as failure:
            self._fail(failure)

    def finish(self) -> None:
        """Mark the running merge as ended."""
        self.running, self._thread = False, None

    def check_writable(self) -> None:
        """Raise an error if the index is closed, or once if the last merge failed."""
        if self._closed:
            raise TidingsError("the index is closed and takes no changes")
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise TidingsError(
                f"the last merge failed ({failure!r}); nothing is lost, and it is tried again "
                "after the next change"
            ) from failure

    def wait(self) -> None:
        """Wait until no merge is running."""
        with self.lock:  # its holder may be about to start the thread
            thread = self._thread
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """Refuse further changes, and wait for a running merge."""
        with self.lock:
            self._closed = True
        self.wait()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as failure:  # noqa: BLE001 - any failure is raised by the next change
            with self.lock:
                self._fail(failure)

    def report(self, failure: Exception) -> None:
        """Keep a failure, to raise it to the next writer."""
        self._failure = failure

    def _fail(self, failure: Exception) -> None:
        self.report(failure)
        self.finish()


def first_to_merge(sizes: Sequence[int], newest: int) -> int:
    """Return the position from which runs are merged with `newest` entries (size-tiered).

    A run joins if it has at most twice the entries it is merged with, so that sizes at least
    double from run to run: there are O(log n) runs, and an entry is merged O(log n) times.

    >>> first_to_merge([1000, 40, 10], newest=20), first_to_merge([1000, 90], newest=20)
    (1, 2)
    """
    first = len(sizes)
    while first > 0 and sizes[first - 1] <= 2 * newest:
        first -= 1
        newest += sizes[first]
    return first


def release_free_memory() -> bool:
    """Return what is free within the heap to the system; return whether there was anything.

    Columns and lists that exist only while a large index is built leave gaps below what stays, in
    all as much as the index itself takes. This looks at the free pieces of the heap only, and does
    nothing where the C library cannot do it, as outside of glibc.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return False
    return bool(trim(0))
