"""Work in the background of an index: one at a time, its failure told once, closed in the end."""

from threading import Event, Thread
from time import sleep

import pytest

from tidings.errors import TidingsError
from tidings.index import background as module
from tidings.index.access import Access, writer
from tidings.index.background import Rebuild
from tidings.model.records import Subscription


def ended(rebuild, before):
    """Work that waits for an event, then says that it is done."""

    def work():
        before.wait()
        with rebuild.lock:
            rebuild.count += 1
            rebuild.done()

    return work


def test_one_at_a_time():
    rebuild, go = Rebuild(), Event()
    for _ in range(3):
        with rebuild.lock:
            rebuild.begin(ended(rebuild, go))
        assert rebuild.running
    go.set()
    rebuild.settle()
    assert not rebuild.running
    assert rebuild.count == 1
    with rebuild.lock:
        rebuild.begin(ended(rebuild, go))
    rebuild.settle()
    assert rebuild.count == 2


def test_a_failure_is_told_once_and_work_may_begin_again():
    rebuild = Rebuild()

    def fail():
        raise MemoryError("no room")

    rebuild.begin(fail)
    rebuild.settle()
    assert not rebuild.running
    with pytest.raises(TidingsError, match=r"failed .*no room.*nothing is lost") as told:
        rebuild.writable()
    assert isinstance(told.value.__cause__, MemoryError)
    rebuild.writable()
    go = Event()
    go.set()
    rebuild.begin(ended(rebuild, go))
    rebuild.settle()
    assert rebuild.count == 1


class NeverStarts(Thread):
    """A thread for which the system has no room."""

    def start(self):
        raise RuntimeError("can't start new thread")


def test_a_thread_that_cannot_start_is_a_failure(monkeypatch):
    rebuild, go = Rebuild(), Event()
    go.set()
    with monkeypatch.context() as broken, rebuild.lock:
        broken.setattr(module, "Thread", NeverStarts)
        rebuild.begin(ended(rebuild, go))
    rebuild.settle()
    assert not rebuild.running
    with pytest.raises(TidingsError, match="can't start new thread"):
        rebuild.writable()
    rebuild.begin(ended(rebuild, go))
    rebuild.settle()
    assert rebuild.count == 1


class SlowToStart(Thread):
    """A thread that others can see for a while before it is started."""

    def start(self):
        sleep(0.1)
        super().start()


def test_who_waits_does_not_meet_a_thread_that_is_yet_to_start(monkeypatch):
    monkeypatch.setattr(module, "Thread", SlowToStart)
    rebuild, go = Rebuild(), Event()
    go.set()

    def begin():
        with rebuild.lock:
            rebuild.begin(ended(rebuild, go))

    beginner = Thread(target=begin)
    beginner.start()
    while beginner.is_alive():
        rebuild.settle()
    rebuild.settle()
    assert rebuild.count == 1


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
    rebuild, go = Rebuild(), Event()
    go.set()
    rebuild.begin(ended(rebuild, go))
    rebuild.close()
    assert rebuild.closed
    assert rebuild.count == 1
    with pytest.raises(TidingsError, match="closed and takes no changes"):
        rebuild.writable()
