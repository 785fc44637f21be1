"""Prefetching: the rows of the next offers are requested early, so that cache misses overlap.

At a million windows nearly every access misses the cache. The head of a row is requested FAR
offers ahead and tells where its entries are, which are requested NEAR offers ahead.
"""

from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tidings.compiled.array_types import AnyArray, Int32s
from tidings.compiled.jit import COMPILED, nested_inlined
from tidings.feed.columnar.kernels.layout import (
    FRONT,
    HELD,
    RANKED_WIDTH,
    RING,
    RING_CLASS,
    SIZE,
    RankedWindows,
)
from tidings.feed.columnar.kernels.ranked_list import list_start

NEAR: Final = 6
FAR: Final = 12


def prefetch_typed(_: Any, array: Any, index: Any) -> Any:
    """Generate the LLVM prefetch of the cache line of an element of an array, taken as flat."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        function_type = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        call = builder.module.declare_intrinsic("llvm.prefetch", [byte], function_type)
        read, keep_in_all_caches, data_cache = 0, 3, 1
        builder.call(call, [pointer, word(read), word(keep_in_all_caches), word(data_cache)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def prefetch_plain(_: AnyArray, __: int) -> None:
    """Do nothing: uncompiled kernels do not wait for memory."""


prefetch: Any = intrinsic(prefetch_typed) if COMPILED else prefetch_plain


@nested_inlined
def prefetch_head(windows: RankedWindows, row: int) -> None:
    """Request the counters of a row, which may lie on two cache lines."""
    start = row * RANKED_WIDTH
    prefetch(windows.head, start)
    prefetch(windows.head, start + RANKED_WIDTH - 1)


@nested_inlined
def prefetch_entries(windows: RankedWindows, row: int) -> None:
    """Request the entries of a row and both ends of its ring; its head should be in the cache."""
    head, ring = windows.head, windows.ring
    start, size = list_start(windows, row), head[row, SIZE]
    for i in range(0, size, 8):  # keys of 8 bytes, lines of 64
        prefetch(windows.key, start + i)
    for i in range(0, size, 5):  # entries of 12 bytes
        prefetch(windows.entry, 3 * (start + i))
    if head[row, RING_CLASS] >= 0:
        back = head[row, FRONT] + head[row, HELD]
        capacity = windows.ring_slabs.capacity[head[row, RING_CLASS]]
        prefetch(ring, head[row, RING] + head[row, FRONT])
        prefetch(ring, head[row, RING] + (back if back < capacity else back - capacity))


@nested_inlined
def prefetch_ahead(windows: RankedWindows, rows: Int32s, index: int) -> None:
    """Request what the offers a little ahead of `index` will need."""
    if index + FAR < len(rows):
        prefetch_head(windows, rows[index + FAR])
        prefetch_entries(windows, rows[index + NEAR])
