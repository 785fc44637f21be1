"""Decorators that compile kernels, with one set of options for all of them."""

import sys
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

import numba
from llvmlite import binding
from numba.core import event

P = ParamSpec("P")
R = TypeVar("R")

COMPILED: Final = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
"""False with NUMBA_DISABLE_JIT=1, which leaves kernels as Python functions."""


def wide_vectors() -> bool:
    """Return whether this CPU has AVX2, without which the scalar versions of kernels run."""
    features = binding.get_host_cpu_features() if COMPILED else {}
    return bool(features.get("avx2"))


class CompileNotice(event.Listener):
    """Tells a person at a terminal, once, why the first use of a kernel takes long."""

    def __init__(self) -> None:
        self._told = False

    def on_start(self, event: object) -> None:
        """Write the notice before the first kernel that is compiled, not loaded from the cache."""
        if not self._told and sys.stderr.isatty():
            sys.stderr.write(
                "Tidings compiles its kernels for this machine; they are cached, so this happens "
                "once and takes up to a minute or two.\n"
            )
        self._told = True

    def on_end(self, event: object) -> None:
        """Do nothing."""


if COMPILED:
    event.register("numba:compile", CompileNotice())  # type: ignore[no-untyped-call]


OPTIONS: Final[dict[str, Any]] = {"cache": True, "nogil": True, "error_model": "numpy"}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel: cached on disk, without the GIL, with plain IEEE arithmetic."""
    compiled: Callable[P, R] = numba.njit(**OPTIONS)(function)
    return compiled


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that others call in their loops, and that allocates no array.

    It has no reference counting, whose atomic increments cost more than such a kernel.
    """
    without: dict[str, Any] = {**OPTIONS, "_nrt": False}
    compiled: Callable[P, R] = numba.njit(**without)(function)
    return compiled


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile an inner kernel that is inlined into its callers.

    A tuple of arrays is passed field by field, which costs more than a small kernel does.
    """
    always: dict[str, Any] = {**OPTIONS, "_nrt": False, "forceinline": True}
    compiled: Callable[P, R] = numba.njit(**always)(function)
    return compiled


WITHIN: Final[dict[str, Any]] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""No entry point from Python: for many arrays it takes longer to compile than the kernel."""


def nested(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that only other kernels call."""
    options: dict[str, Any] = {**OPTIONS, **WITHIN}
    compiled: Callable[P, R] = numba.njit(**options)(function)
    return compiled


def nested_inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile an inner kernel that only other kernels call."""
    options: dict[str, Any] = {**OPTIONS, **WITHIN, "_nrt": False}
    compiled: Callable[P, R] = numba.njit(**options)(function)
    return compiled


def nested_inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile an inner kernel that is inlined into its callers and only kernels call."""
    options: dict[str, Any] = {**OPTIONS, **WITHIN, "_nrt": False, "forceinline": True}
    compiled: Callable[P, R] = numba.njit(**options)(function)
    return compiled
