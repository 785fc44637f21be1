"""The sizes that a Parquet file claims to hold, read and checked without decoding it.

    PAR1 | page page page ... | page page ... | footer | length of the footer | PAR1
           pages of one column  the next one    offsets of all column chunks

The footer and each page header are structs of the Thrift compact protocol. They are parsed here
because `pyarrow` offers no page headers, and ends the process over damaged column metadata.

The bodies of delta-encoded pages claim a number of values again:

    DELTA_BINARY_PACKED      differences
    DELTA_LENGTH_BYTE_ARRAY  lengths as differences | bytes
    DELTA_BYTE_ARRAY         lengths of prefixes as differences | suffixes as above

    differences  block size, miniblocks per block, number of values, first value | blocks
    block        smallest difference | a bit width per miniblock | miniblocks

`pyarrow` allocates memory for that number, whatever the header of the page says: a forged count of
five bytes takes 8 GB.
"""

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, NamedTuple

import pyarrow as pa

from tidings.errors import InvalidForm

ThriftStruct = dict[tuple[int, int], Any]
"""The fields of a Thrift struct, by number and type: a field of another type is another field."""

# Types of the compact protocol; fields, types and encodings of parquet.thrift.
_I32, _I64, _BINARY, _LIST, _SET, _STRUCT = 5, 6, 8, 9, 10, 12
_FOOTER_SCHEMA, _FOOTER_GROUPS = (2, _LIST), (4, _LIST)
_ELEMENT_TYPE, _ELEMENT_REPETITION = (1, _I32), (3, _I32)
_ELEMENT_NAME, _ELEMENT_CHILDREN = (4, _BINARY), (5, _I32)
_GROUP_CHUNKS, _GROUP_ROWS = (1, _LIST), (3, _I64)
_CHUNK_METADATA = (3, _STRUCT)
_META_CODEC, _META_VALUES = (4, _I32), (5, _I64)
_META_DATA_PAGE, _META_DICTIONARY_PAGE = (9, _I64), (11, _I64)
_PAGE_TYPE, _PAGE_UNCOMPRESSED, _PAGE_COMPRESSED = (1, _I32), (2, _I32), (3, _I32)
_PAGE_HEADERS: Final = {0: (5, _STRUCT), 2: (7, _STRUCT), 3: (8, _STRUCT)}
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_VALUES, _ENCODING, _ENCODING_V2 = (1, _I32), (2, _I32), (4, _I32)
_LEVEL_ENCODINGS = (3, _I32), (4, _I32)
_LEVEL_BYTES_V2 = (5, _I32), (6, _I32)
_NOT_COMPRESSED_V2 = (7, 2)
_BYTE_ARRAY, _OPTIONAL, _REPEATED = 6, 1, 2
_RLE = 3
DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY = 5, 6, 7

UNCOMPRESSED: Final = 0
_TAIL: Final = struct.Struct("<I4s")
_HEADER_BYTES: Final = 1024
_DEEPEST: Final = 64
_CODECS: Final = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_MINIBLOCKS: Final = 4_096
"""Miniblocks of a block; writers use 4 to 32."""


@dataclass(frozen=True)
class Leaf:
    """A column of values in a Parquet schema.

    A `repeated` one may have many values per row, and an `optional` one may have none.
    """

    path: str
    is_binary: bool
    repeated: bool
    optional: bool


class DeltaPage(NamedTuple):
    """A page of values encoded as differences, whose body claims a number of values again.

    version 1   compressed(levels, values)
    version 2   levels, compressed(values)      `level_bytes` before the values
    """

    encoding: int
    values: int
    codec: int
    position: int
    compressed: int
    uncompressed: int
    level_bytes: int | None


@dataclass
class ColumnChunk:
    """The pages of one leaf in one row group, added up; sizes are uncompressed bytes."""

    leaf: Leaf
    values: int = 0
    size: int = 0
    dictionary_size: int = 0
    largest_page: int = 0
    delta_pages: list[DeltaPage] = field(default_factory=list)

    @property
    def shares_prefixes(self) -> bool:
        """Whether values are encoded as a prefix of the value before them and a suffix."""
        return any(page.encoding == DELTA_BYTE_ARRAY for page in self.delta_pages)

    def add_page(self, page: "_Page") -> None:
        """Add a page by its header."""
        if page.kind == _DICTIONARY:
            entries = page.header.get(_VALUES, -1)
            _require(0 <= entries <= page.uncompressed, "a dictionary with more entries than bytes")
            self.dictionary_size = page.uncompressed
        elif page.kind in (_DATA, _DATA_V2):
            _require(page.values >= 0, "a page with a negative number of values")
            self.values += page.values
            self.largest_page = max(self.largest_page, page.uncompressed)
            if delta_page := page.delta_page(self.leaf):
                self.delta_pages.append(delta_page)
        self.size += page.uncompressed


