"""Signals as wishes: the first is granted in order, the second at once."""

import os
import signal
import threading

import pytest

from tidings.app.signals import SIGNALS, interrupts


@pytest.mark.parametrize("first", SIGNALS)
@pytest.mark.parametrize("second", SIGNALS)
def test_the_first_interrupt_is_a_wish_and_the_second_a_command(
    first: signal.Signals, second: signal.Signals
) -> None:
    heard: list[str] = []
    before = [signal.getsignal(each) for each in SIGNALS]
    with interrupts(lambda: heard.append("once")) as asked:
        assert not asked.is_set()
        os.kill(os.getpid(), first)
        assert asked.is_set()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), second)
    assert heard == ["once"]
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_off_the_main_thread_interrupts_are_left_alone() -> None:
    seen: list[object] = []

    def look() -> None:
        with interrupts(lambda: None):
            seen.extend(signal.getsignal(each) for each in SIGNALS)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(each) for each in SIGNALS]
