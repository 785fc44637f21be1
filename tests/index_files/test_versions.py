"""A version that a process holds stays, and goes when the process does, however it ends."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tidings import Event, Subscriber, Subscription, TidingsError
from tidings.index_files.base_files import new_part
from tidings.index_files.manifest import Manifest
from tidings.index_files.publisher import Publisher
from tidings.index_files.version_cache import serve
from tidings.index_files.versions import KEPT_VERSIONS, IndexFolder
from tidings.store import open_store

HOLDER = """
import sys
from pathlib import Path
from tidings.index_files.versions import IndexFolder

print(IndexFolder(Path(sys.argv[1])).lock_newest(), flush=True)
input()
"""


def grown(folder: IndexFolder, versions: range) -> None:
    """Add versions, each with files of its own."""
    for version in versions:
        part_manifest = new_part(version, 0)
        for name in part_manifest.files:
            (folder.path / name).touch()
        folder.put(Manifest(version, version, (part_manifest,)))


def there(folder: IndexFolder, version: int) -> bool:
    return all((folder.path / name).exists() for name in new_part(version, 0).files)


def test_what_a_process_holds_stays_until_it_is_killed(tmp_path: Path) -> None:
    folder = IndexFolder(tmp_path)
    grown(folder, range(1, 3))
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline().strip() == "2"
        grown(folder, range(3, KEPT_VERSIONS + 4))
        folder.clean()
        assert (there(folder, 1), there(folder, 2), there(folder, 3)) == (False, True, False)
        holder.send_signal(signal.SIGKILL)
    removed = folder.clean()
    assert not there(folder, 2)
    assert "version-000000000002.json" in removed
    assert list((tmp_path / "holds").iterdir()) == []


def test_a_version_is_held_once_by_a_process_and_keeps_answering(tmp_path: Path) -> None:
    with (
        open_store(tmp_path / "store.db") as store,
        Publisher(tmp_path / "index", store.history, min_changed=1) as publisher,
    ):
        store.catalogue.put(Subscriber("ann"), Subscription("s", "ann", "x = 1"))
        publisher.publish()
        held = publisher.folder.lock_newest()
        assert publisher.folder.lock_newest() == held
        for number in range(2 * KEPT_VERSIONS):
            name = f"u{number}"
            store.catalogue.put(Subscriber(name), Subscription(f"s{number}", name, "x = 1"))
            publisher.publish()
            publisher.settle()
        assert publisher.folder.newest() > held + KEPT_VERSIONS
        assert len(list((publisher.folder.path / "holds").iterdir())) == 1
        event = Event("e", {"x": 1}, published_at=0)
        assert len(serve(publisher.folder, held).wanted([event]).subscribers) == 1


def test_an_empty_folder_has_nothing_to_hold(tmp_path: Path) -> None:
    with pytest.raises(TidingsError, match="a publisher must write one"):
        IndexFolder(tmp_path).lock_newest()
