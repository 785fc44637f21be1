"""The cache of opened versions: deltas are applied once, older versions are opened again."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tidings import Subscriber
from tidings.index_files.base_files import new_part, write_delta
from tidings.index_files.manifest import Delta, Manifest, PartManifest
from tidings.index_files.subscriber_bundle import SubscriberBundle
from tidings.index_files.version_cache import PartReader
from tidings.index_files.versions import IndexFolder


class View:
    """The names that were applied to a base, and how often a base was opened."""

    opened = 0

    def __init__(self) -> None:
        self.names: list[str] = []
        View.opened += 1

    def apply(self, bundles: Sequence[SubscriberBundle]) -> None:
        self.names += [bundle.name for bundle in bundles]


@pytest.fixture
def folder(tmp_path: Path) -> IndexFolder:
    """Return a folder in which version n has n - 1 deltas, and version 5 a new base."""
    folder, part = IndexFolder(tmp_path), new_part(1, 0)
    for version in range(1, 5):
        folder.put(Manifest(version, version, (part,)))
        delta = Delta(f"{version}-change.sealed", 1)
        write_delta(
            tmp_path / delta.file, [SubscriberBundle(f"u{version}", Subscriber(f"u{version}"))]
        )
        part = PartManifest(
            part.index, part.subscribers, part.archive, deltas=(*part.deltas, delta)
        )
    folder.put(Manifest(5, 5, (new_part(2, 0),)))
    View.opened = 0
    return folder


def test_a_newer_version_applies_only_its_new_deltas(folder: IndexFolder) -> None:
    reader = PartReader(folder, 0, lambda _path, _part: View())
    names = [list(reader.at(version).names) for version in (2, 2, 4)]
    assert names == [["u1"], ["u1"], ["u1", "u2", "u3"]]
    assert View.opened == 1


def test_an_older_version_and_a_new_base_are_opened_again(folder: IndexFolder) -> None:
    reader = PartReader(folder, 0, lambda _path, _part: View())
    assert [len(reader.at(version).names) for version in (4, 2, 5)] == [3, 1, 0]
    assert View.opened == 3


def test_a_failed_update_does_not_leave_a_view_half_updated(folder: IndexFolder) -> None:
    reader = PartReader(folder, 0, lambda _path, _part: View())
    reader.at(2)
    path = folder.path / "3-change.sealed"
    content = path.read_bytes()
    path.write_bytes(b"damaged")
    with pytest.raises(ValueError, match="is not an index file"):
        reader.at(4)
    path.write_bytes(content)
    assert reader.at(4).names == ["u1", "u2", "u3"]
    assert View.opened == 2
