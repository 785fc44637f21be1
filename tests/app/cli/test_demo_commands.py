"""The commands `demo` and `bench` pass their options on."""

from pathlib import Path

import pytest
from tests.app.cli.commands import tidings, wrong_usage


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

    monkeypatch.setattr("tidings.app.bench.run_bench", run_bench)
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
