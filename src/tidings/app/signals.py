"""Graceful shutdown on Ctrl-C and SIGTERM, because killing Spark mid-batch is messy."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def _do_nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True)
class StopActions:
    """Callbacks for the first signal, which asks to stop, and the second, which stops at once."""

    on_request: Callable[[], None] = _do_nothing
    on_abort: Callable[[], None] = _do_nothing


@contextmanager
def stop_on_signals(actions: StopActions) -> Iterator[threading.Event]:
    """Yield an event that the first signal sets; a second signal raises KeyboardInterrupt.

    Outside the main thread, where Python delivers no signals, the event is never set.
    """
    requested = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if requested.is_set():
            actions.on_abort()
            raise KeyboardInterrupt
        requested.set()
        actions.on_request()

    if threading.current_thread() is not threading.main_thread():
        yield requested
        return
    previous = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield requested
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
