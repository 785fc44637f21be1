"""The first signal asks for a graceful stop, the second stops at once."""

import os
import signal
import threading

import pytest

from tidings.app.signals import SIGNALS, StopActions, stop_on_signals


@pytest.mark.parametrize("first", SIGNALS)
@pytest.mark.parametrize("second", SIGNALS)
def test_the_first_signal_sets_the_event_and_the_second_raises(
    first: signal.Signals, second: signal.Signals
) -> None:
    calls: list[str] = []
    actions = StopActions(lambda: calls.append("request"), lambda: calls.append("abort"))
    before = [signal.getsignal(number) for number in SIGNALS]
    with stop_on_signals(actions) as stop_requested:
        assert not stop_requested.is_set()
        os.kill(os.getpid(), first)
        assert stop_requested.is_set()
        assert calls == ["request"]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), second)
    assert calls == ["request", "abort"]
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_handlers_do_not_change_outside_the_main_thread() -> None:
    handlers: list[object] = []

    def read_handlers() -> None:
        with stop_on_signals(StopActions()):
            handlers.extend(signal.getsignal(number) for number in SIGNALS)

    thread = threading.Thread(target=read_handlers)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(number) for number in SIGNALS]
