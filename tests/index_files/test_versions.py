"""Versions of a folder: which ones stay, their pins, and the locks of processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import time
from typing import Any
from urllib.parse import quote

import pytest

from tidings import Event, Subscriber, Subscription, TidingsError
from tidings.index_files.base_files import build_folder, new_part
from tidings.index_files.manifest import Manifest, is_file_name
from tidings.index_files.mapped_file import Damaged
from tidings.index_files.publisher import Publisher
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.index_files.version_cache import forget, serve
from tidings.index_files.versions import (
    KEPT_VERSIONS,
    PINS_EXPIRE_S,
    IndexFolder,
    file_name,
    locked_versions,
)
from tidings.store import open_store
from tidings.testing import workload

HOSTILE = [".", "..", "../..", "/", "/etc", "a/../../b", "x" * 300, "a\0b", "A", "a", "ä", "%2e%2e"]
HOSTILE += ["=a", ".new-x", "\ud800", "a b", "*", "?", "~", "\\..", "-", "CON"]

LOCKER = """
import sys
from pathlib import Path
from tidings.index_files.versions import IndexFolder

print(IndexFolder(Path(sys.argv[1])).lock_newest(), flush=True)
input()
"""


def add_versions(folder: IndexFolder, versions: range) -> None:
    """Add versions, each with its own files."""
    for version in versions:
        part = new_part(version, 0)
        for name in part.files:
            (folder.path / name).touch()
        folder.put(Manifest(version, version, (part,)))


def has_files_of(folder: IndexFolder, version: int) -> bool:
    return all((folder.path / name).exists() for name in new_part(version, 0).files)


def test_a_locked_version_stays_until_its_process_is_killed(tmp_path: Path) -> None:
    folder = IndexFolder(tmp_path)
    add_versions(folder, range(1, 3))
    command = [sys.executable, "-c", LOCKER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as locker:
        assert locker.stdout
        assert locker.stdout.readline().strip() == "2"
        add_versions(folder, range(3, KEPT_VERSIONS + 4))
        folder.clean()
        assert (has_files_of(folder, 1), has_files_of(folder, 2), has_files_of(folder, 3)) == (
            False,
            True,
            False,
        )
        locker.send_signal(signal.SIGKILL)
    removed = folder.clean()
    assert not has_files_of(folder, 2)
    assert "version-000000000002.json" in removed
    assert list((tmp_path / "holds").iterdir()) == []


def test_a_process_locks_a_version_once_and_can_still_open_it(tmp_path: Path) -> None:
    with (
        open_store(tmp_path / "store.db") as store,
        Publisher(tmp_path / "index", store.history, min_changed=1) as publisher,
    ):
        store.catalogue.put(Subscriber("ann"), Subscription("s", "ann", "x = 1"))
        publisher.publish()
        locked = publisher.folder.lock_newest()
        assert publisher.folder.lock_newest() == locked
        for number in range(2 * KEPT_VERSIONS):
            name = f"u{number}"
            store.catalogue.put(Subscriber(name), Subscription(f"s{number}", name, "x = 1"))
            publisher.publish()
            publisher.settle()
        assert publisher.folder.newest() > locked + KEPT_VERSIONS
        assert len(list((publisher.folder.path / "holds").iterdir())) == 1
        event = Event("e", {"x": 1}, published_at=0)
        assert len(serve(publisher.folder, locked).match_many([event]).subscribers) == 1


def test_an_empty_folder_has_no_version_to_lock(tmp_path: Path) -> None:
    with pytest.raises(TidingsError, match="a publisher must write one"):
        IndexFolder(tmp_path).lock_newest()


WAYS_TO_KEEP: dict[str, Callable[[IndexFolder], int]] = {
    "pin": lambda folder: folder.pin("q", 0),
    "lock": lambda folder: folder.lock_newest(),
}


@pytest.fixture
def folder(tmp_path: Path) -> IndexFolder:
    folder = IndexFolder(tmp_path)
    add_versions(folder, range(1, 2))
    return folder


def versions(folder: IndexFolder) -> list[int]:
    return [int(path.stem[8:]) for path in sorted(folder.path.glob("version-*"))]


@pytest.mark.parametrize("way", WAYS_TO_KEEP)
def test_a_slow_process_does_not_get_a_version_that_was_removed_meanwhile(
    folder: IndexFolder, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Between the lookup of the newest version and its pin, many are added and it is removed."""
    real = IndexFolder._require_newest
    added = [range(2, KEPT_VERSIONS + 3), range(KEPT_VERSIONS + 3, 3 * KEPT_VERSIONS)]

    def slowly(self: IndexFolder) -> int:
        newest = real(self)
        if added:
            add_versions(self, added.pop(0))
            self.clean()
        return newest

    monkeypatch.setattr(IndexFolder, "_require_newest", slowly)
    kept = WAYS_TO_KEEP[way](folder)
    add_versions(folder, range(3 * KEPT_VERSIONS, 5 * KEPT_VERSIONS))
    folder.clean()
    assert kept == 3 * KEPT_VERSIONS - 1
    assert has_files_of(folder, kept)
    assert WAYS_TO_KEEP["pin"](folder) == (kept if way == "pin" else 5 * KEPT_VERSIONS - 1)


