"""Where a number stands among sorted numbers: a static B-tree of 16 keys a node.

`keys` holds the numbers, then every 16th of them, and so on, each level filled up with NaN, which
no comparison takes; `starts` is where each level begins. A node is two cache lines, and comparing
all of it takes no branch.
"""

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tidings.compiled.aligned import aligned
from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.jit import inner, wide_vectors
from tidings.compiled.simd import splat

Keys = tuple[Float64s, Int64s]

FAN: Final = 16


def search_tree(numbers: Float64s) -> Keys:
    """Lay out ascending numbers for `count_until`; O(n), n (1 + 1/15) numbers."""
    levels = [numbers]
    while len(levels[-1]) > FAN:
        levels.append(levels[-1][::FAN])
    padded = [-(-max(1, len(level)) // FAN) * FAN for level in levels]
    starts = np.cumsum([0, *padded])
    keys = aligned(int(starts[-1]), np.float64)
    keys[:] = np.nan
    for start, level in zip(starts, levels, strict=False):
        keys[start : start + len(level)] = level
    return keys, starts.astype(np.int64)


def count_node_plain(keys: Float64s, first: int, q: float) -> int:
    """Give how many of the 16 keys from `first` on are <= q."""
    count = 0
    for key in range(first, first + FAN):
        count += keys[key] <= q
    return count


def compare_node_typed(_: Any, keys: Any, first: Any, q: Any) -> Any:
    """Compare 16 keys at once and count the bits of the mask."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        vector = ir.VectorType(ir.DoubleType(), FAN)
        pointer = builder.bitcast(builder.gep(array.data, [arguments[1]]), vector.as_pointer())
        mask = builder.fcmp_ordered(
            "<=", builder.load(pointer, align=8), splat(builder, vector, arguments[2])
        )
        count = builder.ctpop(builder.bitcast(mask, ir.IntType(FAN)))
        return builder.zext(count, ir.IntType(64))

    return types.int64(keys, types.int64, types.float64), generate


compare_node: Any = intrinsic(compare_node_typed)


@inner
def count_node_fast(keys: Float64s, first: int, q: float) -> int:
    """Give how many of the 16 keys from `first` on are <= q."""
    count: int = compare_node(keys, first, q)
    return count


count_node = count_node_fast if wide_vectors() else inner(count_node_plain)


@inner
def count_until(keys: Float64s, starts: Int64s, q: float) -> int:
    """Give how many of the numbers are <= q; none for NaN. O(log16 n)."""
    node = 0
    for level in range(len(starts) - 2, 0, -1):
        count = count_node(keys, starts[level] + node * FAN, q)
        node = node * FAN + max(count - 1, 0)
    return node * FAN + count_node(keys, node * FAN, q)
