"""Strings by number, in two arrays that can be mapped from a file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.compiled.array_file import TextColumn


class StringTable(Sequence[str]):
    """Strings in one array of UTF-8 bytes, with the offset at which each begins.

    >>> import numpy as np
    >>> names = StringTable.of(["ann", "bob"])
    >>> names[1], names.take(np.array([1, 0])).to_pylist()
    ('bob', ['bob', 'ann'])
    """

    def __init__(self, column: TextColumn) -> None:
        self.column = column
        self._strings = column.strings()

    @classmethod
    def of(cls, strings: Iterable[str]) -> "StringTable":
        """Return a table of some strings."""
        return cls(TextColumn.of(strings))

    def __len__(self) -> int:
        return len(self._strings)

    def __getitem__(self, number: Any) -> Any:
        return self._strings[int(number)].as_py()

    def take(self, numbers: npt.NDArray[Any]) -> pa.LargeStringArray:
        """Return the strings with these numbers."""
        return self._strings.take(pa.array(numbers))


@dataclass(frozen=True)
class OverlaidStrings:
    """The strings of a base, numbered first, and those of the overlay after them."""

    base: StringTable
    overlay: pa.LargeStringArray

    def __len__(self) -> int:
        return len(self.base) + len(self.overlay)

    def take(self, numbers: npt.NDArray[Any]) -> pa.LargeStringArray:
        """Return the strings with these numbers."""
        in_overlay = numbers >= len(self.base)
        if not in_overlay.any():
            return self.base.take(numbers)
        overlay = self.overlay.take(pa.array(numbers[in_overlay] - len(self.base)))
        # Two gathers, concatenated; `order` is the inverse of the permutation that split them.
        order = np.argsort(np.argsort(in_overlay, kind="stable"), kind="stable")
        return pa.concat_arrays([self.base.take(numbers[~in_overlay]), overlay]).take(
            pa.array(order)
        )
