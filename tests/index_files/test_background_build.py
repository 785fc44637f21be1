"""New bases are made in the background: each that is due, whatever fails, none after the end."""

from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from tests.index_files.test_following import nobody_else_while_it_closes, until
from tests.index_files.test_publisher import wants, who

from tidings.errors import TidingsError
from tidings.index_files import background_build as builders
from tidings.index_files import versions as folders
from tidings.index_files.base_files import current_bundles
from tidings.index_files.publisher import Publisher
from tidings.store import Store


def crowd(store: Store, begin: str, size: int) -> list[str]:
    names = [f"{begin}{number}" for number in range(size)]
    for name in names:
        wants(store, name)
    return names


def waiting(publisher: Publisher) -> list[int]:
    """Give how many changes each part has that no base has taken in."""
    shelves = publisher.folder.manifest(publisher.folder.newest()).parts
    return [len(each.deltas) for each in shelves]


def test_a_new_base_takes_in_what_changed(store, tmp_path):
    wants(store, "ann")
    with Publisher(tmp_path / "index", store.history, min_changed=2) as publisher:
        before = publisher.folder.manifest(publisher.publish()).parts[0].index
        for name in ("bob", "cy", "dee"):
            wants(store, name)
        store.catalogue.remove("subscriber", "ann")
        publisher.publish()
        publisher.settle()
        manifest = publisher.folder.manifest(publisher.folder.newest())
        assert manifest.parts[0].index != before
        assert (manifest.parts[0].size, manifest.parts[0].deltas) == (3, ())
        assert who(publisher.folder, manifest.version) == ["bob", "cy", "dee"]


@pytest.fixture
def slow(monkeypatch):
    """Let bases wait before they are made: (one is begun, it may go on)."""
    begun, go_on = Event(), Event()

    def slowly(path: Path, part_manifest: Any) -> Any:
        begun.set()
        go_on.wait()
        return current_bundles(path, part_manifest)

    monkeypatch.setattr(builders, "current_bundles", slowly)
    return begun, go_on


def test_what_a_new_base_is_made_of_stays_until_it_is_made(store, tmp_path, monkeypatch, slow):
    begun, go_on = slow
    monkeypatch.setattr(folders, "KEPT_VERSIONS", 1)
    wants(store, "ann")
    with Publisher(tmp_path / "index", store.history, min_changed=0) as publisher:
        publisher.publish()
        for name in ("bob", "cy", "dee"):
            wants(store, name)
            publisher.publish()
            begun.wait()
        go_on.set()
        publisher.settle()
        part_manifest = publisher.folder.manifest(publisher.folder.newest()).parts[0]
        assert (part_manifest.size, len(part_manifest.deltas)) == (2, 2)
        assert who(publisher.folder, publisher.folder.newest()) == ["ann", "bob", "cy", "dee"]


def test_every_part_that_is_due_gets_its_base_though_nothing_changes_any_more(store, tmp_path):
    first = crowd(store, "a", 8)
    with Publisher(tmp_path / "index", store.history, parts=4, min_changed=0) as publisher:
        publisher.publish()
        second = crowd(store, "b", 40)
        publisher.publish()
        assert len(waiting(publisher)) == 4
        for _ in range(3):
            publisher.settle()
            publisher.publish()
        publisher.settle()
        assert waiting(publisher) == [0] * 4
        assert who(publisher.folder, publisher.publish()) == sorted(first + second)


def test_a_thread_that_cannot_start_is_told_and_tried_again_later(
    store, tmp_path, monkeypatch, caplog
):
    class Never(Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    wants(store, "ann")
    with Publisher(tmp_path / "index", store.history, min_changed=0) as publisher:
        publisher.publish()
        wants(store, "bob")
        with monkeypatch.context() as patch:
            patch.setattr(builders, "Thread", Never)
            version = publisher.publish()
        assert who(publisher.folder, version) == ["ann", "bob"]
        with pytest.raises(TidingsError, match="building a base of part 0: can't start new thread"):
            publisher.settle()
        assert [each.levelname for each in caplog.records] == ["WARNING"]
        assert publisher.publish() == version
        assert waiting(publisher) == [1]
        publisher._builder._retry_at[0] = 0
        publisher.publish()
        until(lambda: waiting(publisher) == [0])
        publisher.settle()


def test_a_part_whose_base_fails_does_not_keep_others_from_theirs(store, tmp_path, caplog):
    crowd(store, "a", 8)
    with Publisher(tmp_path / "index", store.history, parts=2, min_changed=0) as publisher:
        part_manifest = publisher.folder.manifest(publisher.publish()).parts[0]
        (publisher.folder.path / part_manifest.archive).write_bytes(b"no archive")
        crowd(store, "b", 20)
        publisher.publish()
        publisher._builder.wait()
        for _ in range(3):
            publisher.publish()
            publisher._builder.wait()
        assert waiting(publisher) == [1, 0]
        for _ in range(2):
            with pytest.raises(TidingsError, match=r"part 0: .* is not an index file"):
                publisher.settle()
        assert len(caplog.records) == 1
        wants(store, "a0", k=3)
        store.history.compact(store.history.newest())
        publisher.publish()
        assert waiting(publisher) == [0, 0]
        publisher.settle()


def test_a_damaged_archive_is_told_and_nothing_is_lost(store, tmp_path):
    wants(store, "ann")
    with Publisher(tmp_path / "index", store.history, min_changed=0) as publisher:
        part_manifest = publisher.folder.manifest(publisher.publish()).parts[0]
        (publisher.folder.path / part_manifest.archive).write_bytes(b"no archive")
        wants(store, "bob")
        version = publisher.publish()
        with pytest.raises(TidingsError, match=r"not up to date: .* is not an index file"):
            publisher.settle()
        assert who(publisher.folder, version) == ["ann", "bob"]


def test_who_closes_waits_for_the_base_that_is_being_made(store, tmp_path, slow):
    begun, go_on = slow
    wants(store, "ann")
    publisher = Publisher(tmp_path / "index", store.history, min_changed=0)
    publisher.publish()
    wants(store, "bob")
    publisher.publish()
    begun.wait()
    closing = Thread(target=publisher.close)
    closing.start()
    nobody_else_while_it_closes(publisher, store)
    go_on.set()
    closing.join()
    assert waiting(publisher) == [0]


def test_a_thread_that_is_slow_to_start_does_not_hinder_who_closes(store, tmp_path, monkeypatch):
    begun, go_on = Event(), Event()

    class Slow(Thread):
        def start(self) -> None:
            begun.set()
            go_on.wait()
            super().start()

    wants(store, "ann")
    publisher = Publisher(tmp_path / "index", store.history, min_changed=0)
    publisher.publish()
    wants(store, "bob")
    monkeypatch.setattr(builders, "Thread", Slow)
    publishing, closing = Thread(target=publisher.publish), Thread(target=publisher.close)
    publishing.start()
    begun.wait()
    closing.start()
    until(publisher._closed.is_set)
    go_on.set()
    closing.join()
    publishing.join()
    assert waiting(publisher) == [0]
    Publisher(tmp_path / "index", store.history).close()
