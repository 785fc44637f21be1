"""Named arrays beside a JSON header: how parts of an index are written, and checked when read.

Whoever has something to write puts arrays, texts and small values under names into a `Writer`;
whoever reads takes them from a `Reader`, and says of each what it must be. Nothing in a file
decides what is made of it: a dtype is compared with the one that is expected, never built from its
name. Kernels trust what they are given, so every number that they follow is checked first.
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
"""The largest number of things in one file: kernels count with 32 bits."""


class Damaged(TidingsError):
    """A file that does not hold what was written; it has to be made again."""


class Stored(NamedTuple):
    """One array of a file: what its header says it is, and the bytes."""

    dtype: Any
    shape: Any
    data: memoryview


class TextColumn(NamedTuple):
    """Texts as UTF-8: text n goes from starts[n] to starts[n + 1]."""

    starts: Int64s
    letters: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, texts: Iterable[str]) -> "TextColumn":
        """Return texts as two arrays."""
        made = pa.array(texts, pa.large_string())
        _, starts, letters = made.buffers()
        size = len(made)
        ends = np.frombuffer(starts, np.int64, size + 1) if size else np.zeros(1, np.int64)
        return cls(ends, np.frombuffer(letters or b"", np.uint8, int(ends[-1])))

    def strings(self) -> pa.LargeStringArray:
        """Return the texts over the same memory."""
        buffers = map(pa.py_buffer, self)
        return pa.LargeStringArray.from_buffers(len(self.starts) - 1, *buffers)


def described(dtype: npt.DTypeLike) -> Any:
    """Return a dtype as JSON has it: a string, or a list of [field, dtype]."""
    descr: Any = np.lib.format.dtype_to_descr(np.dtype(dtype))
    return descr if isinstance(descr, str) else [list(each) for each in descr]


@dataclass(frozen=True)
class Writer:
    """Collects the header values and the arrays of one file.

    >>> writer = Writer()
    >>> writer.within("segment").array("scores", np.array([0.5]))
    >>> list(writer.arrays)
    ['segment.scores']
    """

    header: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, AnyArray] = field(default_factory=dict)
    prefix: str = ""

    def within(self, name: str) -> "Writer":
        """Return a writer whose names begin with a name of this one."""
        return Writer(self.header, self.arrays, f"{self.prefix}{name}.")

    def value(self, name: str, value: object) -> None:
        """Add a small JSON value to the header."""
        self.header[self.prefix + name] = value

    def array(self, name: str, array: AnyArray) -> None:
        """Add an array."""
        self.arrays[self.prefix + name] = np.ascontiguousarray(array)

    def texts(self, name: str, texts: "Iterable[str] | TextColumn") -> None:
        """Add texts, as two arrays."""
        column = texts if isinstance(texts, TextColumn) else TextColumn.of(texts)
        self.array(f"{name}.starts", column.starts)
        self.array(f"{name}.letters", column.letters)


@dataclass(frozen=True)
class Reader:
    """Gives the parts of one file, each only if it is what the caller expects.

    Whatever is not raises `Damaged`, with the name of the file and what to do about it.
    """

    source: str
    header: Mapping[str, Any]
    arrays: Mapping[str, Stored]
    remedy: str = "make it again"
    prefix: str = ""

    def within(self, name: str) -> "Reader":
        """Return a reader whose names begin with a name of this one."""
        return Reader(self.source, self.header, self.arrays, self.remedy, f"{self.prefix}{name}.")

    def refuse(self, why: str) -> Never:
        """Raise `Damaged`."""
        raise Damaged(f"{self.source} is damaged: {why}; {self.remedy}")

    def require(self, holds: object, name: str, why: str) -> None:
        """Refuse the file unless something holds for one of its parts."""
        if not holds:
            self.refuse(f"{self.prefix}{name} {why}")

    def value(self, name: str) -> Any:
        """Return a value of the header, which may be anything."""
        self.require(self.prefix + name in self.header, name, "is missing")
        return self.header[self.prefix + name]

    def count(self, name: str, most: int = MOST) -> int:
        """Return a whole number of the header from 0 to `most`."""
        found = self.value(name)
        right = isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= most
        self.require(right, name, f"is {shown(found)}, not a number from 0 to {most}")
        return int(found)

    def array(self, name: str, dtype: npt.DTypeLike, size: int | None = None) -> AnyArray:
        """Return an array of one dimension that has a dtype, and a size if that is given.

        It lies over the memory of the file.
        """
        stored = self.arrays.get(self.prefix + name)
        if stored is None:
            self.refuse(f"{self.prefix}{name} is missing")
        expected = np.dtype(dtype)
        self.require(
            stored.dtype == described(expected), name, f"is {shown(stored.dtype)}, not {expected}"
        )
        found = len(stored.data) // expected.itemsize
        self.require(stored.shape == [found], name, f"has the shape {shown(stored.shape)}")
        right = prod(stored.shape) * expected.itemsize == len(stored.data) and found <= MOST
        self.require(right, name, f"has {len(stored.data)} bytes")
        self.require(size in (None, found), name, f"has {found} values, not {size}")
        return np.ndarray((found,), expected, stored.data)

    def numbers(self, name: str, size: int | None, below: int, low: int = 0) -> AnyArray:
        """Return an array of 32-bit numbers that all lie between `low` and below `below`."""
        found = self.array(name, np.int32, size)
        self.within_bounds(name, found, below, low)
        return found

    def within_bounds(self, name: str, found: AnyArray, below: int, low: int = 0) -> None:
        """Refuse numbers that do not lie between `low` and below `below`."""
        if len(found):
            right = found.min() >= low and found.max() < below
            self.require(right, name, f"has numbers outside of {low} to {below - 1}")

    def permutation(self, name: str, found: AnyArray, size: int) -> None:
        """Refuse an array that does not hold every number from 0 to below `size` once."""
        self.within_bounds(name, found, size)
        seen = np.zeros(size, np.bool_)
        seen[found] = True
        self.require(len(found) == size and seen.all(), name, "has a number twice")

    def starts(self, name: str, size: int, end: int) -> Int64s:
        """Return where `size` spans begin, and where the last one ends: at `end`."""
        found = self.array(name, np.int64, size + 1)
        right = found[0] == 0 and found[-1] == end and not np.any(found[1:] < found[:-1])
        self.require(right, name, f"does not rise from 0 to {end}")
        return found

    def finite(self, name: str, found: AnyArray, most: float) -> None:
        """Refuse floats that are NaN or above `most` in size: sums of others do not overflow."""
        if len(found):
            low, high = found.min(), found.max()  # NaN, if one of them is
            self.require(-most <= low and high <= most, name, "has numbers that no sum can take")

    def texts(self, name: str, size: int | None = None) -> TextColumn:
        """Return texts, all of them UTF-8."""
        starts = self.array(f"{name}.starts", np.int64, None if size is None else size + 1)
        letters = self.array(f"{name}.letters", np.uint8)
        self.require(len(starts), f"{name}.starts", "is empty")
        self.starts(f"{name}.starts", len(starts) - 1, len(letters))
        found = TextColumn(starts, letters)
        try:
            found.strings().validate(full=True)
        except pa.ArrowInvalid as error:
            self.refuse(f"{self.prefix}{name}: {error}")
        return found


def parsed(text: bytes) -> Any:
    """Return what JSON text holds; any fault in it is a `ValueError`."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deeply") from None
