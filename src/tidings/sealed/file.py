"""Objects with large arrays as one file, mapped by everybody who reads it.

A head tells what the file is, how long, and its checksum. Behind it lie the places of the arrays,
a pickle of everything else, and the arrays, each at a multiple of 64 bytes. A reader gets arrays
that it may write to: a page is shared with all others until then, and the file never changes.
"""

import errno
import mmap
import os
import pickle
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final
from zlib import crc32

from tidings.errors import TidingsError

MARK: Final = b"tidings-sealed"
VERSION: Final = 1
ALIGNED: Final = 64
_HEAD: Final = struct.Struct(
    "<14sHIQQQ"
)  # mark, version, checksum, length, arrays, bytes of the pickle
_PLACE: Final = struct.Struct("<QQ")
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_ALLOWED: Final = {
    "builtins": {"set", "frozenset", "range", "complex", "bytearray"},
    "collections": {"Counter", "OrderedDict", "defaultdict"},
    "numpy": {"dtype", "ndarray"},
    "numpy._core.multiarray": {"scalar", "_reconstruct"},
    "numpy._core.numeric": {"_frombuffer"},
}


class Damaged(TidingsError):
    """A file that is not what was written; it is to be made anew."""


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


def write(path: Path, tree: object) -> int:
    """Write a tree of objects to a file, which is there whole or not at all; give its length."""
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(tree, protocol=5, buffer_callback=buffers.append)
    arrays = [each.raw() for each in buffers]
    at = _HEAD.size + _PLACE.size * len(arrays) + len(body)
    places = []
    for each in arrays:
        at = _aligned(at)
        places.append((at, each.nbytes))
        at += each.nbytes
    inside = [b"".join(_PLACE.pack(*place) for place in places), body]
    head = (at, len(arrays), len(body))
    with (
        room_in(path.parent),
        NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file,
    ):
        try:
            file.write(bytes(_HEAD.size))
            checksum = crc32(_head(0, *head))
            for piece in _pieces(inside, arrays):
                file.write(piece)
                checksum = crc32(piece, checksum)
            file.seek(0)
            file.write(_head(checksum, *head))
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).chmod(0o644)
            Path(file.name).rename(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    return at


def _head(checksum: int, *rest: int) -> bytes:
    return _HEAD.pack(MARK, VERSION, checksum, *rest)


def _aligned(at: int) -> int:
    return -(-at // ALIGNED) * ALIGNED


def _pieces(inside: Iterable[bytes], arrays: Iterable[memoryview]) -> Iterable[Any]:
    at = _HEAD.size
    for each in inside:
        yield each
        at += len(each)
    for array in arrays:
        yield bytes(_aligned(at) - at)
        yield array
        at = _aligned(at) + array.nbytes


def read(path: Path) -> Any:
    """Give the tree of a file, its arrays mapped; what is damaged is refused before it is used."""
    whole = _mapped(path)
    count, size = _checked(path, whole)
    first = _HEAD.size + _PLACE.size * count
    places = _PLACE.iter_unpack(whole[_HEAD.size : first])
    arrays = [whole[at : at + length] for at, length in places]
    return _Reader(BytesIO(whole[first : first + size]), buffers=arrays).load()


def is_whole(path: Path) -> bool:
    """Tell whether a file is there and as it was written; it is read once, and not kept."""
    try:
        _checked(path, _mapped(path))
    except Damaged:
        return False
    return True


def _mapped(path: Path) -> memoryview:
    try:
        with path.open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    except (OSError, ValueError) as error:
        raise Damaged(f"{path} cannot be read: {error}; {_REMEDY}") from None


_REMEDY: Final = "start again: whoever publishes it makes it anew"


def _checked(path: Path, whole: memoryview) -> tuple[int, int]:
    try:
        mark, version, checksum, length, count, size = _HEAD.unpack(whole[: _HEAD.size])
    except struct.error:
        mark = b""
    if mark != MARK:
        raise Damaged(f"{path} is no sealed file; {_REMEDY}")
    if version != VERSION:
        raise Damaged(f"{path} has version {version}, and this reads version {VERSION}; {_REMEDY}")
    if length != len(whole):
        raise Damaged(f"{path} should have {length} bytes, and has {len(whole)}; {_REMEDY}")
    if crc32(whole[_HEAD.size :], crc32(_head(0, length, count, size))) != checksum:
        raise Damaged(f"{path} is damaged: its checksum is wrong; {_REMEDY}")
    return count, size


def dumps(tree: object) -> bytes:
    """Give a tree as bytes."""
    return pickle.dumps(tree, protocol=5)


def loads(body: bytes) -> Any:
    """Read the bytes of a tree."""
    return _Reader(BytesIO(body)).load()


class _Reader(pickle.Unpickler):
    """Makes objects of Tidings and arrays; a file can name nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        found = None
        if module.startswith("tidings."):
            found = super().find_class(module, name)
        elif name in _ALLOWED.get(module, ()):
            return super().find_class(module, name)
        if not isinstance(found, type):
            raise Damaged(f"a sealed file holds no {module}.{name}; {_REMEDY}")
        return found
