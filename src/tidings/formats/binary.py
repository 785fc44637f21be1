"""A binary container for state: magic bytes, a version, a checksum, a JSON header, and columns.

    magic | version | CRC-32 | size of the header | header (zlib) | column | column | ...
            1 byte    4 bytes  8 bytes

Nothing in the bytes is trusted: a column has one of a few types, its length is checked against the
remaining bytes, strings are validated, and the decompressed size of the header is bounded. Any
fault is a `StateError`.
"""

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tidings.compiled.array_types import AnyArray
from tidings.errors import StateError, TidingsError, shown

Column = AnyArray | Sequence[str] | Any
"""Numbers; strings, as a list or a whole `pyarrow.LargeStringArray`; or the bytes of another frame,
which the checksum leaves out since they have their own."""

_TEXTS: Final = "texts"
_FRAME: Final = "frame"
_DTYPES: Final = {"|b1", "|i1", "|u1"} | {f"<{kind}{size}" for kind in "iu" for size in (2, 4, 8)}
_NUMBERS: Final = _DTYPES | {"<f4", "<f8"}
_CHECKSUM: Final = 4
_SIZE: Final = 8
_DIMENSIONS: Final = 2
_EXPANSION: Final = 32
"""The most bytes of a header per compressed byte, besides `_SPARE`."""
_SPARE: Final = 1 << 20
WAY_OUT: Final = "start from an earlier snapshot or checkpoint, or without any"


def damaged(name: str, why: object) -> StateError:
    """Return the error for bytes that are damaged."""
    return StateError(f"{name} is damaged: {why}; {WAY_OUT}")


def check(holds: object, name: str, why: str) -> None:
    """Refuse something as damaged unless a condition holds."""
    if not holds:
        raise damaged(name, why)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn any error while state is read into a `StateError` that names the state."""
    try:
        yield
    except StateError:
        raise
    except TidingsError as error:
        raise StateError(f"{name} cannot be read: {error}; {WAY_OUT}") from None
    except Exception as error:  # noqa: BLE001 - untrusted bytes may fail in any way
        why = f"field {error} is missing" if isinstance(error, KeyError) else shown(error)
        raise damaged(name, why) from None


class Shape(NamedTuple):
    """One column as the header lists it, and its size in bytes."""

    name: str
    dtype: str
    lengths: Sequence[int]
    size: int


@dataclass(frozen=True)
class Frame:
    """The format of one kind of state: its magic bytes, version and name.

    States of the `older` versions are read as well.

    >>> frame = Frame(b"tidings-example", 1, "an example")
    >>> header, columns = frame.unpack(frame.pack({"k": 2}, {"names": ["ann", "bob"]}))
    >>> header, columns["names"]
    ({'k': 2}, ['ann', 'bob'])
    """

    mark: bytes
    version: int
    name: str
    older: tuple[int, ...] = ()

    def pack(self, header: Mapping[str, Any], columns: Mapping[str, Column]) -> bytes:
        """Return the bytes of a compressed header and plain columns."""
        shapes, parts, covered = list[Any](), list[Any](), list[Any]()
        for name, column in columns.items():
            shape, content = _encoded(column)
            shapes.append([name, *shape])
            parts += content
            covered += content if shape[0] != _FRAME else []
        text = json.dumps({"columns": shapes, "header": header}, separators=(",", ":")).encode()
        # Padding keeps headers that compress well within the bound of `_EXPANSION`.
        squeezed = zlib.compress(text, level=1).ljust(len(text) // _EXPANSION, b"\0")
        size = len(squeezed).to_bytes(_SIZE, "little")
        checksum = _checksum([size, squeezed, *covered]).to_bytes(_CHECKSUM, "little")
        return b"".join([self.mark, bytes([self.version]), checksum, size, squeezed, *parts])

    def unpack(self, state: bytes | bytearray) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the header and the columns; arrays are views, read-only unless `state` is mutable.

        Bytes of another kind or version are refused, and so are damaged ones.
        """
        start = len(self.mark)
        if state[:start] != self.mark or len(state) <= start + _CHECKSUM + _SIZE:
            raise StateError(f"these bytes are not {self.name}")
        if state[start] not in (self.version, *self.older):
            raise StateError(
                f"{self.name} has version {state[start]}, but this release reads {self.version}; "
                "use the release that wrote it, or start without it"
            )
        with reading(self.name):
            return self._opened(memoryview(state), start + 1)

    def _opened(self, state: memoryview, at: int) -> tuple[dict[str, Any], dict[str, Any]]:
        checksum = int.from_bytes(state[at : at + _CHECKSUM], "little")
        begin = at + _CHECKSUM
        first = begin + _SIZE
        at = first + int.from_bytes(state[begin:first], "little")
        check(at <= len(state), self.name, f"{len(state)} bytes are too few for its header")
        about = _decoded(state[first:at])
        check(isinstance(about, dict) and about.keys() == {"columns", "header"}, *self._header)
        check(isinstance(about["header"], dict), *self._header)
        shapes = self._shapes(about["columns"], len(state))
        end = at + sum(shape.size for shape in shapes)
        if end != len(state):
            raise StateError(f"{self.name} has {len(state)} bytes, not {end}; {WAY_OUT}")
        parts = list[memoryview]()
        for shape in shapes:
            parts.append(state[at : at + shape.size])
            at += shape.size
        pairs = list(zip(shapes, parts, strict=True))
        covered = [part for shape, part in pairs if shape.dtype != _FRAME]
        actual = _checksum([state[begin : end - sum(s.size for s in shapes)], *covered])
        check(actual == checksum, self.name, "its checksum does not match its bytes")
        return about["header"], {shape.name: self._read(shape, part) for shape, part in pairs}

    @property
    def _header(self) -> tuple[str, str]:
        return self.name, "its header is invalid"

    def _shapes(self, listed: object, most: int) -> list[Shape]:
        """Return the columns that a header lists; no length of one is above `most`."""
        check(isinstance(listed, list), *self._header)
        assert isinstance(listed, list)
        shapes = [_shape(entry, most) for entry in listed]
        names = {shape.name for shape in shapes if shape is not None}
        check(len(names) == len(listed), *self._header)
        return [shape for shape in shapes if shape is not None]

    def _read(self, shape: Shape, part: memoryview) -> Any:
        if shape.dtype == _FRAME:
            return bytes(part)
        if shape.dtype == _TEXTS:
            return _read_texts(shape, part)
        return np.frombuffer(part, shape.dtype).reshape(shape.lengths)


