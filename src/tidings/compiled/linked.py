"""Kernels that only other kernels call: linked into their callers, which are optimised as a whole.

Numba optimises every function it compiles as a module of its own, with all functions that it calls,
and generates machine code for it. A kernel that calls helpers that call helpers is thus optimised
once per level. A linked kernel is only typed and lowered; optimisation and code generation happen
once, in the kernel that Python calls:

    numba     helper: optimise, generate -> helper: optimise, generate -> kernel: optimise, generate
    linked    helper ---------------------> helper --------------------> kernel: optimise, generate

A cold diverse window takes a third less processor time. This uses internals of numba: the names
that are imported from `numba.core` below.
"""
# ruff: noqa: SLF001 - numba has no public interface to its libraries

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher

from tidings.compiled.kernel_cache import KernelCache

WITHIN: Final[dict[str, Any]] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""No entry point from Python: for many arrays it takes longer to compile than the kernel."""


class LinkedLibrary(JITCodeLibrary):
    """The LLVM code of a kernel that is linked into its callers."""

    def finalize(self) -> None:
        """Link the kernels that this one calls."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def get_pointer_to_function(self, _: str) -> int:
        """Return the null pointer: there is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> "LinkedLibrary":
        """The object that is asked to `set_env`."""
        return self

    def set_env(self, name: str, environment: object) -> None:
        """Leave the environment to the kernel that Python calls (`SetEnvironments`)."""


class LinkedCompiler(Compiler):
    """The compiler of linked kernels."""

    def __init__(self, typing: Any, target: Any, _: object, *arguments: Any) -> None:
        super().__init__(typing, target, LinkedLibrary(target.codegen(), "linked"), *arguments)


class KernelCompiler(Compiler):
    """The compiler of kernels that Python calls."""

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        """Compile a kernel, and set the environments of the linked ones."""
        compiled = super().compile_extra(function)
        library = compiled.library
        for variable in library._final_module.global_variables:
            environment = lookup_environment(variable.name)
            if environment is not None:
                library.codegen.set_env(variable.name, environment)
        return compiled


class Kernel(CPUDispatcher):
    """A kernel that Python calls, compiled once for all processes."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        # Kernels are never called from C, so compiling the wrapper would be wasted time.
        super().__init__(function, {}, {**options, "no_cfunc_wrapper": True}, KernelCompiler)
        self._cache = KernelCache(function)

    def compile(self, signature: Any) -> Any:
        """Load the kernel for a signature, or compile it while other processes wait."""
        try:
            return super().compile(signature)
        finally:
            self._cache.release()


class LinkedKernel(CPUDispatcher):
    """A kernel for other kernels; Python code may call it too, as tests do.

    A call from Python compiles the function once more, with an entry point.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, {}, {**options, **WITHIN}, LinkedCompiler)
        self._options = options

    @cached_property
    def entry(self) -> Kernel:
        """The kernel that serves calls from Python."""
        return Kernel(self.py_func, self._options)

    def get_call_template(self, arguments: Any, keywords: Any) -> Any:
        """Return how another kernel calls this one; all constants share one compiled form."""
        return super().get_call_template(tuple(map(types.unliteral, arguments)), keywords)

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel from Python."""
        return self.entry(*arguments)
