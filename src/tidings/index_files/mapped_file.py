"""Index files: named arrays behind a JSON header, mapped by everybody who reads them.

A file begins with a mark, the version of the format, a checksum, the length of the file and that of
the header. The header is JSON: the kind of the file, small values, and of each array its name,
dtype, shape and bytes. The arrays follow in that order, each at a multiple of 64 bytes; so no two
of them share memory, whatever the header says. Nothing in a file is run or imported.

A reader gets arrays that it may write to: a page is shared with all others until then, and the file
never changes.
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

__all__ = ["Damaged", "NoRoom", "read", "room_in", "write"]

MARK: Final = b"tidings-sealed"
VERSION: Final = 2
ALIGNED: Final = 64
INDEX, PEOPLE, ARCHIVE, CHANGE = KINDS = ("index", "people", "archive", "change")
"""What files hold."""

_HEAD: Final = struct.Struct("<14sHIQQ")  # mark, version, checksum, length, bytes of the header
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REMEDY: Final = "start again: whoever publishes it makes it anew"


class NoRoom(TidingsError):
    """A folder that takes no more."""


@contextmanager
def room_in(folder: Path) -> Iterator[None]:
    """Write to a folder; if it is full, say so and name it."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise NoRoom(
            f"{folder} has no room left: {error.strerror}; free some space and run again"
        ) from error


def write(path: Path, kind: str, content: Writer) -> int:
    """Write a file, which is there whole or not at all; return its length."""
    arrays = list(content.arrays.values())
    columns = [
        [name, described(each.dtype), list(each.shape), each.nbytes]
        for name, each in content.arrays.items()
    ]
    form = {"kind": kind, "values": content.header, "arrays": columns}
    header = json.dumps(form, separators=(",", ":")).encode()
    at = _HEAD.size + len(header)
    for each in arrays:
        at = _aligned(at) + each.nbytes
    with (
        room_in(path.parent),
        NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file,
    ):
        try:
            file.write(bytes(_HEAD.size))
            checksum = crc32(_head(0, at, len(header)))
            for piece in _pieces(header, arrays):
                file.write(piece)
                checksum = crc32(piece, checksum)
            file.seek(0)
            file.write(_head(checksum, at, len(header)))
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).chmod(0o644)
            Path(file.name).rename(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    return at


def _head(checksum: int, length: int, header: int) -> bytes:
    return _HEAD.pack(MARK, VERSION, checksum, length, header)


def _aligned(at: int) -> int:
    return -(-at // ALIGNED) * ALIGNED


def _pieces(header: bytes, arrays: Iterable[Any]) -> Iterator[Any]:
    yield header
    at = _HEAD.size + len(header)
    for array in arrays:
        yield bytes(_aligned(at) - at)
        yield memoryview(array.view("u1")) if array.nbytes else b""
        at = _aligned(at) + array.nbytes


def read(path: Path, kind: str) -> Reader:
    """Return what a file of a kind holds, its arrays mapped; a damaged file is refused."""
    whole = _mapped(path)
    size = _checked(path, whole)
    try:
        header = parsed(bytes(whole[_HEAD.size : _HEAD.size + size]))
    except ValueError as error:
        raise _damaged(path, f"its header cannot be read: {error}") from None
    fields = {"kind", "values", "arrays"}
    if not isinstance(header, dict) or header.keys() != fields or header["kind"] != kind:
        raise _damaged(path, f"its header is not that of {kind} files")
    if not isinstance(header["values"], dict) or not isinstance(header["arrays"], list):
        raise _damaged(path, "its header has fields of other types")
    arrays = _arrays(path, whole, header["arrays"], _HEAD.size + size)
    return Reader(str(path), header["values"], arrays, _REMEDY)


def _arrays(path: Path, whole: memoryview, columns: list[Any], at: int) -> Mapping[str, Stored]:
    """Return the arrays of a file by their names: one behind the other, up to its end."""
    found: dict[str, Stored] = {}
    for each in columns:
        if not isinstance(each, list) or len(each) != 4 or not isinstance(each[0], str):
            raise _damaged(path, f"its header has {shown(each)} in the place of an array")
        name, dtype, shape, size = each
        if name in found or type(size) is not int or not 0 <= size <= len(whole):
            raise _damaged(path, f"its header has an impossible array {shown(name)}")
        at = _aligned(at)
        found[name] = Stored(dtype, shape, whole[at : at + size])
        at += size
    if at != len(whole):
        raise _damaged(path, f"its arrays end at {at}, not at its end")
    return found


def _damaged(path: Path, why: str) -> Damaged:
    return Damaged(f"{path} is damaged: {why}; {_REMEDY}")


def _mapped(path: Path) -> memoryview:
    try:
        with path.open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    except (OSError, ValueError) as error:
        raise Damaged(f"{path} cannot be read: {error}; {_REMEDY}") from None


def _checked(path: Path, whole: memoryview) -> int:
    """Return the length of the header of a file whose checksum is right."""
    try:
        mark, version, checksum, length, size = _HEAD.unpack(whole[: _HEAD.size])
    except struct.error:
        mark = b""
    if mark != MARK:
        raise Damaged(f"{path} is no sealed file; {_REMEDY}")
    if version != VERSION:
        raise Damaged(
            f"{path} has version {version}, and this release reads version {VERSION}; {_REMEDY} "
            "from the store"
        )
    if length != len(whole) or size > len(whole) - _HEAD.size:
        raise Damaged(f"{path} should have {length} bytes, and has {len(whole)}; {_REMEDY}")
    if crc32(whole[_HEAD.size :], crc32(_head(0, length, size))) != checksum:
        raise _damaged(path, "its checksum is wrong")
    return int(size)
