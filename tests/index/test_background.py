"""Background merges: one at a time, a failure raised once, closed at the end."""

import ctypes
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import Any

import numpy as np
import pytest

from tidings.errors import TidingsError
from tidings.index import background as module
from tidings.index.access import Access, writer
from tidings.index.background import BackgroundMerge, release_free_memory
from tidings.model.records import Subscription


def work_after(merge, before):
    """Return work that waits for an event, then finishes the merge."""

    def work():
        before.wait()
        with merge.lock:
            merge.completed += 1
            merge.finish()

    return work


def test_one_at_a_time():
    merge, go = BackgroundMerge(), Event()
    for _ in range(3):
        with merge.lock:
            merge.start(work_after(merge, go))
        assert merge.running
    go.set()
    merge.wait()
    assert not merge.running
    assert merge.completed == 1
    with merge.lock:
        merge.start(work_after(merge, go))
    merge.wait()
    assert merge.completed == 2


def test_a_failure_is_raised_once_and_a_merge_may_start_again():
    merge = BackgroundMerge()

    def fail():
        raise MemoryError("no room")

    merge.start(fail)
    merge.wait()
    assert not merge.running
    with pytest.raises(TidingsError, match=r"failed .*no room.*nothing is lost") as raised:
        merge.check_writable()
    assert isinstance(raised.value.__cause__, MemoryError)
    merge.check_writable()
    go = Event()
    go.set()
    merge.start(work_after(merge, go))
    merge.wait()
    assert merge.completed == 1


class NeverStarts(Thread):
    """A thread that the system cannot start."""

    def start(self):
        raise RuntimeError("can't start new thread")


def test_a_thread_that_cannot_start_is_a_failure(monkeypatch):
    merge, go = BackgroundMerge(), Event()
    go.set()
    with monkeypatch.context() as broken, merge.lock:
        broken.setattr(module, "Thread", NeverStarts)
        merge.start(work_after(merge, go))
    merge.wait()
    assert not merge.running
    with pytest.raises(TidingsError, match="can't start new thread"):
        merge.check_writable()
    merge.start(work_after(merge, go))
    merge.wait()
    assert merge.completed == 1


class SlowToStart(Thread):
    """A thread that other threads can see for a while before it starts."""

    def start(self):
        sleep(0.1)
        super().start()


def test_waiting_never_joins_a_thread_before_it_starts(monkeypatch):
    monkeypatch.setattr(module, "Thread", SlowToStart)
    merge, go = BackgroundMerge(), Event()
    go.set()

    def begin():
        with merge.lock:
            merge.start(work_after(merge, go))

    beginner = Thread(target=begin)
    beginner.start()
    while beginner.is_alive():
        merge.wait()
    merge.wait()
    assert merge.completed == 1


def test_closing_an_index_never_joins_a_thread_before_it_starts(monkeypatch):
    monkeypatch.setattr(module, "Thread", SlowToStart)
    monkeypatch.setattr(writer, "SMALL", 10)
    access = Access()
    subscriptions = [Subscription(f"s{n}", "ann", f"size = {n}") for n in range(500)]

    def change():
        for first in range(0, 500, 100):
            access.add_many(subscriptions[first : first + 100])

    changer = Thread(target=change)
    changer.start()
    while changer.is_alive():
        access.close()
    access.close()
    assert len(access) == 500
    assert "no rebuild is under way, 0 done" not in str(access.describe())


def test_closing_waits_for_the_running_merge():
    merge, go = BackgroundMerge(), Event()
    go.set()
    merge.start(work_after(merge, go))
    merge.close()
    assert merge.closed
    assert merge.completed == 1
    with pytest.raises(TidingsError, match="closed and takes no changes"):
        merge.check_writable()


CELLS = 1024  # small enough to lie within the heap


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return 4096 * pages


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library keeps its heap"
)
def test_gaps_in_the_heap_are_released() -> None:
    arrays = [np.ones(CELLS) for _ in range(8000)]
    kept = arrays[::100]
    del arrays
    before = resident()
    assert release_free_memory()
    assert before - resident() > 8 * CELLS * 4000
    assert all(array.all() for array in kept)


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_another_c_library_keeps_its_heap(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Any) -> None:
        raise error("no such function")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert not release_free_memory()
