"""A folder knows whose it is: another store, or other default policies, begin anew in it."""

import json
from pathlib import Path
from shutil import copy

import pytest
from tests.index_files.test_publisher import wants, who
from tests.index_files.test_repair import damage

from tidings import Policy, Sliding, Subscription, TidingsError
from tidings.index_files.publisher import Publisher
from tidings.index_files.read_source import Defaults
from tidings.index_files.version_cache import FolderPolicies, forget
from tidings.index_files.versions import IndexFolder
from tidings.store import Store, open_store

NINE = Defaults(others=Policy(k=9))


def published(path: Path, store: Store, defaults: Defaults | None = None) -> int:
    with Publisher(path, store.history, defaults=defaults) as publisher:
        return publisher.publish()


def test_other_default_policies_begin_anew(store, tmp_path):
    store.catalogue.put(Subscription("s", "dan", "genre = 'drama'"))
    folder = IndexFolder(tmp_path / "index")
    first = published(folder.path, store)
    assert folder.pin("q", 0) == first
    second = published(folder.path, store, NINE)
    third = published(folder.path, store, Defaults({"dan": Policy(k=2)}, Policy(k=9)))
    found = [FolderPolicies(folder, version) for version in (first, second, third)]
    policies = [each.policy("dan") for each in found]
    assert policies == [None, Policy(k=9), Policy(k=2)]
    assert len({each.version for each in found}) == 3
    assert [found[2].changed_since(each.version) for each in found] == [None, None, set()]
    assert published(folder.path, store, Defaults({"dan": Policy(k=2)}, Policy(k=9))) == third
    assert folder.pin("q", 0) == first


def test_another_store_begins_anew_and_pinned_versions_stay(store, tmp_path):
    wants(store, "ann")
    wants(store, "bob")
    folder = IndexFolder(tmp_path / "index")
    assert published(folder.path, store) == folder.pin("q", 0) == 1
    with open_store(tmp_path / "another.db") as another:
        for name in ("cy", "dee", "eve", "fay"):
            wants(another, name)
        assert published(folder.path, another) == 2
        assert published(folder.path, another) == 2
    assert who(folder, 2) == ["cy", "dee", "eve", "fay"]
    assert who(folder, folder.pin("q", 0)) == ["ann", "bob"]
    assert FolderPolicies(folder, 2).changed_since(FolderPolicies(folder, 1).version) is None


def test_an_older_copy_of_a_store_begins_anew(store, tmp_path):
    folder = IndexFolder(tmp_path / "index")
    wants(store, "ann")
    store.close()
    copy(tmp_path / "store.db", tmp_path / "copy.db")
    with open_store(tmp_path / "store.db") as grown:
        wants(grown, "bob")
        assert published(folder.path, grown) == folder.pin("q", 0)
    damage(next(folder.path.glob("*-index.sealed")), "cut")
    with open_store(tmp_path / "copy.db") as put_back:
        assert who(folder, published(folder.path, put_back)) == ["ann"]
    with pytest.raises(TidingsError, match=r"version 1 .* cannot be read"):
        folder.manifest(1)


def unmarked(folder: IndexFolder, version: int) -> None:
    """Make a version look as if an earlier release had written it."""
    path = folder.path / f"version-{version:012d}.json"
    form = json.loads(path.read_text())
    assert form.pop("mark")
    path.write_text(json.dumps(form))


def test_a_folder_of_an_earlier_release_begins_anew_once_and_keeps_what_is_pinned(store, tmp_path):
    wants(store, "ann")
    folder = IndexFolder(tmp_path / "index")
    assert published(folder.path, store) == folder.pin("q", 0)
    unmarked(folder, 1)
    wants(store, "bob")
    assert [published(folder.path, store) for _ in range(2)] == [2, 2]
    assert folder.manifest(2).parts[0].deltas == ()
    assert who(folder, 1) == ["ann"]
    assert FolderPolicies(folder, 1).version == folder.manifest(1).source


@pytest.mark.parametrize("defaults", [None, NINE])
def test_what_is_damaged_is_made_again_only_from_what_it_was_made_of(store, tmp_path, defaults):
    wants(store, "ann")
    folder = IndexFolder(tmp_path / "index")
    assert published(folder.path, store) == folder.pin("q", 0)
    damage(next(folder.path.glob("*-index.sealed")), "cut")
    forget()
    newest = published(folder.path, store, defaults)
    assert who(folder, newest) == ["ann"]
    if defaults is None:
        assert newest == 1
    else:
        with pytest.raises(TidingsError, match=r"version 1 .* from a new checkpoint"):
            folder.manifest(1)


def test_a_mark_is_that_of_a_source_and_all_that_is_added():
    one, other = Policy(k=1), Policy(k=1, window=Sliding(4))
    given = [
        Defaults(),
        Defaults(others=one),
        Defaults(others=other),
        Defaults({"ann": one}),
        Defaults({"bob": one}),
        Defaults({"ann": other}),
        Defaults({"ann": one, "bob": one}),
    ]
    marks = {each.fingerprint(source) for each in given for source in ("a", "b")}
    assert len(marks) == 2 * len(given)
    both = Defaults({"bob": one, "ann": one})
    assert both.fingerprint("a") == given[-1].fingerprint("a")
    assert [both.policy("ann"), both.policy("cy"), given[1].policy("cy")] == [one, None, one]
