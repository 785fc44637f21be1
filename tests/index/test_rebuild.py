"""Work in the background of an index: one at a time, its failure told once, closed in the end."""

from threading import Event

import pytest

from tidings.errors import TidingsError
from tidings.index.rebuild import Rebuild


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


def test_it_closes_when_the_work_is_done():
    rebuild, go = Rebuild(), Event()
    go.set()
    rebuild.begin(ended(rebuild, go))
    rebuild.close()
    assert rebuild.closed
    assert rebuild.count == 1
    with pytest.raises(TidingsError, match="closed and takes no changes"):
        rebuild.writable()
