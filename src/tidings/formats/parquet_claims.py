"""The decoded size of a Parquet file, as its headers claim it, read without decoding anything.

    PAR1 | page page page ... | page page ... | footer | length of the footer | PAR1
           pages of one column  the next one    offsets of all column chunks

The footer and each page header are structs of the Thrift compact protocol. They are parsed here
because `pyarrow` offers no page headers, and ends the process over damaged column metadata.
"""

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

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
_META_VALUES, _META_DATA_PAGE, _META_DICTIONARY_PAGE = (5, _I64), (9, _I64), (11, _I64)
_PAGE_UNCOMPRESSED, _PAGE_COMPRESSED = (2, _I32), (3, _I32)
_PAGE_DATA, _PAGE_DICTIONARY, _PAGE_DATA_V2 = (5, _STRUCT), (7, _STRUCT), (8, _STRUCT)
_VALUES, _ENCODING, _ENCODING_V2 = (1, _I32), (2, _I32), (4, _I32)
_BYTE_ARRAY, _REPEATED, _DELTA_BYTE_ARRAY = 6, 2, 7

_TAIL: Final = struct.Struct("<I4s")
_HEADER_BYTES: Final = 1024
_DEEPEST: Final = 64


@dataclass(frozen=True)
class Leaf:
    """A column of values in a Parquet schema; a `repeated` one may have many values per row."""

    path: str
    is_binary: bool
    repeated: bool


@dataclass
class ColumnChunk:
    """The pages of one leaf in one row group, added up; sizes are uncompressed bytes."""

    leaf: Leaf
    values: int = 0
    size: int = 0
    dictionary_size: int = 0
    largest_page: int = 0
    shares_prefixes: bool = False
    """Whether values are encoded as a prefix of the value before them and a suffix."""

    def add_page(self, header: ThriftStruct) -> None:
        """Add a page by its header."""
        uncompressed = header[_PAGE_UNCOMPRESSED]
        if _PAGE_DICTIONARY in header:
            entries = header[_PAGE_DICTIONARY].get(_VALUES, -1)
            _require(0 <= entries <= uncompressed, "a dictionary with more entries than bytes")
            self.dictionary_size = uncompressed
        elif page := header.get(_PAGE_DATA) or header.get(_PAGE_DATA_V2):
            values = page.get(_VALUES, -1)
            encoding = page.get(_ENCODING if _PAGE_DATA in header else _ENCODING_V2)
            _require(values >= 0, "a page with a negative number of values")
            self.values += values
            self.largest_page = max(self.largest_page, uncompressed)
            self.shares_prefixes |= encoding == _DELTA_BYTE_ARRAY
        self.size += uncompressed


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
            for header, length in _page_headers(file, size, chunk.get(_CHUNK_METADATA, {})):
                # Pages of honest files do not overlap; claims that they do cost time for nothing.
                walked += length
                _require(walked <= size, "column chunks that are larger than the file")
                row_group.chunks[-1].add_page(header)
        yield row_group


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
    parents = [[elements[0].get(_ELEMENT_CHILDREN, 0), "", False]] if elements else []
    for element in elements[1:]:
        while parents and parents[-1][0] == 0:
            parents.pop()
        _require(0 < len(parents) <= _DEEPEST, "a schema that is not a tree")
        parents[-1][0] -= 1
        _, above, repeated = parents[-1]
        name = element.get(_ELEMENT_NAME, b"").decode(errors="replace")
        path = f"{above}.{name}" if above else name
        repeated = repeated or element.get(_ELEMENT_REPETITION) == _REPEATED
        children = element.get(_ELEMENT_CHILDREN, 0)
        if children:
            parents.append([children, path, repeated])
        else:
            leaves.append(Leaf(path, element.get(_ELEMENT_TYPE) == _BYTE_ARRAY, repeated))
    for path, count in Counter(leaf.path for leaf in leaves).items():
        if count > 1:
            raise InvalidForm(f"there are several columns {path}; rename them")
    return leaves


def _page_headers(
    file: BinaryIO, size: int, chunk: ThriftStruct
) -> Iterator[tuple[ThriftStruct, int]]:
    """Yield the page headers of a column chunk, each with the length of the page and its header."""
    position, dictionary = chunk.get(_META_DATA_PAGE, 0), chunk.get(_META_DICTIONARY_PAGE, 0)
    if 0 < dictionary < position:
        position = dictionary
    missing = chunk.get(_META_VALUES, 0)
    while missing > 0:
        _require(0 <= position < size, "a column chunk outside of it")
        header, length = _read_page_header(file, position)
        body = header.get(_PAGE_COMPRESSED, -1)
        _require(body >= 0 and header.get(_PAGE_UNCOMPRESSED, -1) >= 0, "a page of negative size")
        yield header, length + body
        page = header.get(_PAGE_DATA) or header.get(_PAGE_DATA_V2) or {}
        missing -= page.get(_VALUES, 0)
        position += length + body


def _read_page_header(file: BinaryIO, position: int) -> tuple[ThriftStruct, int]:
    """Return a page header and its length; statistics can make it longer than usual."""
    wanted = _HEADER_BYTES
    while True:
        file.seek(position)
        content = file.read(wanted)
        try:
            return _read_struct(content)
        except InvalidForm:
            if len(content) < wanted:
                raise
        wanted *= 16


def _read_struct(content: bytes) -> tuple[ThriftStruct, int]:
    """Return the struct at the beginning of `content`, and its length."""
    reader = _ThriftReader(content)
    try:
        return reader.read_struct(), reader.position
    except IndexError:
        raise InvalidForm("the file is damaged: its metadata cannot be read") from None


class _ThriftReader:
    """A reader of the Thrift compact protocol; IndexError: the bytes end too early."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.position = 0

    def read_struct(self, depth: int = 0) -> ThriftStruct:
        """Read a struct: fields of one byte (step in field number, type) and a value, then 0."""
        _require(depth <= _DEEPEST, "metadata that nests too deeply")
        fields, number = ThriftStruct(), 0
        while header := self._byte():
            step, kind = header >> 4, header & 15
            number = number + step if step else self._integer()
            # The types 1 and 2 of a field are the booleans themselves.
            fields[number, kind] = kind == 1 if kind <= 2 else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind <= 3:
            return self._byte()
        if kind <= _I64:
            return self._integer()
        if kind == 7:
            return self._bytes(8)
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind == _STRUCT:
            return self.read_struct(depth + 1)
        raise InvalidForm("the file is damaged: its metadata has values of unknown types")

    def _list(self, depth: int) -> list[Any]:
        _require(depth <= _DEEPEST, "metadata that nests too deeply")
        header = self._byte()
        count, kind = header >> 4, header & 15
        count = count if count < 15 else self._varint()
        return [self._value(kind, depth + 1) for _ in range(count)]

    def _byte(self) -> int:
        self.position += 1
        return self.content[self.position - 1]

    def _bytes(self, count: int) -> bytes:
        start, self.position = self.position, self.position + count
        if self.position > len(self.content):
            raise IndexError
        return self.content[start : self.position]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            _require(shift < 64, "metadata with numbers of more than 64 bits")
        return value | byte << shift

    def _integer(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)
