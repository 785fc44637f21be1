"""Texts by number, as two arrays that can be mapped."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from tidings.compiled.array_file import TextColumn


class Texts(Sequence[str]):
    """Texts in one array of letters, and where each begins.

    >>> import numpy as np
    >>> names = Texts.of(["ann", "bob"])
    >>> names[1], names.take(np.array([1, 0])).to_pylist()
    ('bob', ['bob', 'ann'])
    """

    def __init__(self, column: TextColumn) -> None:
        self.column = column
        self._texts = column.strings()

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Texts":
        """Lay texts down."""
        return cls(TextColumn.of(texts))

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, number: Any) -> Any:
        return self._texts[int(number)].as_py()

    def take(self, numbers: npt.NDArray[Any]) -> pa.LargeStringArray:
        """Give the texts of numbers."""
        return self._texts.take(pa.array(numbers))
