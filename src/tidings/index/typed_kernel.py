"""Direct calls of compiled kernels whose argument types never vary."""

from collections.abc import Callable
from typing import Any


class TypedKernel:
    """A kernel that is always called with arguments of the same types, resolved once.

    Numba resolves argument types on every call, which takes 0.5 us for each NamedTuple: as long as
    a short query. After the first call this one goes straight to the compiled code. All arrays
    must therefore keep their dtype, dimension and C layout, which the builders of an index ensure.
    """

    def __init__(self, kernel: Callable[..., Any]) -> None:
        # A kernel for other kernels has no machine code of its own, only an entry for Python.
        self._kernel: Callable[..., Any] = getattr(kernel, "entry", kernel)
        self._entry: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        if self._entry is not None:
            return self._entry(*arguments)
        return self._first_call(*arguments)

    def _first_call(self, *arguments: Any) -> Any:
        result = self._kernel(*arguments)
        compiled: Any = self._kernel
        if hasattr(compiled, "overloads"):
            types = tuple(map(compiled.typeof_pyval, arguments))
            self._entry = compiled.overloads[types].entry_point
        else:  # without the JIT a kernel is a plain function
            self._entry = self._kernel
        return result
