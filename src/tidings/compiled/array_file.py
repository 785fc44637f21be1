"""Named arrays with a JSON header: the form in which parts of an index are written and read.

A part adds arrays, strings and small values to a `Writer` by name, and takes them back from a
`Reader`, stating the dtype, size and bounds that it expects. A file never decides what is built
from it: its dtypes are compared with the expected ones, and never parsed. Kernels do not check
indices, so every number that they follow is checked here first.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final, NamedTuple, Never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.compiled.array_types import AnyArray, Int64s
from tidings.errors import TidingsError, shown

MOST: Final = 2**31 - 1
"""The largest number of values in one array: kernels index with 32 bits."""


class Damaged(TidingsError):
    """A file that does not hold what was written, and has to be rebuilt."""


class Stored(NamedTuple):
    """One array of a file: dtype and shape as the header states them, and the bytes."""

    dtype: Any
    shape: Any
    data: memoryview


class TextColumn(NamedTuple):
    """Strings as UTF-8 in one array: string n is letters[starts[n]:starts[n + 1]]."""

    starts: Int64s
    letters: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, texts: Iterable[str]) -> "TextColumn":
        """Return strings as a column."""
        strings = pa.array(texts, pa.large_string())
        _, starts, letters = strings.buffers()
        size = len(strings)
        ends = np.frombuffer(starts, np.int64, size + 1) if size else np.zeros(1, np.int64)
        return cls(ends, np.frombuffer(letters or b"", np.uint8, int(ends[-1])))

    def strings(self) -> pa.LargeStringArray:
        """Return the strings as an Arrow array over the same memory."""
        buffers = map(pa.py_buffer, self)
        return pa.LargeStringArray.from_buffers(len(self.starts) - 1, *buffers)


def described(dtype: npt.DTypeLike) -> Any:
    """Return the JSON form of a dtype: a string, or a list of [field, dtype]."""
    descr: Any = np.lib.format.dtype_to_descr(np.dtype(dtype))
    return descr if isinstance(descr, str) else [list(column) for column in descr]


@dataclass(frozen=True)
class Writer:
    """The header values and the arrays of one file that is written.

    >>> writer = Writer()
    >>> writer.within("segment").array("scores", np.array([0.5]))
    >>> list(writer.arrays)
    ['segment.scores']
    """

    header: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, AnyArray] = field(default_factory=dict)
    prefix: str = ""

    def within(self, name: str) -> "Writer":
        """Return a writer that puts `name` before the names it adds."""
        return Writer(self.header, self.arrays, f"{self.prefix}{name}.")

    def value(self, name: str, value: object) -> None:
        """Add a small JSON value to the header."""
        self.header[self.prefix + name] = value

    def array(self, name: str, array: AnyArray) -> None:
        """Add an array."""
        self.arrays[self.prefix + name] = np.ascontiguousarray(array)

    def texts(self, name: str, texts: "Iterable[str] | TextColumn") -> None:
        """Add strings, as two arrays."""
        column = texts if isinstance(texts, TextColumn) else TextColumn.of(texts)
        self.array(f"{name}.starts", column.starts)
        self.array(f"{name}.letters", column.letters)


@dataclass(frozen=True)
class Reader:
    """The header values and the arrays of one file, returned only if they are as expected.

    Anything else raises `Damaged`, with the name of the file and the remedy.
    """

    source: str
    header: Mapping[str, Any]
    arrays: Mapping[str, Stored]
    remedy: str = "rebuild it"
    prefix: str = ""

    def within(self, name: str) -> "Reader":
        """Return a reader that puts `name` before the names it looks up."""
        return Reader(self.source, self.header, self.arrays, self.remedy, f"{self.prefix}{name}.")

    def refuse(self, why: str) -> Never:
        """Raise `Damaged`."""
        raise Damaged(f"{self.source} is damaged: {why}; {self.remedy}")

    def require(self, holds: object, name: str, why: str) -> None:
        """Refuse the file unless a condition holds for one of its parts."""
        if not holds:
            self.refuse(f"{self.prefix}{name} {why}")

    def value(self, name: str) -> Any:
        """Return a value of the header, of any type."""
        self.require(self.prefix + name in self.header, name, "is missing")
        return self.header[self.prefix + name]

    def count(self, name: str, most: int = MOST) -> int:
        """Return a whole number of the header from 0 to `most`."""
        value = self.value(name)
        valid = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
        self.require(valid, name, f"is {shown(value)}, not a number from 0 to {most}")
        return int(value)

    def array(self, name: str, dtype: npt.DTypeLike, size: int | None = None) -> AnyArray:
        """Return an array of one dimension, over the memory of the file.

        It has the given dtype, and the given size unless that is None.
        """
        stored = self.arrays.get(self.prefix + name)
        if stored is None:
            self.refuse(f"{self.prefix}{name} is missing")
        expected = np.dtype(dtype)
        self.require(
            stored.dtype == described(expected), name, f"is {shown(stored.dtype)}, not {expected}"
        )
        length = len(stored.data) // expected.itemsize
        self.require(stored.shape == [length], name, f"has the shape {shown(stored.shape)}")
        fits = prod(stored.shape) * expected.itemsize == len(stored.data) and length <= MOST
        self.require(fits, name, f"has {len(stored.data)} bytes")
        self.require(size in (None, length), name, f"has {length} values, not {size}")
        return np.ndarray((length,), expected, stored.data)

    def numbers(self, name: str, size: int | None, below: int, low: int = 0) -> AnyArray:
        """Return an array of 32-bit numbers n with low <= n < below."""
        numbers = self.array(name, np.int32, size)
        self.within_bounds(name, numbers, below, low)
        return numbers

    def within_bounds(self, name: str, numbers: AnyArray, below: int, low: int = 0) -> None:
        """Refuse numbers n unless low <= n < below."""
        if len(numbers):
            inside = numbers.min() >= low and numbers.max() < below
            self.require(inside, name, f"has numbers outside of {low} to {below - 1}")

    def permutation(self, name: str, numbers: AnyArray, size: int) -> None:
        """Refuse an array that is not a permutation of range(size)."""
        self.within_bounds(name, numbers, size)
        seen = np.zeros(size, np.bool_)
        seen[numbers] = True
        self.require(len(numbers) == size and seen.all(), name, "has a number twice")

    def starts(self, name: str, size: int, end: int) -> Int64s:
        """Return the `size + 1` offsets of ragged rows, which rise from 0 to `end`."""
        starts = self.array(name, np.int64, size + 1)
        rises = starts[0] == 0 and starts[-1] == end and not np.any(starts[1:] < starts[:-1])
        self.require(rises, name, f"does not rise from 0 to {end}")
        return starts

    def finite(self, name: str, numbers: AnyArray, most: float) -> None:
        """Refuse floats that are NaN, or whose size is above `most`, so that sums are finite."""
        if len(numbers):
            low, high = numbers.min(), numbers.max()  # NaN if any number is
            self.require(-most <= low and high <= most, name, "has numbers that are too large")

    def texts(self, name: str, size: int | None = None) -> TextColumn:
        """Return strings, validated as UTF-8."""
        starts = self.array(f"{name}.starts", np.int64, None if size is None else size + 1)
        letters = self.array(f"{name}.letters", np.uint8)
        self.require(len(starts), f"{name}.starts", "is empty")
        self.starts(f"{name}.starts", len(starts) - 1, len(letters))
        column = TextColumn(starts, letters)
        try:
            column.strings().validate(full=True)
        except pa.ArrowInvalid as error:
            self.refuse(f"{self.prefix}{name}: {error}")
        return column


def parsed(text: bytes) -> Any:
    """Parse JSON text; any fault in it is a `ValueError`."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deeply") from None
