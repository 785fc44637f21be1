"""Sealed files come back as they were, are shared until written to, and tell of damage."""

import errno
import os
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.kernels import access_find, fanout
from tidings.sealed import file
from tidings.sealed.base import seal
from tidings.sealed.file import Damaged, NoRoom
from tidings.sealed.member import members
from tidings.sealed.people import People, hashes_of
from tidings.sealed.served import Served
from tidings.sealed.texts import Texts
from tidings.testing import workload

TREE: dict[str, Any] = {
    "numbers": np.arange(1000, dtype=np.int32),
    "records": np.zeros(7, fanout.ROW),
    "none": np.empty(0, np.float64),
    "grid": np.arange(6.0).reshape(2, 3),
    "names": Texts.of(["ann", "", "böb"]),
    "small": (Counter(a=2), {"x"}, None, 1.5, "text"),
}


def test_a_tree_comes_back(tmp_path):
    size = file.write(tmp_path / "tree", TREE)
    found = file.read(tmp_path / "tree")
    assert size == (tmp_path / "tree").stat().st_size
    for name in ("numbers", "records", "none", "grid"):
        assert found[name].dtype == TREE[name].dtype
        assert found[name].tolist() == TREE[name].tolist()
        assert found[name].flags.writeable
        assert found[name].flags.aligned
    assert list(found["names"]) == ["ann", "", "böb"]
    assert found["small"] == TREE["small"]
    assert [each.name for each in tmp_path.iterdir()] == ["tree"]


def test_what_one_reader_writes_no_other_sees(tmp_path):
    file.write(tmp_path / "tree", TREE)
    one, other = (file.read(tmp_path / "tree")["numbers"] for _ in range(2))
    one[:] = -1
    assert other.tolist() == file.read(tmp_path / "tree")["numbers"].tolist() == list(range(1000))


@pytest.mark.parametrize("at", [0, 15, 20, 30, 60, 300, -5])
def test_a_changed_byte_is_noticed(tmp_path, at):
    path: Path = tmp_path / "tree"
    file.write(path, TREE)
    changed = bytearray(path.read_bytes())
    changed[at] ^= 1
    path.write_bytes(changed)
    with pytest.raises(Damaged, match=r"tree .*makes it anew"):
        file.read(path)


@pytest.mark.parametrize("size", [0, 10, 47, 200, 4000])
def test_a_file_cut_short_is_noticed(tmp_path, size):
    path: Path = tmp_path / "tree"
    file.write(path, TREE)
    os.truncate(path, size)
    with pytest.raises(Damaged, match=r"tree .*makes it anew"):
        file.read(path)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(Damaged, match="cannot be read"):
        file.read(tmp_path / "missing")


class Harmful:
    def __reduce__(self):
        return (os.getenv, ("HOME",))


class Foreign:
    pass


@pytest.mark.parametrize("tree", [Harmful(), Foreign(), hashes_of])
def test_nothing_but_arrays_and_objects_of_tidings_is_made(tmp_path, tree):
    file.write(tmp_path / "tree", tree)
    with pytest.raises(Damaged, match="holds no"):
        file.read(tmp_path / "tree")


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises((pickle.PicklingError, AttributeError)):
        file.write(tmp_path / "tree", lambda: None)
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        file.write(tmp_path / "taken", TREE)
    assert [each.name for each in tmp_path.iterdir()] == ["taken"]


def test_a_folder_without_room_is_named(tmp_path, monkeypatch):
    def fails(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(NoRoom, match=rf"{tmp_path} has no room left: No space left on device"):
        file.write(tmp_path / "tree", TREE)
    assert not list(tmp_path.iterdir())


def test_mapped_arrays_need_no_other_kernels(tmp_path):
    given = workload(seed=5, events=5)
    sealed = seal(members(given.subscribers, given.subscriptions))
    file.write(tmp_path / "base", sealed)
    Served(sealed).wanted(given.events)
    if not hasattr(access_find.find_many, "signatures"):
        pytest.skip("kernels are not compiled")
    kernels: list[Any] = [access_find.find_many, fanout.rank_events]
    compiled = [list(each.signatures) for each in kernels]
    Served(file.read(tmp_path / "base")).wanted(given.events)
    assert [list(each.signatures) for each in kernels] == compiled


@given(st.lists(st.text(max_size=4), unique=True))
def test_people_are_found_by_their_names(names):
    found = People.of(names, [])
    assert [found.find(name) for name in names] == list(range(len(names)))
    assert found.find("somebody else") == -1
    assert found.names.take(np.arange(len(names))).to_pylist() == names


def test_names_with_equal_hashes_are_told_apart():
    assert len(set(hashes_of(["plumless", "buckeroo"]))) == 1
    found = People.of(["buckeroo", "plumless"], [])
    assert [found.find(name) for name in ("buckeroo", "plumless")] == [0, 1]
