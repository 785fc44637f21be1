"""Bases built in the background: every part that is due, whatever fails, none after the end."""

from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from tests.index_files.test_following import is_locked_while_it_closes, wait_until
from tests.index_files.test_publisher import matched_names, subscribe

from tidings.errors import TidingsError
from tidings.index_files import publisher as publisher_module
from tidings.index_files import versions
from tidings.index_files.base_files import current_bundles
from tidings.index_files.publisher import Publisher
from tidings.store import Store


def subscribe_many(store: Store, prefix: str, size: int) -> list[str]:
    """Add subscribers, and return their names."""
    names = [f"{prefix}{number}" for number in range(size)]
    for name in names:
        subscribe(store, name)
    return names


def delta_counts(publisher: Publisher) -> list[int]:
    """Return the number of deltas of each part of the newest version."""
    manifest = publisher.folder.manifest(publisher.folder.newest())
    return [len(part.deltas) for part in manifest.parts]


def test_a_new_base_merges_the_deltas(store, tmp_path):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history, min_changed=2) as publisher:
        before = publisher.folder.manifest(publisher.publish()).parts[0].index
        for name in ("bob", "cy", "dee"):
            subscribe(store, name)
        store.catalogue.remove("subscriber", "ann")
        publisher.publish()
        publisher.settle()
        manifest = publisher.folder.manifest(publisher.folder.newest())
        assert manifest.parts[0].index != before
        assert (manifest.parts[0].size, manifest.parts[0].deltas) == (3, ())
        assert matched_names(publisher.folder, manifest.version) == ["bob", "cy", "dee"]


@pytest.fixture
def slow(monkeypatch):
    """Hold each build back: return an event that it has started, and one to let it go on."""
    started, go_on = Event(), Event()

    def slowly(path: Path, part: Any) -> Any:
        started.set()
        go_on.wait()
        return current_bundles(path, part)

    monkeypatch.setattr(publisher_module, "current_bundles", slowly)
    return started, go_on


def test_the_files_of_a_base_being_built_stay(store, tmp_path, monkeypatch, slow):
    started, go_on = slow
    monkeypatch.setattr(versions, "KEPT_VERSIONS", 1)
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history, min_changed=0) as publisher:
        publisher.publish()
        for name in ("bob", "cy", "dee"):
            subscribe(store, name)
            publisher.publish()
            started.wait()
        go_on.set()
        publisher.settle()
        part = publisher.folder.manifest(publisher.folder.newest()).parts[0]
        assert (part.size, len(part.deltas)) == (2, 2)
        assert matched_names(publisher.folder, publisher.folder.newest()) == [
            "ann",
            "bob",
            "cy",
            "dee",
        ]


def test_every_part_that_is_due_gets_a_base_without_further_changes(store, tmp_path):
    first = subscribe_many(store, "a", 8)
    with Publisher(tmp_path / "index", store.history, parts=4, min_changed=0) as publisher:
        publisher.publish()
        second = subscribe_many(store, "b", 40)
        publisher.publish()
        assert len(delta_counts(publisher)) == 4
        for _ in range(3):
            publisher.settle()
            publisher.publish()
        publisher.settle()
        assert delta_counts(publisher) == [0] * 4
        assert matched_names(publisher.folder, publisher.publish()) == sorted(first + second)


def test_a_thread_that_cannot_start_is_reported_and_retried(store, tmp_path, monkeypatch, caplog):
    class CannotStart(Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history, min_changed=0) as publisher:
        publisher.publish()
        subscribe(store, "bob")
        with monkeypatch.context() as patch:
            patch.setattr(publisher_module, "Thread", CannotStart)
            version = publisher.publish()
        assert matched_names(publisher.folder, version) == ["ann", "bob"]
        with pytest.raises(TidingsError, match="building a base of part 0: can't start new thread"):
            publisher.settle()
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert publisher.publish() == version
        assert delta_counts(publisher) == [1]
        publisher._builder._retry_at[0] = 0
        publisher.publish()
        wait_until(lambda: delta_counts(publisher) == [0])
        publisher.settle()


def test_a_part_that_fails_does_not_hold_up_the_others(store, tmp_path, caplog):
    subscribe_many(store, "a", 8)
    with Publisher(tmp_path / "index", store.history, parts=2, min_changed=0) as publisher:
        part = publisher.folder.manifest(publisher.publish()).parts[0]
        (publisher.folder.path / part.archive).write_bytes(b"not an archive")
        subscribe_many(store, "b", 20)
        publisher.publish()
        publisher._builder.wait()
        for _ in range(3):
            publisher.publish()
            publisher._builder.wait()
        assert delta_counts(publisher) == [1, 0]
        for _ in range(2):
            with pytest.raises(TidingsError, match=r"part 0: .* is not an index file"):
                publisher.settle()
        assert len(caplog.records) == 1
        subscribe(store, "a0", k=3)
        store.history.compact(store.history.newest())
        publisher.publish()
        assert delta_counts(publisher) == [0, 0]
        publisher.settle()


def test_a_damaged_archive_is_reported_and_nothing_is_lost(store, tmp_path):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history, min_changed=0) as publisher:
        part = publisher.folder.manifest(publisher.publish()).parts[0]
        (publisher.folder.path / part.archive).write_bytes(b"not an archive")
        subscribe(store, "bob")
        version = publisher.publish()
        with pytest.raises(TidingsError, match=r"not up to date: .* is not an index file"):
            publisher.settle()
        assert matched_names(publisher.folder, version) == ["ann", "bob"]


def test_close_waits_for_the_base_that_is_being_built(store, tmp_path, slow):
    started, go_on = slow
    subscribe(store, "ann")
    publisher = Publisher(tmp_path / "index", store.history, min_changed=0)
    publisher.publish()
    subscribe(store, "bob")
    publisher.publish()
    started.wait()
    closing = Thread(target=publisher.close)
    closing.start()
    is_locked_while_it_closes(publisher, store)
    go_on.set()
    closing.join()
    assert delta_counts(publisher) == [0]


def test_close_waits_for_a_thread_that_is_slow_to_start(store, tmp_path, monkeypatch):
    started, go_on = Event(), Event()

    class SlowStart(Thread):
        def start(self) -> None:
            started.set()
            go_on.wait()
            super().start()

    subscribe(store, "ann")
    publisher = Publisher(tmp_path / "index", store.history, min_changed=0)
    publisher.publish()
    subscribe(store, "bob")
    monkeypatch.setattr(publisher_module, "Thread", SlowStart)
    publishing, closing = Thread(target=publisher.publish), Thread(target=publisher.close)
    publishing.start()
    started.wait()
    closing.start()
    wait_until(publisher._closed.is_set)
    go_on.set()
    closing.join()
    publishing.join()
    assert delta_counts(publisher) == [0]
    Publisher(tmp_path / "index", store.history).close()
