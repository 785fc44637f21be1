"""New bases built in the background, one at a time, and the failures of background work."""

import logging
from collections.abc import Callable
from threading import Lock, Thread
from time import monotonic
from typing import Final

from tidings.errors import TidingsError
from tidings.index_files.base_files import current_bundles, write_base
from tidings.index_files.manifest import PartManifest
from tidings.index_files.versions import IndexFolder

_LOG: Final = logging.getLogger(__name__)

RETRY_AFTER_S: Final = 60.0
"""After a base could not be built, its part is left alone for this long."""

Install = Callable[[int, PartManifest, PartManifest], None]
"""Replaces a part, by number, with the one that was built from it."""


class BackgroundFailures:
    """The last failure of each kind of work on a folder, until that work succeeds."""

    def __init__(self, folder: IndexFolder) -> None:
        self._folder = folder
        self._failures: dict[str, Exception] = {}

    def note(self, work: str, failure: Exception) -> None:
        """Keep a failure, and log it unless this work failed in the same way before."""
        previous, self._failures[work] = self._failures.get(work), failure
        if repr(previous) != repr(failure):
            _LOG.warning("%s: %s failed and will be retried: %r", self._folder.path, work, failure)

    def forget(self, work: str) -> None:
        """Drop the failure of some work, which succeeded."""
        self._failures.pop(work, None)

    def raise_any(self) -> None:
        """Raise the present failure, if there is one."""
        for work, failure in self._failures.items():
            raise TidingsError(
                f"{self._folder.path} is not up to date: {work}: {failure}"
            ) from failure


class BackgroundBuilder:
    """A thread at a time that merges a part and its deltas into a base, and calls `install`.

    Callers hold the lock, except in `wait`; `install` is called with the lock held.
    """

    def __init__(
        self, folder: IndexFolder, lock: Lock, install: Install, failures: BackgroundFailures
    ) -> None:
        self._folder, self._lock, self._install, self._failures = folder, lock, install, failures
        self._thread: Thread | None = None
        self._retry_at: dict[int, float] = {}
        self.building: tuple[str, ...] = ()
        """The files that must stay until the base is built; empty if none is being built."""

    def is_resting(self, number: int) -> bool:
        """Return whether the base of a part failed a short while ago."""
        return monotonic() < self._retry_at.get(number, 0)

    def start(self, number: int, part: PartManifest, new: PartManifest) -> None:
        """Start to build a base in the files that `new` names."""
        self.building = (*new.files, *part.files)
        self._thread = Thread(target=self._run, args=(number, part, new), daemon=True)
        try:
            self._thread.start()
        except RuntimeError as failure:  # no more threads, or the interpreter is shutting down
            self._thread = None
            self._finish(number, failure)

    def forget(self) -> None:
        """Drop all failures: every base was just built."""
        for number in self._retry_at:
            self._failures.forget(_work(number))
        self._retry_at = {}

    def wait(self) -> None:
        """Wait for the base that is being built."""
        with self._lock:  # its holder may be about to start one
            thread = self._thread
        if thread:
            thread.join()

    def _run(self, number: int, part: PartManifest, new: PartManifest) -> None:
        failure, path = None, self._folder.path
        try:
            base = write_base(path, new, current_bundles(path, part))
            with self._lock:
                self._install(number, part, base)
        except Exception as error:  # noqa: BLE001 - any failure is reported, and retried
            failure = error
        with self._lock:
            self._finish(number, failure)

    def _finish(self, number: int, failure: Exception | None) -> None:
        self.building = ()
        if failure is None:
            self._failures.forget(_work(number))
        else:
            self._failures.note(_work(number), failure)
            self._retry_at[number] = monotonic() + RETRY_AFTER_S


def _work(number: int) -> str:
    return f"building a base of part {number}"
