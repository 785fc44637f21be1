"""Fingerprints of a folder: another store, or other default policies, start from scratch."""

import json
from pathlib import Path
from shutil import copy

import pytest
from tests.index_files.test_publisher import damage, matched_names, subscribe

from tidings import Policy, Subscription, TidingsError
from tidings.index_files.publisher import Publisher
from tidings.index_files.read_source import Defaults
from tidings.index_files.version_cache import FolderPolicies, forget
from tidings.index_files.versions import IndexFolder
from tidings.store import Store, open_store

NINE = Defaults(others=Policy(k=9))


def publish(path: Path, store: Store, defaults: Defaults | None = None) -> int:
    """Publish once, and return the version."""
    with Publisher(path, store.history, defaults=defaults) as publisher:
        return publisher.publish()


def test_other_default_policies_build_everything_again(store, tmp_path):
    store.catalogue.put(Subscription("s", "dan", "genre = 'drama'"))
    folder = IndexFolder(tmp_path / "index")
    first = publish(folder.path, store)
    assert folder.pin("q", 0) == first
    second = publish(folder.path, store, NINE)
    third = publish(folder.path, store, Defaults({"dan": Policy(k=2)}, Policy(k=9)))
    policies = [FolderPolicies(folder, version) for version in (first, second, third)]
    assert [policy.policy("dan") for policy in policies] == [Policy(), Policy(k=9), Policy(k=2)]
    assert len({policy.version for policy in policies}) == 3
    assert [policies[2].changed_since(policy.version) for policy in policies] == [None, None, set()]
    assert publish(folder.path, store, Defaults({"dan": Policy(k=2)}, Policy(k=9))) == third
    assert folder.pin("q", 0) == first


def test_another_store_builds_everything_again_and_pinned_versions_stay(store, tmp_path):
    subscribe(store, "ann")
    subscribe(store, "bob")
    folder = IndexFolder(tmp_path / "index")
    assert publish(folder.path, store) == folder.pin("q", 0) == 1
    with open_store(tmp_path / "another.db") as another:
        for name in ("cy", "dee", "eve", "fay"):
            subscribe(another, name)
        assert publish(folder.path, another) == 2
        assert publish(folder.path, another) == 2
    assert matched_names(folder, 2) == ["cy", "dee", "eve", "fay"]
    assert matched_names(folder, folder.pin("q", 0)) == ["ann", "bob"]
    assert FolderPolicies(folder, 2).changed_since(FolderPolicies(folder, 1).version) is None


def test_an_older_copy_of_a_store_builds_everything_again(store, tmp_path):
    folder = IndexFolder(tmp_path / "index")
    subscribe(store, "ann")
    store.close()
    copy(tmp_path / "store.db", tmp_path / "copy.db")
    with open_store(tmp_path / "store.db") as grown:
        subscribe(grown, "bob")
        assert publish(folder.path, grown) == folder.pin("q", 0)
    damage(next(folder.path.glob("*-index.sealed")), "cut")
    with open_store(tmp_path / "copy.db") as restored:
        assert matched_names(folder, publish(folder.path, restored)) == ["ann"]
    with pytest.raises(TidingsError, match=r"version 1 .* cannot be read"):
        folder.manifest(1)


def remove_fingerprint(folder: IndexFolder, version: int) -> None:
    """Make a version look as if an earlier release had written it."""
    path = folder.path / f"version-{version:012d}.json"
    form = json.loads(path.read_text())
    assert form.pop("mark")
    path.write_text(json.dumps(form))


def test_a_folder_without_fingerprints_is_built_again_once_and_keeps_its_pins(store, tmp_path):
    subscribe(store, "ann")
    folder = IndexFolder(tmp_path / "index")
    assert publish(folder.path, store) == folder.pin("q", 0)
    remove_fingerprint(folder, 1)
    subscribe(store, "bob")
    assert [publish(folder.path, store) for _ in range(2)] == [2, 2]
    assert folder.manifest(2).parts[0].deltas == ()
    assert matched_names(folder, 1) == ["ann"]
    assert FolderPolicies(folder, 1).version == folder.manifest(1).source


@pytest.mark.parametrize("defaults", [None, NINE])
def test_damage_is_repaired_only_from_the_same_source(store, tmp_path, defaults):
    subscribe(store, "ann")
    folder = IndexFolder(tmp_path / "index")
    assert publish(folder.path, store) == folder.pin("q", 0)
    damage(next(folder.path.glob("*-index.sealed")), "cut")
    forget()
    newest = publish(folder.path, store, defaults)
    assert matched_names(folder, newest) == ["ann"]
    if defaults is None:
        assert newest == 1
    else:
        with pytest.raises(TidingsError, match=r"version 1 .* from a new checkpoint"):
            folder.manifest(1)
