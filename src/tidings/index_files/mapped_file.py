"""Index files: named arrays behind a JSON header, mapped by every process that reads them.

    | magic | version | checksum | length | header length | JSON header |pad| array |pad| array ...
      14 B     u16       u32        u64          u64

The header has the kind of the file, small values, and the name, dtype, shape and size of each
array. The arrays follow in that order, each aligned to 64 bytes; so they cannot overlap, whatever
the header says. The checksum covers everything after it. Nothing in a file is run or imported.

Arrays are mapped copy-on-write: a process may write to them, pages are shared until it does, and
the file never changes.
"""

import errno
import json
import mmap
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final
from zlib import crc32

from tidings.compiled.array_file import Damaged, Reader, Stored, Writer, described, parsed
from tidings.errors import TidingsError, shown
from tidings.model import validate

__all__ = ["Damaged", "DiskFull", "read", "reporting_full_disk", "write"]

MAGIC: Final = b"tidings-sealed"
VERSION: Final = 4
ALIGNMENT: Final = 64
INDEX, SUBSCRIBERS, ARCHIVE, DELTA = KINDS = ("index", "people", "archive", "change")
"""The kinds of files, as headers name them."""

_PREAMBLE: Final = struct.Struct("<14sHIQQ")
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REMEDY: Final = "restart its publisher, which builds it again"


class DiskFull(TidingsError):
    """A folder that has no space left."""


@contextmanager
def reporting_full_disk(folder: Path) -> Iterator[None]:
    """Raise `DiskFull`, which names the folder, if writing to it fails for lack of space."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise DiskFull(
            f"{folder} has no space left: {error.strerror}; free some space and run again"
        ) from error


def write(path: Path, kind: str, content: Writer) -> int:
    """Write a file atomically; return its length."""
    arrays = list(content.arrays.values())
    columns = [
        [name, described(array.dtype), list(array.shape), array.nbytes]
        for name, array in content.arrays.items()
    ]
    form = {"kind": kind, "values": content.header, "arrays": columns}
    header = json.dumps(form, separators=(",", ":")).encode()
    length = _PREAMBLE.size + len(header)
    for array in arrays:
        length = _aligned(length) + array.nbytes
    with (
        reporting_full_disk(path.parent),
        NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file,
    ):
        try:
            file.write(bytes(_PREAMBLE.size))
            checksum = crc32(_preamble(0, length, len(header)))
            for piece in _pieces(header, arrays):
                file.write(piece)
                checksum = crc32(piece, checksum)
            file.seek(0)
            file.write(_preamble(checksum, length, len(header)))
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).chmod(0o644)
            Path(file.name).rename(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    return length


def _preamble(checksum: int, length: int, header: int) -> bytes:
    return _PREAMBLE.pack(MAGIC, VERSION, checksum, length, header)


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def _pieces(header: bytes, arrays: Iterable[Any]) -> Iterator[Any]:
    yield header
    offset = _PREAMBLE.size + len(header)
    for array in arrays:
        yield bytes(_aligned(offset) - offset)
        yield memoryview(array.view("u1")) if array.nbytes else b""
        offset = _aligned(offset) + array.nbytes


def read(path: Path, kind: str) -> Reader:
    """Return a reader of a file of this kind, its arrays mapped; a damaged file is refused."""
    content = _map(path)
    size = _check_preamble(path, content)
    try:
        header = parsed(bytes(content[_PREAMBLE.size : _PREAMBLE.size + size]))
    except ValueError as error:
        raise _damaged(path, f"its header cannot be read: {error}") from None
    fields = {"kind", "values", "arrays"}
    if not isinstance(header, dict) or header.keys() != fields or header["kind"] != kind:
        raise _damaged(path, f"its header is not that of a file of kind {kind!r}")
    if not isinstance(header["values"], dict) or not isinstance(header["arrays"], list):
        raise _damaged(path, "its header has fields of wrong types")
    arrays = _arrays(path, content, header["arrays"], _PREAMBLE.size + size)
    return Reader(str(path), header["values"], arrays, _REMEDY)


def _arrays(
    path: Path, content: memoryview, columns: list[Any], offset: int
) -> Mapping[str, Stored]:
    """Return the arrays of a file by name; they must fill it exactly."""
    arrays: dict[str, Stored] = {}
    for column in columns:
        if not isinstance(column, list) or len(column) != 4 or not isinstance(column[0], str):
            raise _damaged(path, f"its header has {shown(column)} instead of an array")
        name, dtype, shape, size = column
        if name in arrays or type(size) is not int or not 0 <= size <= len(content):
            raise _damaged(path, f"its header has an impossible array {shown(name)}")
        offset = _aligned(offset)
        arrays[name] = Stored(dtype, shape, content[offset : offset + size])
        offset += size
    if offset != len(content):
        raise _damaged(path, f"its arrays end at byte {offset} of {len(content)}")
    return arrays


def _damaged(path: Path, reason: str) -> Damaged:
    return Damaged(f"{path} is damaged: {reason}; {_REMEDY}")


def _map(path: Path) -> memoryview:
    try:
        with validate.regular_file(path).open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    except (OSError, ValueError) as error:
        raise Damaged(f"{path} cannot be read: {error}; {_REMEDY}") from None


def _check_preamble(path: Path, content: memoryview) -> int:
    """Return the length of the header of a file whose checksum is right."""
    try:
        magic, version, checksum, length, size = _PREAMBLE.unpack(content[: _PREAMBLE.size])
    except struct.error:
        magic = b""
    if magic != MAGIC:
        raise Damaged(f"{path} is not an index file; {_REMEDY}")
    if version != VERSION:
        raise Damaged(
            f"{path} has format version {version}, but this release reads version {VERSION}; "
            f"{_REMEDY} from the store"
        )
    if length != len(content) or size > len(content) - _PREAMBLE.size:
        raise Damaged(f"{path} should have {length} bytes but has {len(content)}; {_REMEDY}")
    if crc32(content[_PREAMBLE.size :], crc32(_preamble(0, length, size))) != checksum:
        raise _damaged(path, "its checksum is wrong")
    return int(size)
