"""LLVM prefetch intrinsic: hints that a cache line will be read soon."""

from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tidings.compiled.jit import COMPILED

_FLAGS: Final = (0, 3, 1)  # read, keep in all cache levels, data rather than code


def _typed(_: Any, array: Any, index: Any) -> Any:
    """Emit the hint for the line of `array[index]`; the array is taken as flat."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        call = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(call, [pointer, *(word(flag) for flag in _FLAGS)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _nothing(_array: Any, _index: int) -> None:
    """Do nothing: without compilation there is no latency to hide."""


prefetch: Final[Any] = intrinsic(_typed) if COMPILED else _nothing
