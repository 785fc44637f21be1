"""Validators return the value as a plain one, or name the value and the rule."""

import itertools
import math
import os
from collections import UserDict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tidings.errors import InvalidForm, InvalidPolicy, TidingsError
from tidings.model import validate


class Word(str):
    """A string of a subclass."""

    __slots__ = ()


def test_a_name_is_returned_as_a_plain_string() -> None:
    assert type(validate.name("an id", Word("a"), InvalidForm)) is str


@pytest.mark.parametrize("value", ["", None, 7, b"a", "\ud800"])
def test_other_names_are_refused(value: object) -> None:
    with pytest.raises(InvalidForm, match="an id is"):
        validate.name("an id", value, InvalidForm)


def test_numbers_are_real_finite_and_in_range() -> None:
    assert validate.number("x", Fraction(1, 2)) == 0.5
    for value in (math.nan, math.inf, 10**400, True, "1", None, 1j):
        with pytest.raises(InvalidPolicy, match="x is a finite number"):
            validate.number("x", value)
    with pytest.raises(InvalidPolicy, match="x is between 0 and 1, not 2"):
        validate.number("x", 2, high=1)
    with pytest.raises(InvalidPolicy, match="x is above 0, not 0"):
        validate.positive("x", 0)


def test_counts_are_integers_in_range() -> None:
    assert validate.count("k", 3) == 3
    for value in (0, 2.0, True, "3"):
        with pytest.raises(InvalidPolicy, match="k is a whole number of at least 1"):
            validate.count("k", value)
    with pytest.raises(InvalidPolicy, match="k is at most 2, not 3"):
        validate.count("k", 3, high=2)


def test_flags_and_choices() -> None:
    validate.flag("wait", True)
    with pytest.raises(InvalidPolicy, match="wait is true or false, not 1"):
        validate.flag("wait", 1)
    assert validate.choice("count", Word("a"), ["a", "b"]) == "a"
    with pytest.raises(InvalidPolicy, match="count is one of 'a', 'b', not 'c'"):
        validate.choice("count", "c", ["a", "b"])


def test_mappings_become_dicts() -> None:
    assert validate.mapping("a form", UserDict(a=1), InvalidForm) == {"a": 1}
    with pytest.raises(InvalidForm, match="a form, not 7"):
        validate.mapping("a form", 7, InvalidForm)


def test_sequences_are_read_up_to_one_value_above_the_limit() -> None:
    assert validate.listed([1, 2], 1) == [1, 2]
    assert validate.listed(range(10), 3) == [0, 1, 2, 3]
    assert validate.listed("text", 3) is None
    assert validate.listed({1}, 3) is None


def test_foreign_errors_become_ours() -> None:
    @validate.guarded_by(InvalidForm)
    def read(error: Exception) -> Any:
        raise error

    with pytest.raises(InvalidForm, match="a value cannot be read: KeyError: 'a'"):
        read(KeyError("a"))
    with pytest.raises(InvalidPolicy):
        read(InvalidPolicy("as it is"))
    with pytest.raises(MemoryError):
        read(MemoryError())


def test_pipes_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TidingsError, match="pipe or a device"):
        validate.regular_file(tmp_path / "pipe")
    assert validate.regular_file(tmp_path) == tmp_path


@pytest.mark.skipif(not Path("/proc").is_mount(), reason="there is no /proc")
def test_files_of_the_kernel_are_refused(tmp_path: Path) -> None:
    """Reading /proc/kmsg waits for the next message."""
    (tmp_path / "link").symlink_to("/proc/kmsg")
    (tmp_path / "empty").touch()
    with pytest.raises(TidingsError, match="a file of the kernel"):
        validate.regular_file(tmp_path / "link")
    assert validate.regular_file(tmp_path / "empty") == tmp_path / "empty"


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
def test_members_are_those_of_the_built_in_class(kind: type) -> None:
    """Methods of a class derived from it may never end."""

    class Endless(kind):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return itertools.repeat(1)

    assert sorted(validate.members(Endless([7, 8]))) == [7, 8]
    assert sorted(validate.members(kind([7, 8]))) == [7, 8]


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    assert validate.file_bytes(path, 3) == b"abc"
    with pytest.raises(InvalidForm, match="the file has more than 2 bytes"):
        validate.file_bytes(path, 2)
