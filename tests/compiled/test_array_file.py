"""Parts of an index file are returned as written, or refused with the name of the file."""

from typing import Any

import numpy as np
import pytest

from tidings.compiled.array_file import Damaged, Reader, Stored, TextColumn, Writer, described


def read_back(writer: Writer, **changes: Any) -> Reader:
    arrays = {
        name: Stored(described(array.dtype), list(array.shape), memoryview(array.tobytes()))
        for name, array in writer.arrays.items()
    }
    return Reader("a.index", writer.header | changes, arrays)


def example() -> Writer:
    writer = Writer()
    part = writer.within("part")
    part.value("count", 3)
    part.array("numbers", np.array([2, 0, 1], np.int32))
    part.array("starts", np.array([0, 1, 3], np.int64))
    part.array("floats", np.array([0.5, -1e9]))
    part.texts("names", ["a", "", "ü"])
    return writer


def test_parts_are_returned_as_written() -> None:
    part = read_back(example()).within("part")
    assert part.count("count") == 3
    assert part.numbers("numbers", 3, below=3).tolist() == [2, 0, 1]
    assert part.starts("starts", 2, 3).tolist() == [0, 1, 3]
    assert part.texts("names", 3).strings().to_pylist() == ["a", "", "ü"]
    part.permutation("numbers", part.array("numbers", np.int32), 3)


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (lambda part: part.value("missing"), "part.missing is missing"),
        (lambda part: part.array("missing", np.int32), "part.missing is missing"),
        (lambda part: part.count("count", 2), "part.count is 3, not a number from 0 to 2"),
        (lambda part: part.array("numbers", np.int64), "part.numbers is '<i4', not int64"),
        (lambda part: part.array("numbers", np.int32, 4), "has 3 values, not 4"),
        (lambda part: part.numbers("numbers", 3, below=2), "outside of 0 to 1"),
        (lambda part: part.starts("starts", 2, 4), "does not rise from 0 to 4"),
        (lambda part: part.permutation("x", np.array([0, 0]), 2), "has a number twice"),
        (lambda part: part.finite("floats", part.array("floats", np.float64), 1e6), "too large"),
    ],
)
def test_unexpected_parts_are_refused(read: Any, reason: str) -> None:
    with pytest.raises(Damaged, match=f"a.index is damaged: .*{reason}.*; rebuild it"):
        read(read_back(example()).within("part"))


def test_strings_that_are_not_utf8_are_refused() -> None:
    writer = Writer()
    writer.texts("names", TextColumn(np.array([0, 1]), np.array([255], np.uint8)))
    with pytest.raises(Damaged, match="names"):
        read_back(writer).texts("names")
