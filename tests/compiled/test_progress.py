"""What is said while kernels are compiled, and to whom."""

import io
import logging
from collections.abc import Callable
from typing import Any

import pytest

from tidings.compiled.jit import COMPILED, inner, kernel
from tidings.compiled.kernel_cache import cache_folder
from tidings.compiled.progress import CompileProgress, called_kernels

pytestmark = pytest.mark.skipif(not COMPILED, reason="nothing is compiled")


@inner
def deepest(x: int) -> int:
    return x


@inner
def deeper(x: int) -> int:
    return deepest(x)


@kernel
def outer(x: int) -> int:
    return deeper(x) + deepest(x)


class Terminal(io.StringIO):
    def __init__(self, *, interactive: bool) -> None:
        super().__init__()
        self._interactive = interactive

    def isatty(self) -> bool:
        return self._interactive


class Step:
    """An event of numba."""

    def __init__(self, dispatcher: Any) -> None:
        self.data = {"dispatcher": dispatcher}


def compile_all(told: CompileProgress) -> None:
    """Report the compilation of a kernel and of those that it calls, as numba does."""
    nested = [outer, deeper, deepest]
    for one in nested:
        told.on_start(Step(one))
    for one in reversed(nested):
        told.on_end(Step(one))


def ticking(seconds: float) -> CompileProgress:
    """Return a progress whose clock moves on by so much whenever it is looked at."""
    now = iter(range(100))
    return CompileProgress(lambda: next(now) * seconds)


@pytest.fixture
def stderr(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], Terminal]:
    """Return a function that makes the standard error a terminal, or a file."""

    def make(interactive: bool) -> Terminal:
        screen = Terminal(interactive=interactive)
        monkeypatch.setattr("sys.stderr", screen)  # pytest sets it between fixture and test
        return screen

    return make


def test_the_kernels_that_a_kernel_calls_are_known() -> None:
    functions = {one.py_func for one in (outer, deeper, deepest)}  # type: ignore[attr-defined]
    assert called_kernels(outer) == functions


def test_a_terminal_has_a_line_that_is_gone_at_the_end(stderr: Any) -> None:
    screen = stderr(True)
    compile_all(ticking(1.0))
    assert "compiling once, 1 of 3 kernels" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")
    assert "\n" not in screen.getvalue()


def test_others_are_told_in_the_log(stderr: Any, caplog: pytest.LogCaptureFixture) -> None:
    screen = stderr(False)
    with caplog.at_level(logging.INFO, "tidings.compiled"):
        compile_all(ticking(2.0))
    assert [text.partition(";")[0] for text in caplog.messages] == [
        "compiling once, 1 of 3 kernels"
    ]
    assert screen.getvalue() == ""


def test_commands_and_workers_write_lines_from_time_to_time(stderr: Any) -> None:
    screen = stderr(False)
    told = ticking(10.0)
    told.writes_lines = True
    compile_all(told)
    lines = screen.getvalue().splitlines()
    assert len(lines) == 3
    assert all(line.startswith("compiling once, ") for line in lines)
    assert str(cache_folder()) in lines[0]


def test_a_listener_is_told_instead_of_the_terminal(stderr: Any) -> None:
    screen = stderr(True)
    told, heard = ticking(10.0), list[str]()
    with told.reporting_to(heard.append):
        compile_all(told)
    assert heard[0] == "compiling once, 1 of 3 kernels"
    assert len(heard) == 3
    assert screen.getvalue() == ""
    compile_all(told)
    assert screen.getvalue() != ""
    assert len(heard) == 3


def test_nothing_is_said_about_what_takes_no_time(stderr: Any) -> None:
    screen = stderr(False)
    told = ticking(0.01)
    told.writes_lines = True
    compile_all(told)
    assert screen.getvalue() == ""


def test_functions_of_numba_are_not_counted() -> None:
    told = ticking(10.0)
    told.on_start(Step(object()))
    told.on_end(Step(object()))
    assert told._depth == 0
