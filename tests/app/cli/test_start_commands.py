"""The commands `demo`, `init`, `warm` and `bench`."""

import json
from pathlib import Path

import pytest
from tests.app.cli.commands import tidings, wrong_usage

from tidings.app.warm import WarmCache


def test_demo_passes_its_options_on(monkeypatch, tmp_path):
    calls = []

    def run_demo(*arguments, **options):
        calls.append((arguments, options))
        return 130

    monkeypatch.setattr("tidings.app.demo.run_demo", run_demo)
    result = tidings("demo", "--movies", 7, "--out", tmp_path, "--json")
    assert (result.exit_code, calls) == (130, [((tmp_path, 7), {"json_lines": True})])


def test_bench_passes_its_options_on(monkeypatch):
    calls = []

    def run_bench(*arguments):
        calls.append(arguments)
        return 3

    monkeypatch.setattr("tidings.app.cli.start_commands.run_bench", run_bench)
    result = tidings("bench", "interval", "--quick", "--json")
    assert (result.exit_code, calls) == (3, [("interval", ["--quick", "--json"])])
    tidings("bench")
    assert calls[1] == (None, [])


def test_without_options_the_demo_shows_all_films(monkeypatch):
    calls = []

    def run_demo(*arguments, **options):
        calls.append((arguments, options))
        return 0

    monkeypatch.setattr("tidings.app.demo.run_demo", run_demo)
    assert tidings("demo").exit_code == 0
    assert calls == [((Path("tidings-demo"), None), {"json_lines": False})]


@pytest.mark.parametrize("arguments", [("--movies", 0), ("--movies", "many"), ("--out", __file__)])
def test_wrong_options_of_the_demo_are_wrong_usage(arguments):
    assert arguments[0] in wrong_usage("demo", *arguments)


def test_init_prints_what_it_found_and_what_to_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"2026-11-{n % 28 + 1:02},{'ab'[n % 2]},{n}" for n in range(60)]
    (tmp_path / "my flights.csv").write_text("\n".join(["date,gate,delay", *rows]))
    result = tidings("init", "my flights.csv")
    assert result.exit_code == 0
    assert "published_at, the time" in result.output
    assert "the file and the row number are the id" in result.output
    assert "tidings run 'my flights.toml'" in result.output
    again = tidings("init", "my flights.csv")
    assert (again.exit_code, "--force replaces it" in again.stderr) == (1, True)
    forced = tidings("init", "my flights.csv", "--force", "--json")
    form = json.loads(forced.output)
    assert form["files"] == ["my flights.toml", "my flights-subscriptions.jsonl"]
    assert (form["events"], form["columns"]["gate"]) == (60, "string")


def test_init_names_a_file_that_it_cannot_use(tmp_path):
    (tmp_path / "odd.csv").write_bytes(b"")
    result = tidings("init", tmp_path / "odd.csv")
    assert result.exit_code == 1
    assert "odd.csv" in result.stderr


@pytest.fixture(autouse=True)
def small(monkeypatch):
    cache = WarmCache(Path("/cache"), 3, 2_000_000, 4.2)
    monkeypatch.setattr("tidings.app.warm.warm_up", lambda: iter(["compiling once, 1 of 1", cache]))


def test_progress_and_folder_are_printed():
    result = tidings("warm")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "compiling once, 1 of 1",
        "3 kernels, 2.0 MB, are ready in /cache after 4 s",
    ]


def test_json_has_the_folder():
    (line,) = tidings("warm", "--json").stdout.splitlines()
    assert json.loads(line) == {
        "folder": "/cache",
        "kernels": 3,
        "bytes": 2_000_000,
        "seconds": 4.2,
    }
