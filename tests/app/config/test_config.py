"""A config is read strictly; what is wrong is said with file, key, value and rule."""

from pathlib import Path

import pytest

from tidings import Periodic, Policy, Sliding
from tidings.app.config import load_config
from tidings.errors import InvalidForm
from tidings.formats.event_source import Source

EXAMPLE = Path(__file__).parents[3] / "examples" / "movies" / "pipeline.toml"
BASE = """
[source]
path = "events.jsonl"
[subscriptions]
path = "subscriptions.jsonl"
[sink]
path = "out"
"""


@pytest.fixture
def folder(tmp_path):
    for name in ("events.jsonl", "subscriptions.jsonl", "subscribers.jsonl"):
        (tmp_path / name).touch()
    return tmp_path


def load(folder, text):
    (folder / "run.toml").write_text(text)
    return load_config(folder / "run.toml")


def test_what_is_left_out_has_a_default(folder):
    config = load(folder, BASE)
    assert config.engine == "spark"
    assert config.source == Source(folder, "events.json[l]", ".jsonl", 1)
    assert config.source.files() == [folder / "events.jsonl"]
    assert config.sink.path == folder / "out"
    assert config.sink.format == "parquet"
    assert (config.lateness, config.buckets) == ("0s", 8)
    assert config.subscribers is None
    assert config.policy("anybody") == Policy()


def test_every_key_of_the_example_is_read():
    config = load_config(EXAMPLE)
    assert config.subscribers == EXAMPLE.with_name("subscribers.jsonl")
    assert config.policies["festival-desk"].window == Sliding("2d")
    assert config.policy("festival-desk") == config.policies["festival-desk"]
    assert config.policy("guest") == Policy(k=3)


def test_paths_are_seen_from_the_folder_of_the_config(folder, monkeypatch):
    (folder / "run.toml").write_text(BASE)
    monkeypatch.chdir(folder.parent)
    config = load_config(f"{folder.name}/run.toml")
    assert config.subscriptions == Path(folder.name, "subscriptions.jsonl")
    assert isinstance(config.source, Source)
    assert config.source.files() == [Path(folder.name, "events.jsonl")]


def test_with_a_file_of_subscribers_nobody_else_has_a_policy_unless_it_is_given(folder):
    people = '[subscribers]\npath = "subscribers.jsonl"\n'
    assert load(folder, BASE + people).policy("zoe") is None
    config = load(folder, BASE + people + "[policies.default]\nk = 2\n[policies.ann]\nk = 1\n")
    assert config.policy("zoe") == Policy(k=2)
    assert config.policy("ann") == Policy(k=1)


def test_a_date_of_toml_is_a_time(folder):
    text = 'window = { name = "periodic", length = "1d", origin = 2026-11-15T06:00:00Z }'
    config = load(folder, f"{BASE}[policies.default]\n{text}\n")
    assert config.policy("ann").window == Periodic("1d", origin="2026-11-15T06:00:00+00:00")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("engine = ", "invalid TOML: Invalid value (at"),
        ("[source]\npath = 'events.jsonl'", "config: field 'subscriptions' is missing"),
        ("colour = 'red'\n" + BASE, "config: unknown field 'colour'; possible are 'source'"),
        ("engine = 'flink'\n" + BASE, "engine is one of 'spark', 'local', not 'flink'"),
        ("subscribers = 3\n" + BASE, "[subscribers] must be a table, not a number"),
        ("policies = 3\n" + BASE, "policies must be tables [policies.NAME], not 3"),
        (BASE + "colour = 'red'", "[sink]: unknown field 'colour'; possible are 'path', 'format'"),
        (
            BASE + "format = 'csv'",
            "[sink] unknown format 'csv'; expected one of: parquet, jsonl, store, or a format",
        ),
        (
            BASE.replace('"out"', '"events.jsonl"'),
            "[sink] path must be a folder, but 'events.jsonl'",
        ),
        (BASE.replace('"out"', "7"), "[sink] path must be a non-empty string, not 7"),
        (
            BASE.replace("subscriptions.jsonl", "none.jsonl"),
            "[subscriptions] path: 'none.jsonl' does not exist in ",
        ),
        (BASE.replace("events.jsonl", "none.jsonl"), "[source] path: no file is at 'none.jsonl'"),
        (BASE.replace("events.jsonl", "*.csv"), "[source] path: no file is at '*.csv' in "),
        (BASE.replace("events.jsonl", "**/*.csv"), "[source] path: ** is not possible"),
        (BASE + "[stream]\nlateness = 'soon'", "[stream] lateness: 'soon' is no duration"),
        (BASE + "[stream]\nbuckets = 0", "[stream] buckets is a whole number of at least 1, not 0"),
        (BASE + "[stream]\nsize = 0", "[stream]: unknown field 'size'; possible are 'lateness'"),
        (BASE + "[policies.ann]\nk = 0", "[policies.ann] k is a whole number of at least 1, not 0"),
        (
            BASE + "[policies.ann]\nwindow = 'none'",
            "[policies.ann] 'none' is no window; there are ",
        ),
        (BASE + "[policies.ann]\nkk = 0", "[policies.ann] policy: unknown field 'kk'"),
    ],
)
def test_a_mistake_is_an_error_that_names_file_key_value_and_rule(folder, text, reason):
    with pytest.raises(InvalidForm) as error:
        load(folder, text)
    assert str(error.value).startswith(f"{folder}/run.toml: ")
    assert reason in str(error.value)


def test_a_config_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "run.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidForm, match="invalid TOML"):
        load_config(tmp_path / "run.toml")
