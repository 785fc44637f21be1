"""Decorators that compile kernels with one set of options, and direct calls of compiled code."""

from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

import numba
from llvmlite import binding
from numba.core import event

from tidings.compiled.linked import Kernel, LinkedKernel
from tidings.compiled.progress import PROGRESS

P = ParamSpec("P")
R = TypeVar("R")

COMPILED: Final = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
"""False with NUMBA_DISABLE_JIT=1, which leaves kernels as Python functions."""


def wide_vectors() -> bool:
    """Return whether this CPU has AVX2, without which the scalar versions of kernels run."""
    features = binding.get_host_cpu_features() if COMPILED else {}
    return bool(features.get("avx2"))


if COMPILED:
    event.register("numba:compile", PROGRESS)  # type: ignore[no-untyped-call]


def write_progress() -> None:
    """Write the progress of compilation to standard error, even if that is not a terminal."""
    PROGRESS.writes_lines = True


OPTIONS: Final[dict[str, Any]] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "boundscheck": None,
}
WITHOUT_NRT: Final[dict[str, Any]] = {**OPTIONS, "_nrt": False}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel: cached on disk, without the GIL, with plain IEEE arithmetic."""
    compiled: Callable[P, R] = Kernel(function, OPTIONS) if COMPILED else function
    return compiled


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that others call in their loops, and that allocates no array.

    It has no reference counting, whose atomic increments cost more than such a kernel.
    """
    return _linked(function, WITHOUT_NRT)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile an inner kernel that is inlined into its callers.

    A tuple of arrays is passed field by field, which costs more than a small kernel does.
    """
    return _linked(function, {**WITHOUT_NRT, "forceinline": True})


def nested(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that others call, and that allocates arrays."""
    return _linked(function, OPTIONS)


def _linked(function: Callable[P, R], options: dict[str, Any]) -> Callable[P, R]:
    linked: Any = LinkedKernel(function, options) if COMPILED else function
    return linked


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
