"""Text files that may be compressed with gzip, decompressed within a bound.

A kilobyte of gzip can stand for a megabyte of text, so a file is refused once its text exceeds
max(EXPANSION_FLOOR, PAGE_EXPANSION * its size) bytes, as the pages of Parquet are.
"""

import gzip
import io
import zlib
from pathlib import Path
from typing import BinaryIO, Final

from tidings.errors import InvalidForm
from tidings.formats.columnar_files import PAGE_EXPANSION, check_expansion

GZIP_ERRORS: Final = (EOFError, zlib.error, gzip.BadGzipFile)
SUFFIX: Final = ".gz"
_MAGIC: Final = b"\x1f\x8b"


def is_gzip(path: Path) -> bool:
    """Return whether a file is compressed, judging by its first bytes."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def open_text(path: Path) -> BinaryIO:
    """Open a file of text for reading bytes; a compressed one is decompressed on the way."""
    if not is_gzip(path):
        return path.open("rb")
    return io.BufferedReader(_BoundedGzip(path))


class _BoundedGzip(io.RawIOBase):
    """The text of a compressed file, up to the bound."""

    def __init__(self, path: Path) -> None:
        self._size, self._read = path.stat().st_size, 0
        self._file = gzip.open(path, "rb")  # noqa: SIM115 - closed with this object

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            read = self._file.readinto(buffer)
        except GZIP_ERRORS as error:
            raise InvalidForm(f"the compressed file is damaged: {error}") from None
        self._read += read
        check_expansion("text", self._read, self._size, PAGE_EXPANSION)
        return read

    def close(self) -> None:
        self._file.close()
        super().close()
