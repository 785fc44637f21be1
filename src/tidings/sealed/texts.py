"""Texts by number, as two arrays that can be mapped."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]


class Texts(Sequence[str]):
    """Texts in one array of letters, and where each begins.

    >>> names = Texts.of(["ann", "bob"])
    >>> names[1], names.take(np.array([1, 0])).to_pylist()
    ('bob', ['bob', 'ann'])
    """

    def __init__(self, starts: Ints, letters: npt.NDArray[np.uint8]) -> None:
        self._starts, self._letters = starts, letters
        buffers = map(pa.py_buffer, (starts, letters))
        self._texts = pa.LargeStringArray.from_buffers(len(starts) - 1, *buffers)

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Texts":
        """Lay texts down."""
        made = pa.array(texts, pa.large_string())
        _, starts, letters = made.buffers()
        size = len(made)
        ends = np.frombuffer(starts, np.int64, size + 1) if size else np.zeros(1, np.int64)
        return cls(ends, np.frombuffer(letters or b"", np.uint8, int(ends[-1])))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Texts, (self._starts, self._letters))

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, number: Any) -> Any:
        return self._texts[int(number)].as_py()

    def take(self, numbers: npt.NDArray[Any]) -> pa.LargeStringArray:
        """Give the texts of numbers."""
        return self._texts.take(pa.array(numbers))
