"""Configs of arbitrary values and bytes load, or raise an error that names the file."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fuzz import FIRST, cases
from tests.mutation import try_all
from typer.testing import CliRunner

from tidings.app.cli import app
from tidings.app.config import load_config
from tidings.errors import InvalidForm, TidingsError
from tidings.model.limits import Limits

pytestmark = pytest.mark.fuzz

SAMPLE = """
engine = "local"
[source]
path = "events.jsonl"
format = "jsonl"
files_per_batch = 2
unreadable = "stop"
[subscriptions]
path = "subscriptions.jsonl"
[policies.ann]
k = 2
window = { name = "sliding", length = "1h" }
[sink]
path = "out"
format = "jsonl"
[stream]
lateness = "5m"
buckets = 8
trigger = "available-now"
checkpoint = "check"
master = "local[2]"
[spark]
sql.shuffle.partitions = 2
[metrics]
prometheus = "tidings.prom"
[limits]
preset = "public"
k = 100
"""
VALUES = (
    "1", "-1", "0", "9223372036854775808", "1e999", "nan", "-inf", "true", "''", "'x'", "[]", "{}",
    "[[[[[]]]]]", "'a\\u0000b'", "'*'", "'**'", "'/'", "'..'", "'[['", "1979-05-27", "07:32:00",
    "'" + "x" * 5000 + "'", "9" * 5000, "{ a.b.c = [1] }", "'9999999999999d'", "'public'",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "events.jsonl").write_text("")
    line = '{"id": "s", "subscriber": "ann", "where": "a = 1"}\n'
    (tmp_path / "subscriptions.jsonl").write_text(line)
    return tmp_path


def load(path: Path) -> Iterator[object]:
    yield load_config(path)


def test_any_bytes_are_a_config_or_an_error_that_names_the_file(folder: Path) -> None:
    try_all(folder, {"pipeline.toml": SAMPLE.encode()}, load, cases(400))


def test_any_value_of_any_key_loads_or_is_refused(folder: Path) -> None:
    rng, path = random.Random(7 + FIRST), folder / "pipeline.toml"
    lines = SAMPLE.strip().splitlines()
    keys = [number for number, line in enumerate(lines) if "=" in line]
    for _ in range(cases(400)):
        changed = list(lines)
        for number in rng.sample(keys, rng.choice((1, 1, 2))):
            changed[number] = f"{lines[number].split('=')[0]}= {rng.choice(VALUES)}"
        path.write_text("\n".join(changed))
        reason = "pipeline.toml: "
        try:
            load_config(path)
        except TidingsError as error:
            reason = str(error)
        assert "pipeline.toml: " in reason


@pytest.mark.parametrize("key", ["sink", "checkpoint", "store", "events"])
def test_links_in_a_circle_are_refused_or_stay(folder: Path, key: str) -> None:
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    old, new = {
        "sink": ('"out"', '"a/out"'),
        "checkpoint": ('"check"', '"a/check"'),
        "store": ('path = "subscriptions.jsonl"', 'store = "sqlite:///a/s.db"'),
        "events": ('path = "events.jsonl"', 'path = "a/*.jsonl"'),
    }[key]
    path = folder / "pipeline.toml"
    path.write_text(SAMPLE.replace(old, new))
    result = CliRunner().invoke(app, ["run", str(path)])
    assert result.exit_code == (0 if key == "checkpoint" else 1)
    assert "unexpected" not in result.output


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a." * 3000 + "a = 1", "\0", "a = 'é"])
def test_invalid_toml_is_refused(folder: Path, text: str) -> None:
    (folder / "pipeline.toml").write_text(text)
    with pytest.raises(InvalidForm, match=r"pipeline\.toml: "):
        load_config(folder / "pipeline.toml")


def test_limits_are_a_preset_with_changes(folder: Path) -> None:
    path = folder / "pipeline.toml"
    path.write_text(SAMPLE)
    limits = load_config(path).limits
    assert (limits.k, limits.nesting) == (100, Limits.public().nesting)
    path.write_text(SAMPLE.replace('preset = "public"\nk = 100\n', ""))
    assert load_config(path).limits == Limits()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("preset = 'none'", "[limits] preset is one of 'trusted', 'public'"),
        ("speed = 3", "[limits]: unknown field 'speed'"),
        ("k = 0", "[limits] the limit k must be between 1 and"),
        ("nesting = 100_000", "[limits] the limit nesting must be between 1 and 256"),
    ],
)
def test_invalid_limits_are_refused(folder: Path, line: str, reason: str) -> None:
    path = folder / "pipeline.toml"
    path.write_text(SAMPLE.replace('preset = "public"\nk = 100', line))
    with pytest.raises(InvalidForm) as refused:
        load_config(path)
    assert reason in str(refused.value)


def test_bad_files_do_not_stop_a_local_run(folder: Path) -> None:
    (folder / "in").mkdir()
    good = '{"id": "e1", "published_at": 0, "attributes": {"a": 1}}\n'
    (folder / "in" / "1.jsonl").write_text(good)
    (folder / "in" / "2.jsonl").write_bytes(b"\xff\n{\n" + b'{"id": "\\ud800"}\n')
    (folder / "in" / "3.jsonl").write_text(good.replace("e1", "e2"))
    path = folder / "pipeline.toml"
    path.write_text(
        SAMPLE.replace('"events.jsonl"', '"in/*.jsonl"').replace(
            "[policies.ann]\n", "[policies.default]\n"
        )
    )
    result = CliRunner().invoke(app, ["run", str(path), "--json"])
    assert result.exit_code == 0, result.output
    assert '"dead_letters": 3' in result.stdout
    letters = [path.read_text() for path in (folder / "out" / "dead_letters").iterdir()]
    assert sum(letter.count("\n") for letter in letters) == 3


@pytest.mark.parametrize(
    "mark", ["{", "[]", '{"engine": 3}', '{"engine": "spark", "query": "../x"}']
)
def test_a_damaged_folder_is_refused_until_a_fresh_run(folder: Path, mark: str) -> None:
    (folder / "pipeline.toml").write_text(SAMPLE.replace("ann", "default"))
    (folder / "out").mkdir()
    (folder / "out" / "tidings.json").write_text(mark)
    command = ["run", str(folder / "pipeline.toml")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert "tidings.json is damaged" in result.output.replace("\n", "")
    assert CliRunner().invoke(app, [*command, "--fresh"]).exit_code == 0


def test_an_unexpected_error_is_one_sentence_without_its_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: Path) -> None:
        raise KeyError("Sw0rdfish")

    monkeypatch.setattr("tidings.app.config.load_config", fails)
    (folder / "pipeline.toml").write_text(SAMPLE)
    result = CliRunner().invoke(app, ["run", str(folder / "pipeline.toml")])
    assert result.exit_code == 1
    assert "unexpected KeyError" in result.output
    assert "Sw0rdfish" not in result.output