def _checksum(parts: Sequence[Any]) -> int:
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return checksum


def _decoded(squeezed: memoryview) -> Any:
    """Return a decompressed header; refuse one that expands too far."""
    reader = zlib.decompressobj()
    text = reader.decompress(squeezed, _EXPANSION * len(squeezed) + _SPARE)
    if not reader.eof:
        raise ValueError("its header is cut short, or expands too far")
    return json.loads(text)


def _shape(listed: object, most: int) -> Shape | None:
    """Return a column as the header lists it; None if the entry is invalid."""
    if not isinstance(listed, list) or len(listed) != 3:
        return None
    name, dtype, lengths = listed
    if not (isinstance(name, str) and isinstance(dtype, str) and isinstance(lengths, list)):
        return None
    if not all(type(length) is int and 0 <= length <= most for length in lengths):
        return None
    if dtype == _TEXTS and len(lengths) == 2:
        return Shape(name, dtype, lengths, 8 * (lengths[0] + 1) + lengths[1])
    if dtype == _FRAME and len(lengths) == 1:
        return Shape(name, dtype, lengths, lengths[0])
    if dtype in _NUMBERS and 1 <= len(lengths) <= _DIMENSIONS:
        return Shape(name, dtype, lengths, prod(lengths) * np.dtype(dtype).itemsize)
    return None


def _encoded(column: Column) -> tuple[tuple[str, list[int]], list[Any]]:
    """Return the type and shape of a column, and its bytes."""
    if isinstance(column, bytes):
        return (_FRAME, [len(column)]), [column]
    if isinstance(column, np.ndarray):
        return (column.dtype.str, list(column.shape)), [np.ascontiguousarray(column).tobytes()]
    is_arrow = isinstance(column, pa.LargeStringArray)
    texts: Any = column if is_arrow else pa.array(column, pa.large_string())
    _, offsets, letters = texts.buffers()
    ends = (
        np.frombuffer(offsets, np.int64, len(column) + 1) if len(column) else np.zeros(1, np.int64)
    )
    size = int(ends[-1])
    return (_TEXTS, [len(column), size]), [ends.tobytes(), (letters or b"")[:size]]


def _read_texts(shape: Shape, part: memoryview) -> list[str]:
    """Return strings; refuse invalid offsets and UTF-8."""
    count, size = shape.lengths
    buffer, ends = pa.py_buffer(part), 8 * (count + 1)
    offsets = np.frombuffer(part[:ends], np.int64)
    if offsets[0] != 0 or offsets[-1] != size or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"the strings of column {shape.name} lie outside it")
    texts = pa.LargeStringArray.from_buffers(count, buffer.slice(0, ends), buffer.slice(ends, size))
    texts.validate(full=True)
    strings: list[str] = texts.to_pylist()
    return strings
