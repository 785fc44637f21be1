"""Ctrl-C and SIGTERM as a wish that can be granted in order, since Spark hates to be torn away."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupts(
    heard: Callable[[], None], again: Callable[[], None] | None = None
) -> Iterator[threading.Event]:
    """Give an event that the first interrupt sets, calling `heard`; a second one raises.

    Before it raises, it calls `again`. Off the main thread nothing changes, and the event stays as
    it is.
    """
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            if again is not None:
                again()
            raise KeyboardInterrupt
        asked.set()
        heard()

    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {each: signal.signal(each, ask) for each in SIGNALS}
    try:
        yield asked
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