@dataclass
class RowGroup:
    """A row group, as its page headers describe it."""

    rows: int
    chunks: list[ColumnChunk] = field(default_factory=list)

    @property
    def size(self) -> int:
        """The uncompressed bytes of its pages."""
        return sum(chunk.size for chunk in self.chunks)


def read_row_groups(file: BinaryIO, size: int) -> Iterator[RowGroup]:
    """Yield the row groups of a file of `size` bytes; damaged metadata is an `InvalidForm`.

    The cost is O(footer + page headers): the bodies of the pages are skipped.
    """
    footer = _read_footer(file, size)
    leaves = _leaves(_structs(footer, _FOOTER_SCHEMA))
    walked = 0
    for group in _structs(footer, _FOOTER_GROUPS):
        row_group = RowGroup(group.get(_GROUP_ROWS, -1))
        chunks = _structs(group, _GROUP_CHUNKS)
        _require(
            row_group.rows >= 0 and len(chunks) == len(leaves), "a row group without its columns"
        )
        for leaf, chunk in zip(leaves, chunks, strict=True):
            row_group.chunks.append(ColumnChunk(leaf))
            for page in _pages(file, size, chunk.get(_CHUNK_METADATA, {})):
                # Pages of honest files do not overlap; claims that they do cost time for nothing.
                walked += page.header_length + page.compressed
                _require(walked <= size, "column chunks that are larger than the file")
                row_group.chunks[-1].add_page(page)
        yield row_group


class _Page(NamedTuple):
    """A page, by its header: the struct of its kind, and where its body is."""

    kind: int
    header: ThriftStruct
    header_length: int
    codec: int
    position: int
    compressed: int
    uncompressed: int

    @property
    def values(self) -> int:
        """The values that a data page claims, missing ones included; other pages have none."""
        return self.header.get(_VALUES, -1) if self.kind in (_DATA, _DATA_V2) else 0

    def delta_page(self, leaf: Leaf) -> DeltaPage | None:
        """Return a data page as one with encoded differences, if it is one."""
        is_v2 = self.kind == _DATA_V2
        encoding = self.header.get(_ENCODING_V2 if is_v2 else _ENCODING)
        if encoding not in (DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY):
            return None
        codec, level_bytes = self.codec, None
        if is_v2:
            lengths = [self.header.get(field, 0) for field in _LEVEL_BYTES_V2]
            level_bytes = sum(lengths)
            within = min(lengths) >= 0 and level_bytes <= min(self.compressed, self.uncompressed)
            _require(within, "levels that are larger than their page")
            codec = UNCOMPRESSED if _NOT_COMPRESSED_V2 in self.header else codec
        elif leaf.optional:
            known = all(self.header.get(field) == _RLE for field in _LEVEL_ENCODINGS)
            _require(known, "levels in an encoding other than RLE")
        return DeltaPage(
            encoding,
            self.values,
            codec,
            self.position,
            self.compressed,
            self.uncompressed,
            level_bytes,
        )


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise InvalidForm(f"the file is damaged: it has {what}")


def _structs(fields: ThriftStruct, field: tuple[int, int]) -> list[ThriftStruct]:
    elements: list[ThriftStruct] = fields.get(field, [])
    _require(all(isinstance(element, dict) for element in elements), "metadata of another type")
    return elements


def _read_footer(file: BinaryIO, size: int) -> ThriftStruct:
    file.seek(max(0, size - _TAIL.size))
    tail = file.read(_TAIL.size)
    _require(len(tail) == _TAIL.size, "no footer")
    length, magic = _TAIL.unpack(tail)
    _require(magic == b"PAR1" and length + _TAIL.size <= size, "no footer")
    file.seek(size - _TAIL.size - length)
    footer, _ = _read_struct(file.read(length))
    return footer


def _leaves(elements: list[ThriftStruct]) -> list[Leaf]:
    """Return the leaves of a schema, whose elements are listed depth first after the root."""
    leaves = list[Leaf]()
    parents = [[elements[0].get(_ELEMENT_CHILDREN, 0), "", False, False]] if elements else []
    for element in elements[1:]:
        while parents and parents[-1][0] == 0:
            parents.pop()
        _require(0 < len(parents) <= _DEEPEST, "a schema that is not a tree")
        parents[-1][0] -= 1
        _, above, repeated, optional = parents[-1]
        name = element.get(_ELEMENT_NAME, b"").decode(errors="replace")
        path = f"{above}.{name}" if above else name
        repetition = element.get(_ELEMENT_REPETITION)
        repeated = repeated or repetition == _REPEATED
        optional = optional or repetition in (_OPTIONAL, _REPEATED)
        children = element.get(_ELEMENT_CHILDREN, 0)
        if children:
            parents.append([children, path, repeated, optional])
        else:
            is_binary = element.get(_ELEMENT_TYPE) == _BYTE_ARRAY
            leaves.append(Leaf(path, is_binary, repeated, optional))
    for path, count in Counter(leaf.path for leaf in leaves).items():
        if count > 1:
            raise InvalidForm(f"there are several columns {path}; rename them")
    return leaves


