"""State as bytes: a mark, a version, a JSON header, and columns of numbers or texts behind it.

Bytes cut short and a damaged header are noticed here. A bit that flips within a column is not:
what keeps the bytes has checksums (`docs/exactly-once.md`), and a second one would cost each batch.
"""

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.errors import TidingsError

Array = npt.NDArray[Any]
Column = Array | Sequence[str] | Any
"""Numbers, or texts: as a list, or as a whole `pyarrow.LargeStringArray`."""

_TEXTS: Final = "texts"
_SIZE: Final = 8


@dataclass(frozen=True)
class Frame:
    """How bytes of one kind begin: with a mark of their own and a version.

    >>> frame = Frame(b"tidings-example", 1, "an example")
    >>> header, columns = frame.unpack(frame.pack({"k": 2}, {"names": ["ann", "bob"]}))
    >>> header, columns["names"]
    ({'k': 2}, ['ann', 'bob'])
    """

    mark: bytes
    version: int
    name: str

    def pack(self, header: Mapping[str, Any], columns: Mapping[str, Column]) -> bytes:
        """Write it; the header is compressed, the columns lie as they are."""
        shapes, parts = list[Any](), list[Any]()
        for name, column in columns.items():
            shape, found = _written(column)
            shapes.append([name, *shape])
            parts += found
        text = json.dumps({"columns": shapes, "header": header}, separators=(",", ":"))
        squeezed = zlib.compress(text.encode(), level=1)
        size = len(squeezed).to_bytes(_SIZE, "little")
        return b"".join([self.mark, bytes([self.version]), size, squeezed, *parts])

    def unpack(self, state: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
        """Read it; arrays are read-only views.

        Bytes of another kind or version are refused, and those that are cut short or damaged.
        """
        start = len(self.mark)
        if state[:start] != self.mark or len(state) <= start + _SIZE:
            raise TidingsError(f"these bytes are not {self.name}")
        if state[start] != self.version:
            raise TidingsError(
                f"{self.name} has version {state[start]}, and this is version {self.version}; "
                "take it over with the release that wrote it"
            )
        first = start + 1 + _SIZE
        at = first + int.from_bytes(state[start + 1 : first], "little")
        try:
            about = json.loads(zlib.decompress(state[first:at]))
        except (zlib.error, ValueError) as error:
            raise TidingsError(f"{self.name} is damaged: {error}") from None
        columns = dict(self._columns(about["columns"], state, at))
        return about["header"], columns

    def _columns(self, shapes: Sequence[Any], state: bytes, at: int) -> Iterator[tuple[str, Any]]:
        wanted = at + sum(_size(dtype, shape) for _, dtype, shape in shapes)
        if wanted != len(state):
            raise TidingsError(f"{self.name} should have {wanted} bytes, and has {len(state)}")
        for name, dtype, shape in shapes:
            yield name, _read(dtype, shape, memoryview(state)[at:])
            at += _size(dtype, shape)


def _written(column: Column) -> tuple[tuple[str, list[int]], list[Any]]:
    """Give the type and shape of a column, and its bytes."""
    if isinstance(column, np.ndarray):
        return (column.dtype.str, list(column.shape)), [np.ascontiguousarray(column).tobytes()]
    laid = isinstance(column, pa.LargeStringArray)
    texts: Any = column if laid else pa.array(column, pa.large_string())
    _, offsets, letters = texts.buffers()
    ends = (
        np.frombuffer(offsets, np.int64, len(column) + 1) if len(column) else np.zeros(1, np.int64)
    )
    size = int(ends[-1])
    return (_TEXTS, [len(column), size]), [ends.tobytes(), (letters or b"")[:size]]


def _size(dtype: str, shape: Sequence[int]) -> int:
    if dtype == _TEXTS:
        return 8 * (shape[0] + 1) + shape[1]
    return prod(shape) * np.dtype(dtype).itemsize


def _read(dtype: str, shape: Sequence[int], state: memoryview) -> Any:
    if dtype != _TEXTS:
        return np.frombuffer(state, dtype, prod(shape)).reshape(shape)
    buffer = pa.py_buffer(state)
    ends = 8 * (shape[0] + 1)
    letters = buffer.slice(ends, shape[1])
    texts = pa.LargeStringArray.from_buffers(shape[0], buffer.slice(0, ends), letters)
    return texts.to_pylist()
