"""The last chosen ranks of many subscribers, in as few bits as their distinct values need.

Subscribers with one policy usually have a handful of distinct ranks, such as their prefranks.
While there are at most 16, a cell has 4 bits, and up to 256 it has a byte: the place of the rank
among all distinct ones in order. With more, each cell is the rank itself, and stays so.

    16 values    | 3 7 | 1 1 | 0 15 | ..        two cells a byte, the first in the low bits
    256 values   | 3 | 7 | 1 | 1 | ..
    more         | 0.35 | 0.7 | ..              float64
"""

from typing import Final

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int64s, UInt8s
from tidings.feed.columnar.cohort_arrays import SlabMoves, lengthened
from tidings.feed.columnar.kernels.compaction import move_cells
from tidings.feed.columnar.kernels.layout import Slabs
from tidings.feed.columnar.rules.kernels.layout import NIBBLE, WHOLE, RankPool

_BYTE: Final = 8


class PackedRanks:
    """A pool of ranks; all cells have equally many bits."""

    def __init__(self) -> None:
        self._memory = np.zeros(0)
        self._bits = np.array([NIBBLE])
        self.values = np.zeros(0)
        """The distinct ranks in order, while cells refer to them."""

    def __len__(self) -> int:
        return len(self._memory) * WHOLE // int(self._bits[0])

    @property
    def bits(self) -> int:
        """The bits of a cell."""
        return int(self._bits[0])

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return self._memory.nbytes + self.values.nbytes

    @property
    def _packed(self) -> UInt8s:
        return self._memory.view(np.uint8)

    def columns(self, slabs: Slabs) -> RankPool:
        """Return the pool as the kernels take it."""
        return RankPool(self._packed, self._memory, self._bits, self.values, slabs)

    def lengthen(self, cells: int) -> None:
        """Grow to at least this many cells."""
        size = -(-cells * self.bits // WHOLE)
        if size > len(self._memory):
            self._memory = lengthened(self._memory, size)

    def move(self, moves: SlabMoves) -> None:
        """Move slabs, all of which are whole bytes."""
        if self.bits == WHOLE:
            move_cells(self._memory, *moves)
        else:
            scale = _BYTE // self.bits
            move_cells(self._packed, *(cells // scale for cells in moves))

    def get(self, cells: Int64s) -> Float64s:
        """Return the ranks of some cells."""
        if self.bits == WHOLE:
            return self._memory[cells]
        return self.values[self._places(cells)]

    def put(self, cells: Int64s, ranks: AnyArray) -> None:
        """Write ranks to distinct cells."""
        ranks = ranks.astype(np.float64)
        self.learn(ranks)
        if self.bits == WHOLE:
            self._memory[cells] = ranks
        else:
            self._write(cells, np.searchsorted(self.values, ranks))

    def learn(self, ranks: Float64s) -> None:
        """Make it possible to write these ranks."""
        if self.bits == WHOLE:
            return
        values = np.union1d(self.values, ranks)
        if len(values) > len(self.values):
            self._repack(values)

    def _repack(self, values: Float64s) -> None:
        """Write all cells again, as they refer to more values."""
        bits = next((bits for bits in (NIBBLE, _BYTE) if len(values) <= 1 << bits), WHOLE)
        cells = np.arange(len(self) if len(self.values) else 0)
        known = self.get(cells)  # cells that nobody has written are 0, the place of the first
        self._memory = np.zeros(-(-len(self) * bits // WHOLE))
        self._bits[0] = bits
        if bits == WHOLE:
            self._memory[cells] = known
            self.values = np.zeros(0)
        else:
            self._write(cells, np.searchsorted(values, known))
            self.values = values

    def _places(self, cells: Int64s) -> UInt8s:
        if self.bits == _BYTE:
            return self._packed[cells]
        shift = ((cells & 1) << 2).astype(np.uint8)
        places: UInt8s = (self._packed[cells >> 1] >> shift) & 15
        return places

    def _write(self, cells: Int64s, places: Int64s) -> None:
        packed, places = self._packed, places.astype(np.uint8)
        if self.bits == _BYTE:
            packed[cells] = places
            return
        # One half after the other: two cells of one byte must not overwrite each other.
        for half, kept in ((0, 0xF0), (1, 0x0F)):
            mine = (cells & 1) == half
            byte = cells[mine] >> 1
            packed[byte] = (packed[byte] & kept) | (places[mine] << np.uint8(4 * half))
