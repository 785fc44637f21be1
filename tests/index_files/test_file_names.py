"""Ids, manifests and stray files in a folder: nothing leads out of it, and nothing is a riddle."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from tidings.errors import TidingsError
from tidings.index_files.base_files import build_folder
from tidings.index_files.file_names import file_name
from tidings.index_files.manifest import is_file_name
from tidings.index_files.mapped_file import Damaged
from tidings.index_files.publisher import Publisher
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.index_files.version_cache import forget, serve
from tidings.index_files.versions import IndexFolder, locked_versions
from tidings.store import open_store
from tidings.testing import workload

HOSTILE = [".", "..", "../..", "/", "/etc", "a/../../b", "x" * 300, "a\0b", "A", "a", "ä", "%2e%2e"]
HOSTILE += ["=a", ".new-x", "\ud800", "a b", "*", "?", "~", "\\..", "-", "CON"]


@pytest.fixture
def folder(tmp_path: Path) -> IndexFolder:
    given = workload(seed=3, events=1, subscribers=4)
    forget()
    place = tmp_path / "below" / "index"
    place.mkdir(parents=True)
    return build_folder(place, bundle_subscribers(given.subscribers, given.subscriptions))


def test_names_of_files_stay_apart_and_in_their_folder() -> None:
    names = [file_name(each) for each in [*HOSTILE, ""]]
    assert len({each.lower() for each in names}) == len(names)
    assert all(is_file_name(each) and len(each) < 200 for each in names)
    assert file_name("2b6e3c1a-0f") == "2b6e3c1a-0f"


def there(folder: IndexFolder) -> list[str]:
    top = folder.path.parent.parent
    pins = folder.path / "pins"
    return sorted(str(each) for each in top.rglob("*") if pins not in (each, *each.parents))


@pytest.mark.parametrize("query", [each for each in HOSTILE if each != "\ud800"])
def test_a_query_of_any_name_is_pinned_and_unpinned_below_the_pins(
    folder: IndexFolder, query: str
) -> None:
    before = there(folder)
    other = folder.pin("other", 0)
    assert folder.pin(query, 3) == other == 1
    [made] = [each for each in (folder.path / "pins").iterdir() if each.name != "other"]
    assert made.name == file_name(query)
    folder.unpin(query)
    assert [each.name for each in (folder.path / "pins").iterdir()] == ["other"]
    assert there(folder) == before


@pytest.mark.parametrize("query", ["", "\ud800", None, 7, b"q"])
def test_what_is_no_name_is_refused(folder: IndexFolder, query: str) -> None:
    for ask in (lambda: folder.pin(query, 0), lambda: folder.unpin(query)):
        with pytest.raises(TidingsError, match="a query's id"):
            ask()
    with pytest.raises(TidingsError, match="a batch"):
        folder.pin("q", -1)


@pytest.mark.parametrize("query", ["a query", "Q/1", "q"])
def test_pins_of_an_earlier_release_are_found(folder: IndexFolder, query: str) -> None:
    former = folder.path / "pins" / quote(query, safe="")
    former.mkdir(parents=True)
    (former / f"{5:020d}").write_text("1")
    folder.put(folder.manifest(1)._replace(version=2))
    assert folder.pin(query, 5) == 1
    assert folder.pin(query, 6) == 2
    assert len([*(folder.path / "pins").iterdir()]) == 1
    folder.unpin(query)
    assert not [*(folder.path / "pins").iterdir()]


def manifest(folder: IndexFolder) -> Path:
    return folder.path / "version-000000000001.json"


GOOD = {"version": 1, "source": 1, "mark": 0}
SHELF = {"index": "i.sealed", "people": "p.sealed", "archive": "a.sealed", "size": 1}
BAD: list[object] = [
    [],
    None,
    1,
    {},
    {"version": 2},
    GOOD | {"shelves": {}},
    GOOD | {"shelves": []},
    GOOD | {"shelves": [None]},
    GOOD | {"shelves": [SHELF]},
    GOOD | {"shelves": [SHELF | {"changes": [1]}]},
    GOOD | {"shelves": [SHELF | {"changes": [[]]}]},
    GOOD | {"shelves": [SHELF | {"changes": [["c.sealed", 1, False, 1, 1]]}]},
    GOOD | {"shelves": [SHELF | {"changes": [], "class": "x"}]},
    GOOD | {"shelves": [SHELF | {"changes": []}], "source": -1},
    GOOD | {"shelves": [SHELF | {"changes": []}], "source": 2**64},
    GOOD | {"shelves": [SHELF | {"changes": []}], "mark": 1.5},
    GOOD | {"shelves": [SHELF | {"changes": []}], "mark": True},
    *(
        GOOD | {"shelves": [SHELF | {"changes": [], "index": name}]}
        for name in ["../i.sealed", "/etc/passwd", "", "..", None, 5, "a\0b", "x" * 300, "a\\b"]
    ),
    GOOD | {"shelves": [SHELF | {"changes": [["../c.sealed", 1, False, 1]]}]},
    GOOD | {"shelves": [SHELF | {"changes": [], "size": 10**30}]},
    GOOD | {"shelves": [SHELF | {"changes": [], "counting": 1}]},
]
BROKEN = [b"", b"{", b"\xff", b"[" * 100_000, b"1" * 5_000, *(json.dumps(x).encode() for x in BAD)]


@pytest.mark.parametrize("text", BROKEN)
def test_a_manifest_that_is_none_is_damaged_and_named(folder: IndexFolder, text: bytes) -> None:
    manifest(folder).write_bytes(text)
    with pytest.raises(Damaged, match=r"version 1 in .*version-000000000001\.json.*publisher"):
        folder.manifest(1)
    with pytest.raises(Damaged):
        serve(folder, 1)
    assert folder.clean() == []  # nobody knows what is needed


@pytest.mark.parametrize("text", [b"[" * 100_000, b"{}", b"1" * 5_000])
def test_a_publisher_makes_a_version_for_one_whose_manifest_is_damaged(
    tmp_path: Path, text: bytes
) -> None:
    given = workload(seed=3, events=5, subscribers=4)
    with open_store(tmp_path / "s.db") as store:
        store.catalogue.put(*given.subscribers, *given.subscriptions)
        with Publisher(tmp_path / "index", store.history) as publisher:
            folder, version = publisher.folder, publisher.publish()
        manifest(folder).write_bytes(text)
        forget()
        with Publisher(tmp_path / "index", store.history) as publisher:
            assert publisher.publish() == version + 1
    assert serve(folder, version + 1).size == len(given.subscriptions)


def test_stray_files_are_passed_over(tmp_path: Path) -> None:
    given = workload(seed=3, events=5, subscribers=4)
    place = tmp_path / "index"
    place.mkdir()
    for name in ("version-x.json", "version-.json", "version-٣٣٣٣٣٣٣٣٣٣٣٣.json", "x.sealed"):
        (place / name).write_text("stray")
    for name in ("version-000000000009.json", "d.sealed", "holds/7-x", "pins/q/d", ".new-d"):
        (place / name).mkdir(parents=True)
    (place / "holds" / "8x-abc").write_text("")
    (place / "holds" / f"9-{'a' * 32}").mkdir()
    (place / "pins" / "stray").write_text("x")
    (place / "pins" / "q" / f"{0:020d}").write_text("garbage")
    with open_store(tmp_path / "s.db") as store:
        store.catalogue.put(*given.subscribers, *given.subscriptions)
        with Publisher(place, store.history) as publisher:
            assert publisher.publish() == 1
            folder = publisher.folder
    assert not [*locked_versions(place)]
    assert folder.needed() == {1}
    with pytest.raises(Damaged, match=r"pins/q/0+ is damaged: it holds no version number"):
        folder.pin("q", 0)
    assert folder.pin("q", 1) == 1


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    (tmp_path / "index" / "publisher.lock").mkdir(parents=True)
    with open_store(tmp_path / "s.db") as store:
        for name in ("taken", "index"):
            with pytest.raises(TidingsError, match=rf"{name} cannot be written to"):
                Publisher(tmp_path / name, store.history)
