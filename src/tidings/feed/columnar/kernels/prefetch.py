"""Memory asked for before it is needed, so that many windows are waited for at once."""

from typing import Any, Final

import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tidings.compiled.array_types import Int32s
from tidings.compiled.jit import COMPILED, inlined
from tidings.feed.columnar.kernels.layout import (
    FIRST,
    FRONT,
    HELD,
    LIST,
    RING,
    RING_CAP,
    RING_CLASS,
    SIZE,
    Book,
)

NEAR: Final = 6
FAR: Final = 12
"""So many offers ahead, entries and heads are asked for."""


def prefetch_typed(_: Any, array: Any, at: Any) -> Any:
    """Ask for the line of a number in an array, which is taken as flat."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        call = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(call, [pointer, *(word(each) for each in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def prefetch_plain(_: npt.NDArray[Any], __: int) -> None:
    """Do nothing: without compilation there is nothing to hide."""


prefetch: Any = intrinsic(prefetch_typed) if COMPILED else prefetch_plain


@inlined
def expect_head(book: Book, row: int) -> None:
    """Ask for what is known of a subscriber."""
    head = book[0]
    start = row * head.shape[1]
    prefetch(head, start)
    prefetch(head, start + head.shape[1] - 1)


@inlined
def expect_entries(book: Book, row: int) -> None:
    """Ask for a subscriber's entries and both ends of its ring; the head must be there."""
    head, keys, who, ring, room = book[0], book[1], book[3], book[4], book[5]
    base, size = head[row, LIST] + head[row, FIRST], head[row, SIZE]
    for at in range(0, size, 8):
        prefetch(keys, base + at)
    for at in range(0, size, 5):
        prefetch(who, 3 * (base + at))
    if head[row, RING_CLASS] >= 0:
        back = head[row, FRONT] + head[row, HELD]
        cap = room[head[row, RING_CLASS], RING_CAP]
        prefetch(ring, head[row, RING] + head[row, FRONT])
        prefetch(ring, head[row, RING] + (back if back < cap else back - cap))


@inlined
def expect(book: Book, rows: Int32s, at: int) -> None:
    """Ask for what the offers a little ahead will need."""
    if at + FAR < len(rows):
        expect_head(book, rows[at + FAR])
        expect_entries(book, rows[at + NEAR])
