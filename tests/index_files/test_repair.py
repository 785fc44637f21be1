"""What is damaged in a folder is made anew, as it was, and no number ever shows something else."""

from pathlib import Path
from typing import Any

import pytest
from tests.index_files.test_publisher import NAMES, wants, who

from tidings.errors import TidingsError
from tidings.index_files import publisher as publishers
from tidings.index_files.base_files import write_base
from tidings.index_files.mapped_file import DiskFull
from tidings.index_files.publisher import Publisher
from tidings.index_files.repair import is_intact
from tidings.index_files.version_cache import FolderPolicies, forget
from tidings.index_files.versions import IndexFolder


def damage(path: Path, how: str) -> None:
    """Do to a file what a disk may do, or who cleans up."""
    if how == "gone":
        path.unlink()
    else:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content if how == "flipped" else content[: len(content) // 2])


@pytest.mark.parametrize("how", ["gone", "flipped", "cut"])
@pytest.mark.parametrize("parts", [1, 2])
def test_whatever_is_damaged_a_publisher_that_starts_makes_anew(store, tmp_path, parts, how):
    """Each version is what it was: the newest, and an older one that a batch is pinned to."""
    wants(store, "ann")
    with Publisher(tmp_path / "index", store.history, parts) as publisher:
        pinned, folder = publisher.publish(), publisher.folder
        assert folder.pin("q", 0) == pinned
        for name in NAMES[1:]:
            wants(store, name)
        newest = publisher.publish()
    seen = {pinned: ["ann"], newest: sorted(NAMES)}
    for path in sorted(folder.path.glob("*.sealed")):
        damage(path, how)
        forget()
        with Publisher(tmp_path / "index", store.history, parts) as publisher:
            assert publisher.publish() == newest
        forget()
        assert {version: who(folder, version) for version in seen} == seen
        policies = FolderPolicies(folder, newest)
        assert all(policies.policy(name) is not None for name in NAMES)
        for version in seen:
            for part_manifest in folder.manifest(version).parts:
                assert all(
                    is_intact(folder.path, part_manifest, name) for name in part_manifest.files
                )


def test_what_cannot_be_mended_for_want_of_room_stays_and_is_tried_again(
    store, tmp_path, monkeypatch
):
    wants(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        version, folder = publisher.publish(), publisher.folder
    damage(next(folder.path.glob("*-index.sealed")), "cut")

    with Publisher(tmp_path / "index", store.history) as publisher:
        with monkeypatch.context() as patch:
            patch.setattr(publishers, "write_base", full)
            with pytest.raises(DiskFull):
                publisher.publish()
        assert folder.newest() == version == publisher.publish()
    assert who(folder, version) == ["ann"]


def test_what_is_whole_is_not_made_anew(store, tmp_path):
    wants(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "index").glob("*[dn]")}
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(before) == 4


def tear(folder: IndexFolder, version: int) -> None:
    (folder.path / f"version-{version:012d}.json").write_text("{")


def test_versions_that_cannot_be_made_again_are_told_and_the_next_is_begun_anew(store, tmp_path):
    wants(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        first, folder = publisher.publish(), publisher.folder
        assert folder.pin("q", 0) == first
        wants(store, "bob")
        newest = publisher.publish()
        assert folder.pin("q", 1) == newest
    wants(store, "cy")
    tear(folder, first)
    tear(folder, newest)
    with Publisher(tmp_path / "index", store.history) as publisher:
        assert publisher.publish() == newest + 1
    assert who(folder, newest + 1) == ["ann", "bob", "cy"]
    for batch, version in enumerate((first, newest)):
        assert folder.pin("q", batch) == version
        with pytest.raises(TidingsError, match=rf"version {version} .* from a new checkpoint"):
            folder.manifest(version)


def test_a_number_that_is_pinned_is_not_given_again_though_its_version_is_gone(store, tmp_path):
    wants(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
        folder = publisher.folder
        wants(store, "bob")
        pinned = publisher.publish()
        assert folder.pin("q", 0) == pinned
    folder.remove(pinned)
    with Publisher(tmp_path / "index", store.history) as publisher:
        assert publisher.publish() == pinned + 1
    with pytest.raises(TidingsError, match=rf"version {pinned} .* cannot be read"):
        folder.manifest(folder.pin("q", 0))


def test_a_torn_version_keeps_its_number_though_there_is_no_room_for_the_next(
    store, tmp_path, monkeypatch
):
    wants(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        version, folder = publisher.publish(), publisher.folder
    tear(folder, version)
    with Publisher(tmp_path / "index", store.history) as publisher:
        with monkeypatch.context() as patch:
            patch.setattr(publishers, "write_base", full)
            with pytest.raises(DiskFull):
                publisher.publish()
        assert publisher.publish() == version + 1


@pytest.mark.parametrize("which", ["*-index", "00000004*-change"])
@pytest.mark.parametrize("parts", [1, 2])
def test_a_file_that_many_versions_share_is_mended_once(store, tmp_path, monkeypatch, parts, which):
    names = [f"p{number}" for number in range(9)]
    with Publisher(tmp_path / "index", store.history, parts) as publisher:
        seen = {}
        for number, name in enumerate(names, start=1):
            wants(store, name)
            version = publisher.publish()
            seen[version] = names[:number]
    folder, made = publisher.folder, list[Any]()
    damage(min(folder.path.glob(f"{which}.sealed")), "cut")

    def counted(*given: Any) -> Any:
        made.append(given)
        return write_base(*given)

    monkeypatch.setattr(publishers, "write_base", counted)
    forget()
    with Publisher(tmp_path / "index", store.history, parts) as publisher:
        assert publisher.publish() == version
    assert len(made) == 1
    assert {each: who(folder, each) for each in list(seen)[-8:]} == dict(list(seen.items())[-8:])
    wants(store, "last")
    with Publisher(tmp_path / "index", store.history, parts) as publisher:
        assert who(folder, publisher.publish()) == ["last", *names]


def test_a_version_in_other_parts_is_mended_in_its_own(store, tmp_path):
    for name in NAMES:
        wants(store, name)
    with Publisher(tmp_path / "index", store.history, parts=3) as publisher:
        pinned, folder = publisher.publish(), publisher.folder
        assert folder.pin("q", 0) == pinned
    damage(max(folder.path.glob("*-index.sealed")), "cut")
    with Publisher(tmp_path / "index", store.history) as publisher:
        newest = publisher.publish()
    assert [len(folder.manifest(each).parts) for each in (pinned, newest)] == [3, 1]
    assert who(folder, pinned) == who(folder, newest) == sorted(NAMES)


def full(*_: Any) -> None:
    raise DiskFull("no room")
