"""Makes new bases in the background, one after the other."""

from collections.abc import Callable
from threading import Lock, Thread
from time import monotonic
from typing import Final

from tidings.index_files.base_files import current, write_base
from tidings.index_files.failures import Failures
from tidings.index_files.versions import Folder, Shelf

REST_S: Final = 60.0
"""After a base could not be made, its part is left alone for so long."""

Take = Callable[[int, Shelf, Shelf], None]
"""Takes a base that is made in the place of a shelf of a part."""


class Builder:
    """A thread at a time that makes a base of what a shelf holds, and hands it to `take`.

    Whoever calls has the lock, but for `wait`; `take` is called with it.
    """

    def __init__(self, folder: Folder, lock: Lock, take: Take, failures: Failures) -> None:
        self._folder, self._lock, self._take, self._failures = folder, lock, take, failures
        self._thread: Thread | None = None
        self._rests: dict[int, float] = {}
        self.making: tuple[str, ...] = ()
        """The files that must stay until the base is made; none: no base is being made."""

    def rests(self, part: int) -> bool:
        """Tell whether the base of a part failed a short while ago."""
        return monotonic() < self._rests.get(part, 0)

    def begin(self, part: int, shelf: Shelf, made: Shelf) -> None:
        """Begin to make a base, in the files that `made` names."""
        self.making = (*made.files, *shelf.files)
        self._thread = Thread(target=self._run, args=(part, shelf, made), daemon=True)
        try:
            self._thread.start()
        except RuntimeError as failure:  # there is no room for a thread, or the process ends
            self._thread = None
            self._end(part, failure)

    def forget(self) -> None:
        """Take note that all bases are new: what failed before is over."""
        for part in self._rests:
            self._failures.forget(_work(part))
        self._rests = {}

    def wait(self) -> None:
        """Wait for the base that is being made."""
        with self._lock:  # who holds it may be about to begin one
            thread = self._thread
        if thread:
            thread.join()

    def _run(self, part: int, shelf: Shelf, made: Shelf) -> None:
        failure = None
        try:
            base = write_base(self._folder.path, made, current(self._folder.path, shelf))
            with self._lock:
                self._take(part, shelf, base)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            failure = error
        with self._lock:
            self._end(part, failure)

    def _end(self, part: int, failure: Exception | None) -> None:
        self.making = ()
        if failure is None:
            self._failures.forget(_work(part))
        else:
            self._failures.note(_work(part), failure)
            self._rests[part] = monotonic() + REST_S


def _work(part: int) -> str:
    return f"a new base of part {part}"
