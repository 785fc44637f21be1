"""Following: a publisher survives failures, reports them, and forgets them once they are over."""

from collections.abc import Callable
from threading import Event as Signal
from threading import Thread
from time import monotonic, sleep
from typing import Any

import pytest
from tests.index_files.test_publisher import matched_names, subscribe

from tidings.errors import TidingsError
from tidings.index_files.publisher import Publisher
from tidings.store import Store


class Flaky:
    """A history whose newest version may be unavailable."""

    def __init__(self, history: Any) -> None:
        self._history = history
        self.failure: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._history, name)

    def newest(self) -> int:
        if self.failure:
            raise self.failure
        return int(self._history.newest())


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, for up to ten minutes."""
    deadline = monotonic() + 600
    while not condition():
        assert monotonic() < deadline
        sleep(0.001)


def is_locked_while_it_closes(publisher: Publisher, store: Store) -> None:
    """Check that the folder of a publisher that is being closed admits no other publisher."""
    wait_until(publisher._closed.is_set)
    with pytest.raises(TidingsError, match="another publisher"):
        Publisher(publisher.folder.path, store.history)


def test_a_publisher_follows_in_a_thread(store, tmp_path):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
        publisher.follow(every_s=0.001)
        follower = publisher._follower
        publisher.follow(every_s=0.001)
        assert publisher._follower is follower
        subscribe(store, "bob")
        wait_until(lambda: publisher.folder.newest() == 2)
        assert matched_names(publisher.folder, 2) == ["ann", "bob"]
    assert follower
    assert not follower.is_alive()


@pytest.mark.parametrize(
    "failure", [TidingsError("the store is away"), OSError("no disk"), ValueError("odd")]
)
def test_a_failure_is_survived_reported_once_and_forgotten(store, tmp_path, caplog, failure):
    source = Flaky(store.history)
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", source) as publisher:
        publisher.publish()
        source.failure = failure
        publisher.follow(every_s=0.001)
        wait_until(lambda: bool(caplog.records))
        with pytest.raises(TidingsError, match=f"not up to date: publishing: {failure}"):
            publisher.settle()
        sleep(0.02)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert f"{publisher.folder.path}: publishing failed" in caplog.text
        subscribe(store, "bob")
        source.failure = None
        wait_until(lambda: publisher.folder.newest() == 2)
        publisher.settle()
        source.failure = failure
        wait_until(lambda: len(caplog.records) == 2)
        source.failure = KeyError("another one")
        wait_until(lambda: len(caplog.records) == 3)
        assert "another one" in caplog.records[2].getMessage()


def test_the_next_successful_publish_clears_a_failure(store, tmp_path):
    source = Flaky(store.history)
    with Publisher(tmp_path / "index", source) as publisher:
        publisher._failures.note("publishing", ValueError("odd"))
        publisher.publish()
        publisher.settle()
        source.failure = ValueError("odd")
        with pytest.raises(ValueError, match="odd"):
            publisher.publish()
        publisher.settle()


def test_a_closed_publisher_refuses_to_publish(store, tmp_path):
    publisher = Publisher(tmp_path / "index", store.history)
    publisher.publish()
    publisher.close()
    publisher.close()
    with Publisher(tmp_path / "index", store.history) as another:
        with pytest.raises(TidingsError, match="is closed; create a new one"):
            publisher.publish()
        assert another.publish() == 1


def test_close_waits_for_a_publish_in_another_thread(store, tmp_path):
    started, go_on = Signal(), Signal()

    class SlowHistory(Flaky):
        def newest(self) -> int:
            started.set()
            go_on.wait()
            return super().newest()

    subscribe(store, "ann")
    publisher = Publisher(tmp_path / "index", SlowHistory(store.history))
    publishing = Thread(target=publisher.publish)
    closing = Thread(target=publisher.close)
    publishing.start()
    started.wait()
    closing.start()
    is_locked_while_it_closes(publisher, store)
    go_on.set()
    closing.join()
    publishing.join()
    with Publisher(tmp_path / "index", store.history) as another:
        assert another.publish() == 1
