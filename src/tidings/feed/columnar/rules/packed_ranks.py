"""The last chosen ranks of many subscribers, in as few bits as their distinct values need.

Subscribers with one policy usually have a handful of distinct ranks, such as their prefranks. A
cell has the code of a rank, and codes have the order of the ranks:

    16 values       | 3 7 | 1 1 | 0 15 | ..     4 bits, two cells a byte, the first in the low bits
    256 values      | 3 | 7 | 1 | 1 | ..        8 bits
    32,768 values   | 712 | 41090 | ..          16 bits, with gaps between the codes for new values
    more            | 0.35 | 0.7 | ..           float64: each cell is the rank itself, and stays so

Up to 256 values, codes are the places among all values, and all cells are written again when there
is a new one. With more that would take too long, so that new values get codes in the gaps.
"""

from typing import Final

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int64s, UInt8s, UInt16s
from tidings.feed.columnar.kernels.compaction import move_cells
from tidings.feed.columnar.kernels.layout import Slabs
from tidings.feed.columnar.rules.kernels.layout import NIBBLE, PAIR, WHOLE, RankPool
from tidings.feed.columnar.slab_pools import SlabMoves, lengthened

_BYTE: Final = 8
_PAIR_CODES: Final = 1 << PAIR
_MOST_PAIRED: Final = _PAIR_CODES // 2
_CELLS_PER_VALUE: Final = 4
"""A value and its code take 16 bytes, so that fewer cells would not save anything."""
_GROWTH: Final = 8
"""Codes are spaced out again only after the values have grown by an eighth."""


class PackedRanks:
    """A pool of ranks; all cells have equally many bits."""

    def __init__(self) -> None:
        self._memory = np.zeros(0)
        self._bits = np.array([NIBBLE])
        self._spaced = 0
        self.values = np.zeros(0)
        """The distinct ranks in order, while cells refer to them."""
        self._codes = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._memory) * WHOLE // int(self._bits[0])

    @property
    def bits(self) -> int:
        """The bits of a cell."""
        return int(self._bits[0])

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return self._memory.nbytes + self.values.nbytes + self._codes.nbytes

    @property
    def _packed(self) -> UInt8s:
        return self._memory.view(np.uint8)

    @property
    def _paired(self) -> UInt16s:
        return self._memory.view(np.uint16)

    def columns(self, slabs: Slabs) -> RankPool:
        """Return the pool as the kernels take it."""
        memory = (self._packed, self._paired, self._memory)
        return RankPool(*memory, self._bits, self.values, self._codes, slabs)

    def lengthen(self, cells: int) -> None:
        """Grow to at least this many cells."""
        size = -(-cells * self.bits // WHOLE)
        if size > len(self._memory):
            self._memory = lengthened(self._memory, size)

    def move(self, moves: SlabMoves) -> None:
        """Move slabs, all of which are whole bytes."""
        if self.bits == WHOLE:
            move_cells(self._memory, *moves)
        elif self.bits == PAIR:
            move_cells(self._paired, *moves)
        else:
            scale = _BYTE // self.bits
            move_cells(self._packed, *(cells // scale for cells in moves))

    def get(self, cells: Int64s) -> Float64s:
        """Return the ranks of some cells."""
        if self.bits == WHOLE:
            return self._memory[cells]
        places = np.searchsorted(self._codes, self._read(cells))
        # Cells that were never written may have a code that no value has.
        return self.values[np.minimum(places, len(self.values) - 1)]

    def put(self, cells: Int64s, ranks: AnyArray) -> None:
        """Write ranks to distinct cells."""
        ranks = ranks.astype(np.float64)
        self.learn(ranks)
        if self.bits == WHOLE:
            self._memory[cells] = ranks
        elif len(ranks):
            self._write(cells, self._codes[np.searchsorted(self.values, ranks)])

    def learn(self, ranks: Float64s) -> None:
        """Make it possible to write these ranks."""
        if self.bits == WHOLE:
            return
        values = np.union1d(self.values, ranks)
        if len(values) == len(self.values):
            return
        codes = _codes_in_gaps(self.values, self._codes, values) if self.bits == PAIR else None
        if codes is None:
            self._repack(values)
        else:
            self.values, self._codes = values, codes

    def _repack(self, values: Float64s) -> None:
        """Write all cells again, with new codes for more values."""
        bits, known = self._least_bits(len(values)), np.zeros(0)
        cells = np.arange(len(self) if len(self.values) else 0)
        if len(cells):
            known = self.get(cells)
        self._memory = np.zeros(-(-len(self) * bits // WHOLE))
        self._bits[0] = bits
        if bits == WHOLE:
            self._memory[cells] = known
            self.values, self._codes = np.zeros(0), np.zeros(0, np.int64)
            return
        places = np.arange(len(values), dtype=np.int64)
        self.values, self._spaced = values, len(values)
        self._codes = places * _PAIR_CODES // len(values) if bits == PAIR else places
        if len(cells):
            self._write(cells, self._codes[np.searchsorted(values, known)])

    def _least_bits(self, values: int) -> int:
        """Return the bits of a cell that holds one of `values` values."""
        for bits in (NIBBLE, _BYTE):
            if values <= 1 << bits:
                return bits
        most = min(_MOST_PAIRED, len(self) // _CELLS_PER_VALUE)
        is_soon = self.bits == PAIR and values < self._spaced + self._spaced // _GROWTH
        return WHOLE if values > most or is_soon else PAIR

    def _read(self, cells: Int64s) -> AnyArray:
        """Return the codes of cells."""
        if self.bits == PAIR:
            return self._paired[cells]
        if self.bits == _BYTE:
            return self._packed[cells]
        shift = ((cells & 1) << 2).astype(np.uint8)
        codes: UInt8s = (self._packed[cells >> 1] >> shift) & 15
        return codes

    def _write(self, cells: Int64s, codes: Int64s) -> None:
        if self.bits == PAIR:
            self._paired[cells] = codes
            return
        packed, small = self._packed, codes.astype(np.uint8)
        if self.bits == _BYTE:
            packed[cells] = small
            return
        # One half after the other: two cells of one byte must not overwrite each other.
        for half, kept in ((0, 0xF0), (1, 0x0F)):
            mine = (cells & 1) == half
            byte = cells[mine] >> 1
            packed[byte] = (packed[byte] & kept) | (small[mine] << np.uint8(4 * half))


def _codes_in_gaps(old: Float64s, codes: Int64s, values: Float64s) -> Int64s | None:
    """Return the codes of more values, where old ones keep theirs; None if a gap is too small."""
    is_new = np.ones(len(values), np.bool_)
    is_new[np.searchsorted(values, old)] = False
    new = values[is_new]
    gaps = np.searchsorted(old, new)
    sizes = np.bincount(gaps, minlength=len(old) + 1)
    edges = np.concatenate([[-1], codes, [_PAIR_CODES]])
    spans = np.diff(edges)
    if (sizes >= spans).any():
        return None
    nth = np.arange(len(new)) - (np.cumsum(sizes) - sizes)[gaps] + 1
    merged = np.empty(len(values), np.int64)
    merged[~is_new] = codes
    merged[is_new] = edges[gaps] + nth * spans[gaps] // (sizes[gaps] + 1)
    return merged
