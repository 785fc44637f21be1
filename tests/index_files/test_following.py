"""A publisher that follows survives whatever fails, tells it, and forgets it when it is over."""

from collections.abc import Callable
from threading import Event as Event_
from threading import Thread
from time import monotonic, sleep
from typing import Any

import pytest
from tests.index_files.test_publisher import wants, who

from tidings.errors import TidingsError
from tidings.index_files.publisher import Publisher
from tidings.store import Store


class Flaky:
    """A history that may fail to tell its newest version."""

    def __init__(self, history: Any) -> None:
        self._history = history
        self.failure: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._history, name)

    def newest(self) -> int:
        if self.failure:
            raise self.failure
        return int(self._history.newest())


def until(happens: Callable[[], bool]) -> None:
    """Wait for something, but not for ever."""
    deadline = monotonic() + 60
    while not happens():
        assert monotonic() < deadline
        sleep(0.001)


def nobody_else_while_it_closes(publisher: Publisher, store: Store) -> None:
    """Whoever would publish to the folder of a publisher that is being closed is refused."""
    until(publisher._closed.is_set)
    with pytest.raises(TidingsError, match="another publisher"):
        Publisher(publisher.folder.path, store.history)


def test_a_publisher_follows_by_itself(store, tmp_path):
    wants(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
        publisher.follow(every_s=0.001)
        follower = publisher._follower
        publisher.follow(every_s=0.001)
        assert publisher._follower is follower
        wants(store, "bob")
        until(lambda: publisher.folder.newest() == 2)
        assert who(publisher.folder, 2) == ["ann", "bob"]
    assert follower
    assert not follower.is_alive()


@pytest.mark.parametrize(
    "failure", [TidingsError("the store is away"), OSError("no disk"), ValueError("odd")]
)
def test_whatever_fails_is_survived_told_once_and_forgotten(store, tmp_path, caplog, failure):
    source = Flaky(store.history)
    wants(store, "ann")
    with Publisher(tmp_path / "index", source) as publisher:
        publisher.publish()
        source.failure = failure
        publisher.follow(every_s=0.001)
        until(lambda: bool(caplog.records))
        with pytest.raises(TidingsError, match=f"not up to date: publishing: {failure}"):
            publisher.settle()
        sleep(0.02)
        assert [each.levelname for each in caplog.records] == ["WARNING"]
        assert f"{publisher.folder.path}: publishing failed" in caplog.text
        wants(store, "bob")
        source.failure = None
        until(lambda: publisher.folder.newest() == 2)
        publisher.settle()
        source.failure = failure
        until(lambda: len(caplog.records) == 2)
        source.failure = KeyError("another one")
        until(lambda: len(caplog.records) == 3)
        assert "another one" in caplog.records[2].getMessage()


def test_a_failure_is_over_with_the_next_good_publish(store, tmp_path):
    source = Flaky(store.history)
    with Publisher(tmp_path / "index", source) as publisher:
        publisher._failures.note("publishing", ValueError("odd"))
        publisher.publish()
        publisher.settle()
        source.failure = ValueError("odd")
        with pytest.raises(ValueError, match="odd"):
            publisher.publish()
        publisher.settle()


def test_a_publisher_that_is_closed_publishes_no_more(store, tmp_path):
    publisher = Publisher(tmp_path / "index", store.history)
    publisher.publish()
    publisher.close()
    publisher.close()
    with Publisher(tmp_path / "index", store.history) as another:
        with pytest.raises(TidingsError, match="is closed; create a new one"):
            publisher.publish()
        assert another.publish() == 1


def test_who_closes_waits_for_a_publish_of_another_thread(store, tmp_path):
    begun, go_on = Event_(), Event_()

    class Slow(Flaky):
        def newest(self) -> int:
            begun.set()
            go_on.wait()
            return super().newest()

    wants(store, "ann")
    publisher = Publisher(tmp_path / "index", Slow(store.history))
    publishing = Thread(target=publisher.publish)
    closing = Thread(target=publisher.close)
    publishing.start()
    begun.wait()
    closing.start()
    nobody_else_while_it_closes(publisher, store)
    go_on.set()
    closing.join()
    publishing.join()
    with Publisher(tmp_path / "index", store.history) as another:
        assert another.publish() == 1
