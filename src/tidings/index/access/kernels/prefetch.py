"""A wish to the memory: what will be read soon."""

from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tidings.compiled.jit import COMPILED

READ, KEEP, NUMBERS = 0, 3, 1  # to be read, and again soon; not code


def _prefetch(_: Any, array: Any, at: Any) -> Any:
    """Ask for array[at], whose array has one dimension; nothing waits for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(builder.gep(made.data, [arguments[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        call = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        builder.call(call, [place, *(ir.Constant(number, each) for each in (READ, KEEP, NUMBERS))])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def nothing(array: Any, at: int) -> None:
    """Ask for nothing: the twin for runs without the compiler."""


prefetch: Final[Any] = intrinsic(_prefetch) if COMPILED else nothing
