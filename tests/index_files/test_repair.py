"""Repair: damaged files are rebuilt as they were, and a version number never changes meaning."""

from pathlib import Path
from typing import Any

import pytest
from tests.index_files.test_publisher import NAMES, matched_names, subscribe

from tidings.errors import TidingsError
from tidings.index_files import publisher as publisher_module
from tidings.index_files.base_files import write_base
from tidings.index_files.mapped_file import DiskFull
from tidings.index_files.publisher import Publisher
from tidings.index_files.repair import is_intact
from tidings.index_files.version_cache import FolderPolicies, forget, serve
from tidings.index_files.versions import IndexFolder
from tidings.store import open_store
from tidings.testing import workload


def damage(path: Path, how: str) -> None:
    """Damage a file as a faulty disk or a clean-up might."""
    if how == "gone":
        path.unlink()
    else:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content if how == "flipped" else content[: len(content) // 2])


@pytest.mark.parametrize("how", ["gone", "flipped", "cut"])
@pytest.mark.parametrize("parts", [1, 2])
def test_a_publisher_that_starts_rebuilds_whatever_is_damaged(store, tmp_path, parts, how):
    """Both versions stay the same: the newest, and an older one that a batch is pinned to."""
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history, parts) as publisher:
        pinned, folder = publisher.publish(), publisher.folder
        assert folder.pin("q", 0) == pinned
        for name in NAMES[1:]:
            subscribe(store, name)
        newest = publisher.publish()
    seen = {pinned: ["ann"], newest: sorted(NAMES)}
    for path in sorted(folder.path.glob("*.sealed")):
        damage(path, how)
        forget()
        with Publisher(tmp_path / "index", store.history, parts) as publisher:
            assert publisher.publish() == newest
        forget()
        assert {version: matched_names(folder, version) for version in seen} == seen
        policies = FolderPolicies(folder, newest)
        assert all(policies.policy(name) is not None for name in NAMES)
        for version in seen:
            for part in folder.manifest(version).parts:
                assert all(is_intact(folder.path, part, name) for name in part.files)


def test_a_repair_that_fails_on_a_full_disk_is_retried(store, tmp_path, monkeypatch):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        version, folder = publisher.publish(), publisher.folder
    damage(next(folder.path.glob("*-index.sealed")), "cut")

    with Publisher(tmp_path / "index", store.history) as publisher:
        with monkeypatch.context() as patch:
            patch.setattr(publisher_module, "write_base", disk_full)
            with pytest.raises(DiskFull):
                publisher.publish()
        assert folder.newest() == version == publisher.publish()
    assert matched_names(folder, version) == ["ann"]


def test_intact_files_are_not_rebuilt(store, tmp_path):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "index").glob("*[dn]")}
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(before) == 4


def truncate_manifest(folder: IndexFolder, version: int) -> None:
    (folder.path / f"version-{version:012d}.json").write_text("{")


def test_versions_that_cannot_be_rebuilt_are_reported_and_a_new_one_is_built(store, tmp_path):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        first, folder = publisher.publish(), publisher.folder
        assert folder.pin("q", 0) == first
        subscribe(store, "bob")
        newest = publisher.publish()
        assert folder.pin("q", 1) == newest
    subscribe(store, "cy")
    truncate_manifest(folder, first)
    truncate_manifest(folder, newest)
    with Publisher(tmp_path / "index", store.history) as publisher:
        assert publisher.publish() == newest + 1
    assert matched_names(folder, newest + 1) == ["ann", "bob", "cy"]
    for batch, version in enumerate((first, newest)):
        assert folder.pin("q", batch) == version
        with pytest.raises(TidingsError, match=rf"version {version} .* from a new checkpoint"):
            folder.manifest(version)


def test_a_pinned_number_is_not_reused_after_its_version_is_gone(store, tmp_path):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
        folder = publisher.folder
        subscribe(store, "bob")
        pinned = publisher.publish()
        assert folder.pin("q", 0) == pinned
    folder.remove(pinned)
    with Publisher(tmp_path / "index", store.history) as publisher:
        assert publisher.publish() == pinned + 1
    with pytest.raises(TidingsError, match=rf"version {pinned} .* cannot be read"):
        folder.manifest(folder.pin("q", 0))


def test_a_damaged_version_keeps_its_number_when_the_disk_is_full(store, tmp_path, monkeypatch):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        version, folder = publisher.publish(), publisher.folder
    truncate_manifest(folder, version)
    with Publisher(tmp_path / "index", store.history) as publisher:
        with monkeypatch.context() as patch:
            patch.setattr(publisher_module, "write_base", disk_full)
            with pytest.raises(DiskFull):
                publisher.publish()
        assert publisher.publish() == version + 1


@pytest.mark.parametrize("which", ["*-index", "00000004*-change"])
@pytest.mark.parametrize("parts", [1, 2])
def test_a_file_that_versions_share_is_rebuilt_once(store, tmp_path, monkeypatch, parts, which):
    names = [f"p{number}" for number in range(9)]
    with Publisher(tmp_path / "index", store.history, parts) as publisher:
        seen = {}
        for number, name in enumerate(names, start=1):
            subscribe(store, name)
            version = publisher.publish()
            seen[version] = names[:number]
    folder, calls = publisher.folder, list[Any]()
    damage(min(folder.path.glob(f"{which}.sealed")), "cut")

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return write_base(*arguments)

    monkeypatch.setattr(publisher_module, "write_base", counted)
    forget()
    with Publisher(tmp_path / "index", store.history, parts) as publisher:
        assert publisher.publish() == version
    assert len(calls) == 1
    kept = dict(list(seen.items())[-8:])
    assert {number: matched_names(folder, number) for number in kept} == kept
    subscribe(store, "last")
    with Publisher(tmp_path / "index", store.history, parts) as publisher:
        assert matched_names(folder, publisher.publish()) == ["last", *names]


def test_a_version_is_rebuilt_in_its_own_number_of_parts(store, tmp_path):
    for name in NAMES:
        subscribe(store, name)
    with Publisher(tmp_path / "index", store.history, parts=3) as publisher:
        pinned, folder = publisher.publish(), publisher.folder
        assert folder.pin("q", 0) == pinned
    damage(max(folder.path.glob("*-index.sealed")), "cut")
    with Publisher(tmp_path / "index", store.history) as publisher:
        newest = publisher.publish()
    assert [len(folder.manifest(version).parts) for version in (pinned, newest)] == [3, 1]
    assert matched_names(folder, pinned) == matched_names(folder, newest) == sorted(NAMES)


@pytest.mark.parametrize("text", [b"[" * 100_000, b"{}", b"1" * 5_000])
def test_a_publisher_replaces_a_version_whose_manifest_is_damaged(
    tmp_path: Path, text: bytes
) -> None:
    work = workload(seed=3, events=5, subscribers=4)
    with open_store(tmp_path / "s.db") as store:
        store.catalogue.put(*work.subscribers, *work.subscriptions)
        with Publisher(tmp_path / "index", store.history) as publisher:
            folder, version = publisher.folder, publisher.publish()
        (folder.path / "version-000000000001.json").write_bytes(text)
        forget()
        with Publisher(tmp_path / "index", store.history) as publisher:
            assert publisher.publish() == version + 1
    assert serve(folder, version + 1).size == len(work.subscriptions)


def disk_full(*_: Any) -> None:
    raise DiskFull("no space")