def _pages(file: BinaryIO, size: int, chunk: ThriftStruct) -> Iterator[_Page]:
    """Yield the pages of a column chunk."""
    position, dictionary = chunk.get(_META_DATA_PAGE, 0), chunk.get(_META_DICTIONARY_PAGE, 0)
    if 0 < dictionary < position:
        position = dictionary
    missing = chunk.get(_META_VALUES, 0)
    while missing > 0:
        _require(0 <= position < size, "a column chunk outside of it")
        header, length = _read_page_header(file, position)
        compressed, uncompressed = (
            header.get(field, -1) for field in (_PAGE_COMPRESSED, _PAGE_UNCOMPRESSED)
        )
        _require(min(compressed, uncompressed) >= 0, "a page of negative size")
        kind = header.get(_PAGE_TYPE, -1)
        described = header.get(_PAGE_HEADERS[kind]) if kind in _PAGE_HEADERS else {}
        _require(described is not None, "a page without the header of its type")
        codec = chunk.get(_META_CODEC, UNCOMPRESSED)
        position += length
        page = _Page(kind, described or {}, length, codec, position, compressed, uncompressed)
        yield page
        missing -= page.values
        position += compressed


def _read_page_header(file: BinaryIO, position: int) -> tuple[ThriftStruct, int]:
    """Return a page header and its length; statistics can make it longer than usual."""
    size = _HEADER_BYTES
    while True:
        file.seek(position)
        content = file.read(size)
        try:
            return _read_struct(content)
        except InvalidForm:
            if len(content) < size:
                raise
        size *= 16


def _read_struct(content: bytes) -> tuple[ThriftStruct, int]:
    """Return the struct at the beginning of `content`, and its length."""
    reader = CompactReader(content)
    try:
        return reader.read_struct(), reader.position
    except IndexError:
        raise InvalidForm("the file is damaged: its metadata cannot be read") from None


class CompactReader:
    """A reader of the Thrift compact protocol; IndexError: the bytes end too early.

    The headers of encoded differences consist of the same variable-length integers.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.position = 0

    def read_struct(self, depth: int = 0) -> ThriftStruct:
        """Read a struct: fields of one byte (step in field number, type) and a value, then 0."""
        _require(depth <= _DEEPEST, "metadata that nests too deeply")
        fields, number, numbers = ThriftStruct(), 0, set[int]()
        while header := self._byte():
            step, kind = header >> 4, header & 15
            number = number + step if step else self.integer()
            # Readers differ in which of two they take.
            _require(number not in numbers, "metadata with a field that comes twice")
            numbers.add(number)
            # The types 1 and 2 of a field are the booleans themselves.
            fields[number, kind] = kind == 1 if kind <= 2 else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind <= 3:
            return self._byte()
        if kind <= _I64:
            return self.integer()
        if kind == 7:
            return self.take(8)
        if kind == _BINARY:
            return self.take(self.varint())
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind == _STRUCT:
            return self.read_struct(depth + 1)
        raise InvalidForm("the file is damaged: its metadata has values of unknown types")

    def _list(self, depth: int) -> list[Any]:
        _require(depth <= _DEEPEST, "metadata that nests too deeply")
        header = self._byte()
        count, kind = header >> 4, header & 15
        count = count if count < 15 else self.varint()
        return [self._value(kind, depth + 1) for _ in range(count)]

    def skip(self, count: int) -> None:
        """Skip some bytes."""
        self.position += count

    def _byte(self) -> int:
        self.position += 1
        return self.content[self.position - 1]

    def take(self, count: int) -> bytes:
        """Read some bytes."""
        start, self.position = self.position, self.position + count
        if self.position > len(self.content):
            raise IndexError
        return self.content[start : self.position]

    def varint(self) -> int:
        """Read an unsigned integer of 7 bits a byte, lowest first."""
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            _require(shift < 64, "metadata with numbers of more than 64 bits")
        return value | byte << shift

    def integer(self) -> int:
        """Read a signed integer, whose lowest bit is its sign."""
        value = self.varint()
        return value >> 1 ^ -(value & 1)


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
