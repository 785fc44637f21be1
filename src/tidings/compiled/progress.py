"""Progress of compilation: "compiling once, 12 of 83 kernels".

A terminal shows a line that disappears once the kernels are compiled. Commands and Spark's workers
write lines to standard error. Other programs that use Tidings see nothing, unless they listen to
the log.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, ModuleType
from typing import Any, Final

from numba.core import event

from tidings.compiled.kernel_cache import LOGGER, cache_folder
from tidings.compiled.linked import Kernel, LinkedKernel

_QUIET_S: Final = 1.0
"""How long the compilation of a kernel takes before it is reported."""
_INTERVAL_S: Final = 5.0
"""The time between two lines."""
_LISTENER_S: Final = 2.0
"""The time between two calls of a listener."""


class CompileProgress(event.Listener):
    """Counts the kernels that are compiled, and those that their callers still need."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.writes_lines = False
        self._listener: Callable[[str], None] | None = None
        self._clock = clock
        self._needed, self._done = set[object](), set[object]()
        self._depth = 0
        self._due_at = 0.0

    def on_start(self, event: Any) -> None:
        """Count the kernels that a kernel calls, if Python called it, and report."""
        kernel = event.data["dispatcher"]
        if not isinstance(kernel, Kernel | LinkedKernel):
            return  # functions of numba are not counted
        if self._depth == 0:
            self._needed |= called_kernels(kernel)
            self._due_at = self._clock() + _QUIET_S
        self._depth += 1
        if self._clock() >= self._due_at:
            self._report()

    def on_end(self, event: Any) -> None:
        """Count a kernel as compiled; clear the line behind the last."""
        kernel = event.data["dispatcher"]
        if not isinstance(kernel, Kernel | LinkedKernel):
            return
        self._depth -= 1
        self._done.add(kernel.py_func)
        if self._depth == 0:
            self._done |= self._needed  # calls that its types rule out are not compiled
            if not self._listener and self._clock() >= self._due_at and sys.stderr.isatty():
                sys.stderr.write("\r\x1b[K")

    @contextmanager
    def reporting_to(self, listener: Callable[[str], None]) -> Iterator[None]:
        """Pass the progress to a listener instead, at intervals."""
        self._listener = listener
        try:
            yield
        finally:
            self._listener = None

    def _report(self) -> None:
        """Report the progress: always on a terminal, at intervals elsewhere."""
        total = len(self._needed)  # a kernel may be compiled for several types, and count once
        text = f"compiling once, {min(total, len(self._done) + 1)} of {total} kernels"
        if self._listener:
            self._due_at = self._clock() + _LISTENER_S
            self._listener(text)
            return
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
            return
        self._due_at = self._clock() + _INTERVAL_S
        if self.writes_lines:
            sys.stderr.write(f"{text}; they are kept in {cache_folder()}\n")
            sys.stderr.flush()
        else:
            LOGGER.info("%s; they are kept in %s", text, cache_folder())


def called_kernels(kernel: Any) -> set[object]:
    """Return the function of a kernel and those of all kernels that it calls, directly or not."""
    functions, pending = set[object](), [kernel]
    while pending:
        function = pending.pop().py_func
        if function in functions:
            continue
        functions.add(function)
        names, values = _names(function.__code__), function.__globals__
        for name in names:
            value = values.get(name)
            inside = [vars(value).get(member) for member in names] if _is_module(value) else []
            pending += [
                called for called in (value, *inside) if isinstance(called, Kernel | LinkedKernel)
            ]
    return functions


def _names(code: CodeType) -> set[str]:
    """Return the global names and attributes that a function uses."""
    nested = [const for const in code.co_consts if isinstance(const, CodeType)]
    return {*code.co_names}.union(*map(_names, nested))


def _is_module(value: object) -> bool:
    return isinstance(value, ModuleType)


PROGRESS: Final = CompileProgress()
