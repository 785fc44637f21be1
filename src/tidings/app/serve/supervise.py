"""A child process that is kept running: restarted if it dies, stopped with its parent.

The child reads a pipe from its parent, which closes when the parent dies, however that happens.
"""

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

_LOG: Final = logging.getLogger(__name__)
_FIRST_PAUSE_S: Final = 0.2  # doubled by each failure
_LONGEST_PAUSE_S: Final = 10.0
_HEALTHY_S: Final = 30.0
"""A child that lived this long is restarted at once."""
_STOP_S: Final = 20.0
_READ_BYTES: Final = 1_000


class Supervised:
    """A command of Tidings in its own process."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._command = [sys.executable, "-m", "tidings.app.cli", *arguments]
        self._stopping = threading.Event()
        self._process = self._start()
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """The process id of the child that runs now."""
        return self._process.pid

    def stop(self) -> None:
        """End the child, and wait for it."""
        self._stopping.set()
        self._close_pipe()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._thread.join()

    def _close_pipe(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(self._command, stdin=subprocess.PIPE)

    def _watch(self) -> None:
        pause_s, began = _FIRST_PAUSE_S, time.monotonic()
        while True:
            status = self._process.wait()
            self._close_pipe()
            if self._stopping.is_set():
                return
            if time.monotonic() - began > _HEALTHY_S:
                pause_s = _FIRST_PAUSE_S
            _LOG.warning("the pipeline ended with status %d and is restarted", status)
            if self._stopping.wait(pause_s):
                return
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            began = time.monotonic()
            self._process = self._start()


def on_end_of_parent(act: Callable[[], None]) -> None:
    """Call a function when the parent closes the pipe to this process, or dies."""
    pipe = sys.stdin.fileno()

    def read() -> None:
        # Not through `sys.stdin`: a thread that waits there would crash this process at its exit.
        while os.read(pipe, _READ_BYTES):
            pass
        act()

    threading.Thread(target=read, name="parent", daemon=True).start()
