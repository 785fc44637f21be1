"""Numbers of values inside delta-encoded Parquet pages, checked before they are decoded.

    DELTA_BINARY_PACKED      differences
    DELTA_LENGTH_BYTE_ARRAY  lengths as differences | bytes
    DELTA_BYTE_ARRAY         lengths of prefixes as differences | suffixes as above

    differences  block size, miniblocks per block, number of values, first value | blocks
    block        smallest difference | a bit width per miniblock | miniblocks

`pyarrow` allocates memory for as many lengths as the body of a page claims, whatever the header of
the page says: a forged count of five bytes takes 8 GB.
"""

import struct
from typing import BinaryIO, Final, NamedTuple

import pyarrow as pa

from tidings.errors import InvalidForm
from tidings.formats.parquet_claims import (
    DELTA_BYTE_ARRAY,
    UNCOMPRESSED,
    ColumnChunk,
    CompactReader,
    DeltaPage,
    Leaf,
)

_CODECS: Final = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_MINIBLOCKS: Final = 4_096
"""Miniblocks of a block; writers use 4 to 32."""


def check_delta_pages(file: BinaryIO, chunk: ColumnChunk) -> None:
    """Refuse a column chunk whose delta-encoded pages claim more values than their headers.

    The cost is one decompression of these pages, so their sizes must have been checked before.
    """
    name = chunk.leaf.path
    for page in chunk.delta_pages:
        content = _read_values(file, page, chunk.leaf)
        if not content:  # only missing values
            continue
        reader = CompactReader(content)
        try:
            differences = _read_header(reader, page, name)
            if page.encoding == DELTA_BYTE_ARRAY:
                _skip_blocks(reader, differences)
                _read_header(reader, page, name)
        except IndexError:
            raise InvalidForm(f"the file is damaged: a page of column {name} ends early") from None


class _Differences(NamedTuple):
    """The header of encoded differences."""

    values: int
    miniblocks: int
    values_per_miniblock: int


def _read_header(reader: CompactReader, page: DeltaPage, name: str) -> _Differences:
    block, miniblocks, values = reader.varint(), reader.varint(), reader.varint()
    reader.integer()  # the first value
    if values > page.values:
        raise InvalidForm(
            f"the file is damaged: a page of column {name} claims {values:,} values, but its "
            f"header {page.values:,}"
        )
    if not 0 < miniblocks <= _MINIBLOCKS or block // miniblocks == 0:
        raise InvalidForm(
            f"the file is damaged: a page of column {name} has {miniblocks:,} miniblocks in a "
            f"block of {block:,} values; expected 1 to {_MINIBLOCKS:,}"
        )
    return _Differences(values, miniblocks, block // miniblocks)


def _skip_blocks(reader: CompactReader, differences: _Differences) -> None:
    missing = differences.values - 1  # the first value is in the header
    while missing > 0:
        reader.integer()  # the smallest difference
        for width in reader.take(differences.miniblocks):
            # Miniblocks after the last value have a width, but no bytes.
            if missing > 0:
                reader.skip(differences.values_per_miniblock * width // 8)
                missing -= differences.values_per_miniblock


def _read_values(file: BinaryIO, page: DeltaPage, leaf: Leaf) -> bytes:
    """Return the encoded values of a page, decompressed and without the levels before them."""
    file.seek(page.position + (page.level_bytes or 0))
    if page.level_bytes is not None:
        content = file.read(page.compressed - page.level_bytes)
        return _decompress(content, page.uncompressed - page.level_bytes, page, leaf)
    content = _decompress(file.read(page.compressed), page.uncompressed, page, leaf)
    start = 0
    # Repetition levels and definition levels, each with its length.
    for _ in range(leaf.repeated + leaf.optional):
        if start + 4 > len(content):
            break
        (length,) = struct.unpack_from("<I", content, start)
        start += 4 + length
    return content[start:]


def _decompress(content: bytes, size: int, page: DeltaPage, leaf: Leaf) -> bytes:
    if page.codec == UNCOMPRESSED or size == 0:
        return content
    if page.codec not in _CODECS:
        raise InvalidForm(
            f"column {leaf.path} has delta-encoded pages in a compression that is not known here; "
            f"expected one of: {', '.join(_CODECS.values())}"
        )
    try:
        return bytes(pa.Codec(_CODECS[page.codec]).decompress(content, size))
    except (pa.ArrowException, OSError, ValueError):
        raise InvalidForm(
            f"the file is damaged: a page of column {leaf.path} cannot be decompressed"
        ) from None
