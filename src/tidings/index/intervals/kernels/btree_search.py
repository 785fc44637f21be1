"""Rank of a number among sorted numbers: a static B-tree of 16 keys a node.

    level 1        [ k0 k16 k32 ... ]             every 16th key of the level below
    level 0   [k0 ... k15][k16 ... k31] ...       the numbers themselves

A node is two cache lines, and comparing all of it at once takes no branch. Levels are padded with
NaN, which no comparison accepts.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.arrays import aligned
from tidings.compiled.jit import inner, wide_vectors
from tidings.compiled.simd import splat

FAN: Final = 16


class SearchTree(NamedTuple):
    """The keys of all levels, lowest level first, and the first key of each level."""

    keys: Float64s
    starts: Int64s


def search_tree(numbers: Float64s) -> SearchTree:
    """Build the tree over ascending numbers for `count_until`; O(n), n (1 + 1/15) keys."""
    levels = [numbers]
    # Children are found by arithmetic, so nodes need no pointers.
    while len(levels[-1]) > FAN:
        levels.append(levels[-1][::FAN])
    padded = [-(-max(1, len(level)) // FAN) * FAN for level in levels]
    starts = np.cumsum([0, *padded])
    keys = aligned(int(starts[-1]), np.float64)
    keys[:] = np.nan
    for start, level in zip(starts, levels, strict=False):
        keys[start : start + len(level)] = level
    return SearchTree(keys, starts.astype(np.int64))


@inner
def count_until(tree: SearchTree, q: float) -> int:
    """Return how many of the numbers are <= q; 0 for NaN. O(log16 n)."""
    keys, starts = tree.keys, tree.starts
    node = 0
    for level in range(len(starts) - 2, 0, -1):
        count = count_node(keys, starts[level] + node * FAN, q)
        # The first key of a node repeats in its parent: q below all keys goes to the leftmost node.
        node = node * FAN + max(count - 1, 0)
    return node * FAN + count_node(keys, node * FAN, q)


def count_node_plain(keys: Float64s, first: int, q: float) -> int:
    """Return how many of the 16 keys from `first` on are <= q."""
    count = 0
    for key in range(first, first + FAN):
        count += keys[key] <= q
    return count


def compare_node_typed(_: Any, keys: Any, first: Any, q: Any) -> Any:
    """Emit one vector comparison of 16 keys and a popcount of its mask."""

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
    """Return how many of the 16 keys from `first` on are <= q."""
    count: int = compare_node(keys, first, q)
    return count


count_node = count_node_fast if wide_vectors() else inner(count_node_plain)
