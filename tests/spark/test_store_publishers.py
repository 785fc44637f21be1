"""Stores passed as subscriptions: calls share a publisher, and pins outlive the process."""

import subprocess
import sys
import warnings
from pathlib import Path
from threading import active_count
from types import SimpleNamespace
from typing import Any

import pytest

from tidings import Subscriber, Subscription, TidingsError
from tidings.errors import InvalidForm, InvalidPolicy
from tidings.index_files.publisher import Publisher
from tidings.index_files.versions import IndexFolder
from tidings.spark.inputs import (
    FOLDER,
    PublishSettings,
    StorePublishers,
    matcher_source,
    store_publishers,
)
from tidings.spark.match_stage.matcher_source import FolderSource
from tidings.store import Store, open_store

pytestmark = pytest.mark.usefixtures("unfollowed")


def frame(parent: Path | None = None, *, streaming: bool = True) -> Any:
    """Return a stand-in for publications: a session with a setting, and whether they stream."""
    settings = {FOLDER: str(parent)} if parent else {}
    return SimpleNamespace(
        sparkSession=SimpleNamespace(conf=SimpleNamespace(get=settings.get)),
        isStreaming=streaming,
        schema=SimpleNamespace(names=[]),
    )


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "store.db") as opened:
        opened.catalogue.put(Subscriber("ann"), Subscription("s", "ann", "x = 1"))
        yield opened


def folder_of(publications: Any, store: Store, parts: int = 1) -> IndexFolder:
    source = matcher_source(publications, store, None, parts)
    assert isinstance(source, FolderSource)
    return source.folder


def test_calls_share_a_publisher_and_its_thread(store, tmp_path):
    first = folder_of(frame(tmp_path / "index"), store)
    threads = active_count()
    assert {folder_of(frame(tmp_path / "index"), store) for _ in range(20)} == {first}
    assert active_count() == threads
    assert len(list((tmp_path / "index").iterdir())) == 1


def test_other_parts_parents_and_stores_have_separate_folders(store, tmp_path):
    with open_store(tmp_path / "another.db") as another:
        folders = [
            folder_of(frame(tmp_path / "index"), store),
            folder_of(frame(tmp_path / "index"), store, parts=2),
            folder_of(frame(tmp_path / "elsewhere"), store),
            folder_of(frame(tmp_path / "index"), another),
        ]
    assert len(set(folders)) == 4
    assert [len(each.manifest(1).parts) for each in folders] == [1, 2, 1, 1]


def test_a_batch_starts_no_thread_and_shares_its_files_with_the_next(store, tmp_path):
    threads = active_count()
    first = folder_of(frame(tmp_path, streaming=False), store)
    store.catalogue.put(Subscriber("bob"))
    source = matcher_source(frame(tmp_path, streaming=False), store)
    assert isinstance(source, FolderSource)
    assert (source.folder, source.version) == (first, 2)
    assert active_count() == threads
    assert len(list(first.path.glob("*-index.sealed"))) == 1


def test_a_store_that_is_opened_again_replaces_the_closed_one(tmp_path):
    seen = []
    for number in range(3):
        with open_store(tmp_path / "store.db") as store:
            store.catalogue.put(Subscriber(f"u{number}"))
            folder = folder_of(frame(tmp_path / "index"), store)
            assert folder.manifest(folder.newest()).source == store.history.newest()
            seen.append((folder, folder.pin("q", 0), folder.newest()))
    assert seen == [(folder, 1, version) for version in (1, 2, 3)]


RUN = """
import sys
from types import SimpleNamespace as Namespace
from tidings import Subscriber
from tidings.spark.inputs import matcher_source
from tidings.spark.inputs import FOLDER
from tidings.store import open_store

store = open_store(sys.argv[1])
store.catalogue.put(Subscriber(sys.argv[3]))
session = Namespace(conf=Namespace(get={FOLDER: sys.argv[2]}.get))
folder = matcher_source(Namespace(sparkSession=session, isStreaming=True), store).folder
print([folder.manifest(folder.pin("q", batch)).source for batch in range(int(sys.argv[4]))])
"""


def test_a_batch_replayed_by_another_process_sees_the_same_version(tmp_path):
    command = [sys.executable, "-c", RUN, str(tmp_path / "store.db"), str(tmp_path / "index")]
    printed = [
        subprocess.run([*command, name, count], capture_output=True, text=True, check=True).stdout
        for name, count in (("ann", "1"), ("bob", "2"))
    ]
    assert printed == ["[1]\n", "[1, 2]\n"]


def test_a_stream_whose_pins_are_temporary_warns_once(store, tmp_path):
    with pytest.warns(UserWarning, match=f"may see other subscriptions. Set {FOLDER} to a durable"):
        first = folder_of(frame(), store)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert folder_of(frame(), store) == first
        folder_of(frame(streaming=False), store)
        folder_of(frame(tmp_path / "index"), store)


def test_two_processes_cannot_follow_one_store_into_one_folder(store, tmp_path):
    settings = PublishSettings(1, str(tmp_path / "index"), streaming=True)
    path = tmp_path / "index" / f"tidings-store-{store.history.store_id()}-1"
    publishers = StorePublishers()
    with (
        Publisher(path, store.history),
        pytest.raises(TidingsError, match="stop it first, or choose another folder"),
    ):
        publishers.folder(store, settings)
    assert (store.history.store_id(), settings) not in publishers
    assert publishers.folder(store, settings).path == path


def test_wrong_arguments_are_refused_before_anything_is_published(store, tmp_path):
    with pytest.raises(InvalidForm, match="come with their subscribers"):
        matcher_source(frame(tmp_path / "index"), store, {"ann": {"k": 1}})
    with pytest.raises(InvalidPolicy, match="are ranked by"):
        matcher_source(frame(tmp_path / "index"), store, seal=False)
    assert not (tmp_path / "index").exists()
    settings = PublishSettings(1, str(tmp_path / "index"), streaming=True)
    assert (store.history.store_id(), settings) not in store_publishers()


@pytest.mark.parametrize("streaming", [False, True])
def test_a_parent_folder_that_does_not_exist_is_made(store, tmp_path, streaming):
    parent = tmp_path / "new" / "parent"
    folder = folder_of(frame(parent, streaming=streaming), store)
    assert folder.path.is_relative_to(parent)
    wanted = [Subscription("s9", "ann", "n = 1")]
    assert matcher_source(frame(tmp_path / "other", streaming=False), wanted).parts == 1
    assert any((tmp_path / "other").iterdir())


def test_a_parent_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        TidingsError, match=r"spark.tidings.index = .*file/index: index files cannot"
    ):
        matcher_source(frame(tmp_path / "file" / "index"), [Subscription("s9", "ann", "n = 1")])
