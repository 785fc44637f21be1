"""Work in the background of an index: one at a time, its failure told once, closed in the end."""

from threading import Event, Thread
from time import sleep

import pytest

from tidings.errors import TidingsError
from tidings.index import background as module
from tidings.index.access import Access, writer
from tidings.index.background import BackgroundMerge
from tidings.model.records import Subscription


def ended(merge, before):
    """Work that waits for an event, then says that it is done."""

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
            merge.start(ended(merge, go))
        assert merge.running
    go.set()
    merge.wait()
    assert not merge.running
    assert merge.completed == 1
    with merge.lock:
        merge.start(ended(merge, go))
    merge.wait()
    assert merge.completed == 2


def test_a_failure_is_told_once_and_work_may_begin_again():
    merge = BackgroundMerge()

    def fail():
        raise MemoryError("no room")

    merge.start(fail)
    merge.wait()
    assert not merge.running
    with pytest.raises(TidingsError, match=r"failed .*no room.*nothing is lost") as told:
        merge.check_writable()
    assert isinstance(told.value.__cause__, MemoryError)
    merge.check_writable()
    go = Event()
    go.set()
    merge.start(ended(merge, go))
    merge.wait()
    assert merge.completed == 1


class NeverStarts(Thread):
    """A thread for which the system has no room."""

    def start(self):
        raise RuntimeError("can't start new thread")


def test_a_thread_that_cannot_start_is_a_failure(monkeypatch):
    merge, go = BackgroundMerge(), Event()
    go.set()
    with monkeypatch.context() as broken, merge.lock:
        broken.setattr(module, "Thread", NeverStarts)
        merge.start(ended(merge, go))
    merge.wait()
    assert not merge.running
    with pytest.raises(TidingsError, match="can't start new thread"):
        merge.check_writable()
    merge.start(ended(merge, go))
    merge.wait()
    assert merge.completed == 1


class SlowToStart(Thread):
    """A thread that others can see for a while before it is started."""

    def start(self):
        sleep(0.1)
        super().start()


def test_who_waits_does_not_meet_a_thread_that_is_yet_to_start(monkeypatch):
    monkeypatch.setattr(module, "Thread", SlowToStart)
    merge, go = BackgroundMerge(), Event()
    go.set()

    def begin():
        with merge.lock:
            merge.start(ended(merge, go))

    beginner = Thread(target=begin)
    beginner.start()
    while beginner.is_alive():
        merge.wait()
    merge.wait()
    assert merge.completed == 1


def test_who_waits_for_an_index_that_changes_does_not_either(monkeypatch):
    monkeypatch.setattr(writer, "Thread", SlowToStart)
    monkeypatch.setattr(writer, "SMALL", 10)
    access = Access()
    wishes = [Subscription(f"s{each}", "ann", f"size = {each}") for each in range(500)]

    def change():
        for first in range(0, 500, 100):
            access.add_many(wishes[first : first + 100])

    changer = Thread(target=change)
    changer.start()
    while changer.is_alive():
        access.close()
    access.close()
    assert len(access) == 500
    assert "no rebuild is under way, 0 done" not in access.describe()


def test_it_closes_when_the_work_is_done():
    merge, go = BackgroundMerge(), Event()
    go.set()
    merge.start(ended(merge, go))
    merge.close()
    assert merge.closed
    assert merge.completed == 1
    with pytest.raises(TidingsError, match="closed and takes no changes"):
        merge.check_writable()
