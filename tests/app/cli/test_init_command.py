"""The command `init`: what it prints, and what it refuses."""

import json

from tests.app.cli.commands import tidings


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
