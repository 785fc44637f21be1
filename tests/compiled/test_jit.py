"""The notice at a terminal that kernels are being compiled."""

import io

import pytest

from tidings.compiled import jit


class Terminal(io.StringIO):
    def __init__(self, *, interactive: bool) -> None:
        super().__init__()
        self._interactive = interactive

    def isatty(self) -> bool:
        return self._interactive


def test_a_terminal_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal(interactive=True)
    monkeypatch.setattr("sys.stderr", screen)
    notice = jit.CompileNotice()
    for _ in range(3):
        notice.on_start(object())
        notice.on_end(object())
    assert screen.getvalue().count("\n") == 1
    assert screen.getvalue().startswith("Tidings compiles its kernels for this machine")


def test_a_log_file_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Terminal(interactive=False)
    monkeypatch.setattr("sys.stderr", file)
    jit.CompileNotice().on_start(object())
    assert file.getvalue() == ""
