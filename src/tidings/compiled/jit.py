"""How every kernel is compiled, said once."""

from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

import numba
from llvmlite import binding

P = ParamSpec("P")
R = TypeVar("R")

COMPILED: Final = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
"""False with NUMBA_DISABLE_JIT=1: kernels are then the Python functions that they are."""


def wide_vectors() -> bool:
    """Say whether this CPU compares 64 numbers in a few instructions; else scalar twins run."""
    features = binding.get_host_cpu_features() if COMPILED else {}
    return bool(features.get("avx2"))


OPTIONS: Final[dict[str, Any]] = {"cache": True, "nogil": True, "error_model": "numpy"}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel: cached on disk, without the interpreter's lock, plain IEEE arithmetic.

    With NUMBA_DISABLE_JIT=1 it stays the Python function that it is.
    """
    compiled: Callable[P, R] = numba.njit(**OPTIONS)(function)
    return compiled


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that other kernels call in their loops; it makes and keeps no array.

    Without numba's reference counting, whose atomic increments cost more than such a kernel.
    """
    without: dict[str, Any] = {**OPTIONS, "_nrt": False}
    compiled: Callable[P, R] = numba.njit(**without)(function)
    return compiled


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile an inner kernel into each that calls it.

    A tuple of arrays is passed as all their fields, which costs more than a small kernel does.
    """
    always: dict[str, Any] = {**OPTIONS, "_nrt": False, "forceinline": True}
    compiled: Callable[P, R] = numba.njit(**always)(function)
    return compiled


WITHIN: Final[dict[str, Any]] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Without the way in from Python, which for many arrays takes longer to compile than the kernel."""


def nested(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that only kernels call."""
    options: dict[str, Any] = {**OPTIONS, **WITHIN}
    compiled: Callable[P, R] = numba.njit(**options)(function)
    return compiled


def nested_inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile an inner kernel that only kernels call."""
    options: dict[str, Any] = {**OPTIONS, **WITHIN, "_nrt": False}
    compiled: Callable[P, R] = numba.njit(**options)(function)
    return compiled


def nested_inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile an inner kernel into each kernel that calls it, and nowhere else."""
    options: dict[str, Any] = {**OPTIONS, **WITHIN, "_nrt": False, "forceinline": True}
    compiled: Callable[P, R] = numba.njit(**options)(function)
    return compiled