@pytest.mark.parametrize("moment", ["before the link", "after the link"])
def test_a_pin_that_is_being_written_keeps_its_version(
    folder: IndexFolder, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    real = os.link

    def link(*names: Any) -> None:
        if moment == "after the link":
            real(*names)
        add_versions(folder, range(2, 2 * KEPT_VERSIONS))
        folder.clean()
        if moment == "before the link":
            real(*names)

    monkeypatch.setattr(os, "link", link)
    assert folder.pin("q", 0) == 1
    assert has_files_of(folder, 1)
    assert [path.name for path in (folder.path / "pins" / "q").iterdir()] == [f"{0:020d}"]


def test_an_empty_temporary_file_is_not_a_pin(folder: IndexFolder) -> None:
    folder.pin("q", 0)
    (folder.path / "pins" / "q" / ".new-abc").touch()
    add_versions(folder, range(2, 2 * KEPT_VERSIONS))
    folder.clean()
    assert versions(folder) == [1, *range(KEPT_VERSIONS, 2 * KEPT_VERSIONS)]


def test_unpin_releases_the_versions_of_a_query(folder: IndexFolder) -> None:
    folder.pin("q/1", 0)
    folder.pin("q/2", 0)
    add_versions(folder, range(2, 2 * KEPT_VERSIONS))
    folder.unpin("q/1")
    folder.unpin("unknown")
    assert "version-000000000001.json" not in folder.clean()
    folder.unpin("q/2")
    assert "version-000000000001.json" in folder.clean()
    assert list((folder.path / "pins").iterdir()) == []
    assert folder.pin("q/1", 0) == 2 * KEPT_VERSIONS - 1


def test_a_query_that_is_unpinned_while_it_pins_tries_again(
    folder: IndexFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, unpinned = IndexFolder._require_newest, list[bool]()

    def unpin(self: IndexFolder) -> int:
        if not unpinned:
            unpinned.append(True)
            self.unpin("q")
        return real(self)

    monkeypatch.setattr(IndexFolder, "_require_newest", unpin)
    assert folder.pin("q", 0) == 1
    assert unpinned


def test_the_pins_of_an_abandoned_query_expire(folder: IndexFolder) -> None:
    folder.pin("dead", 0)
    folder.pin("slow", 0)
    add_versions(folder, range(2, 3))
    folder.pin("slow", 1)
    add_versions(folder, range(3, 3 * KEPT_VERSIONS))
    make_old(folder, "dead", 0, PINS_EXPIRE_S - 60)
    make_old(folder, "slow", 0, PINS_EXPIRE_S + 60)
    folder.clean()
    assert versions(folder)[:2] == [1, 2]
    make_old(folder, "dead", 0, PINS_EXPIRE_S + 60)
    folder.unpin("slow")
    folder.clean()
    assert versions(folder) == [*range(2 * KEPT_VERSIONS, 3 * KEPT_VERSIONS)]
    assert list((folder.path / "pins").iterdir()) == []


def make_old(folder: IndexFolder, query: str, batch: int, seconds: float) -> None:
    """Make a pin this old, with no later one."""
    pins = folder.path / "pins" / query
    for path in (pins / f"{batch:020d}", pins):
        os.utime(path, (time() - seconds,) * 2)


def test_a_pin_that_cannot_be_written_leaves_nothing(
    folder: IndexFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError("no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(TidingsError, match="no hard links"):
        folder.pin("q", 0)
    assert list((folder.path / "pins" / "q").iterdir()) == []


@pytest.fixture
def built(tmp_path: Path) -> IndexFolder:
    """Return a folder, two levels below the temporary one, with a version that can be opened."""
    work = workload(seed=3, events=1, subscribers=4)
    forget()
    path = tmp_path / "below" / "index"
    path.mkdir(parents=True)
    return build_folder(path, bundle_subscribers(work.subscribers, work.subscriptions))


def files_outside_pins(folder: IndexFolder) -> list[str]:
    top = folder.path.parent.parent
    pins = folder.path / "pins"
    return sorted(str(path) for path in top.rglob("*") if pins not in (path, *path.parents))


@pytest.mark.parametrize("query", [name for name in HOSTILE if name != "\ud800"])
def test_the_pins_of_any_query_stay_in_the_folder_of_pins(built: IndexFolder, query: str) -> None:
    before = files_outside_pins(built)
    other = built.pin("other", 0)
    assert built.pin(query, 3) == other == 1
    [pins] = [path for path in (built.path / "pins").iterdir() if path.name != "other"]
    assert pins.name == file_name(query)
    built.unpin(query)
    assert [path.name for path in (built.path / "pins").iterdir()] == ["other"]
    assert files_outside_pins(built) == before


@pytest.mark.parametrize("query", ["", "\ud800", None, 7, b"q"])
def test_what_is_no_name_is_refused(built: IndexFolder, query: str) -> None:
    for call in (lambda: built.pin(query, 0), lambda: built.unpin(query)):
        with pytest.raises(TidingsError, match="a query's id"):
            call()
    with pytest.raises(TidingsError, match="a batch"):
        built.pin("q", -1)


@pytest.mark.parametrize("query", ["a query", "Q/1", "q"])
def test_pins_of_an_earlier_release_are_found(built: IndexFolder, query: str) -> None:
    former = built.path / "pins" / quote(query, safe="")
    former.mkdir(parents=True)
    (former / f"{5:020d}").write_text("1")
    built.put(built.manifest(1)._replace(version=2))
    assert built.pin(query, 5) == 1
    assert built.pin(query, 6) == 2
    assert len([*(built.path / "pins").iterdir()]) == 1
    built.unpin(query)
    assert not [*(built.path / "pins").iterdir()]


def test_stray_files_are_ignored(tmp_path: Path) -> None:
    work = workload(seed=3, events=5, subscribers=4)
    path = tmp_path / "index"
    path.mkdir()
    for name in ("version-x.json", "version-.json", "version-٣٣٣٣٣٣٣٣٣٣٣٣.json", "x.sealed"):
        (path / name).write_text("stray")
    for name in ("version-000000000009.json", "d.sealed", "holds/7-x", "pins/q/d", ".new-d"):
        (path / name).mkdir(parents=True)
    (path / "holds" / "8x-abc").write_text("")
    (path / "holds" / f"9-{'a' * 32}").mkdir()
    (path / "pins" / "stray").write_text("x")
    (path / "pins" / "q" / f"{0:020d}").write_text("garbage")
    with open_store(tmp_path / "s.db") as store:
        store.catalogue.put(*work.subscribers, *work.subscriptions)
        with Publisher(path, store.history) as publisher:
            assert publisher.publish() == 1
            folder = publisher.folder
    assert not [*locked_versions(path)]
    assert folder.needed() == {1}
    with pytest.raises(Damaged, match=r"pins/q/0+ is damaged: it holds no version number"):
        folder.pin("q", 0)
    assert folder.pin("q", 1) == 1


def test_file_names_are_unique_and_stay_in_their_folder() -> None:
    names = [file_name(name) for name in [*HOSTILE, ""]]
    assert len({name.lower() for name in names}) == len(names)
    assert all(is_file_name(name) and len(name) < 200 for name in names)
    assert file_name("2b6e3c1a-0f") == "2b6e3c1a-0f"


def replace_with(path: Path, kind: str) -> None:
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    else:  # it seems to have 300 GB
        with path.open("wb") as file:
            file.truncate(300 << 30)


@pytest.mark.parametrize("kind", ["pipe", "loop", "endless", "huge"])
def test_files_that_never_end_are_refused_or_ignored(kind: str, built: IndexFolder) -> None:
    version = built.pin("q", 1)
    replace_with(built.path / "pins" / "q" / f"{1:020d}", kind)
    with pytest.raises(Damaged, match="holds no version number"):
        built.pin("q", 1)
    (built.path / "holds").mkdir(exist_ok=True)
    replace_with(built.path / "holds" / f"{version}-{'a' * 32}", kind)
    assert built.needed() == {version}
    built.clean()
    [index] = [*built.path.glob("*index.sealed")]
    replace_with(index, kind)
    forget()
    with pytest.raises(Damaged, match=index.name):
        serve(built, version)
    replace_with(built.path / f"version-{version:012d}.json", kind)
    with pytest.raises(Damaged, match=f"version {version} .* cannot be read"):
        built.manifest(version)


@pytest.mark.parametrize("name", ["pins", "pins/q", "holds"])
def test_a_folder_that_cannot_be_written_to_is_named(name: str, built: IndexFolder) -> None:
    (built.path / name).parent.mkdir(exist_ok=True)
    (built.path / name).symlink_to("missing/folder")
    with pytest.raises(TidingsError, match=f"{built.path} cannot be written to"):
        built.lock_newest() if name == "holds" else built.pin("q", 1)
    built.clean()
