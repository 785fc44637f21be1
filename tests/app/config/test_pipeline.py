"""Whole configs: defaults, the keys of every table, and the rules between tables."""

from pathlib import Path

import pytest

from tidings import Periodic, Policy, Sliding
from tidings.app.config import Address, Metrics, check_engine, load_config
from tidings.errors import InvalidForm
from tidings.formats.event_source import Source
from tidings.store import open_store

EXAMPLE = Path(__file__).parents[3] / "examples" / "movies" / "pipeline.toml"
FILES = '[source]\npath = "events.jsonl"\n'
KAFKA = '[source]\nformat = "kafka"\n'
OUT = '[sink]\npath = "out"\n'
STORE = '[subscriptions]\nstore = "sqlite:///people.db"\n'
BASE = f'{FILES}[subscriptions]\npath = "subscriptions.jsonl"\n{OUT}'


def test_defaults(load, folder):
    config = load()
    assert config.engine == "spark"
    assert config.source == Source(folder, "events.json[l]", ".jsonl", 1)
    assert config.source.files() == [folder / "events.jsonl"]
    assert (config.sink.path, config.sink.format) == (folder / "out", "parquet")
    assert (config.lateness, config.buckets, config.endless) == ("0s", 8, False)
    assert config.subscribers is None
    assert config.policy("anyone") == Policy()


def test_every_key_of_the_example_is_read():
    config = load_config(EXAMPLE)
    assert config.subscribers == EXAMPLE.with_name("subscribers.jsonl")
    assert config.policies["festival-desk"].window == Sliding("2d")
    assert config.policy("festival-desk") == config.policies["festival-desk"]
    assert config.policy("guest") == Policy(k=3)


def test_paths_are_relative_to_the_folder_of_the_config(folder, monkeypatch):
    (folder / "run.toml").write_text(BASE)
    monkeypatch.chdir(folder.parent)
    config = load_config(f"{folder.name}/run.toml")
    assert config.subscriptions == Path(folder.name, "subscriptions.jsonl")
    assert isinstance(config.source, Source)
    assert config.source.files() == [Path(folder.name, "events.jsonl")]


def test_owners_that_are_not_listed_have_the_default_policy(load):
    subscribers = '[subscribers]\npath = "subscribers.jsonl"\n'
    assert load(rest=subscribers).policy("zoe") == Policy()
    config = load(rest=f"{subscribers}[policies.default]\nk = 2\n[policies.ann]\nk = 1\n")
    assert config.policy("zoe") == Policy(k=2)
    assert config.policy("ann") == Policy(k=1)


def test_a_date_of_toml_is_a_time(load):
    window = 'window = { name = "periodic", length = "1d", origin = 2026-11-15T06:00:00Z }'
    config = load(rest=f"[policies.default]\n{window}\n")
    assert config.policy("ann").window == Periodic("1d", origin="2026-11-15T06:00:00+00:00")


def test_a_store_has_subscriptions_and_subscribers(load, folder):
    config = load(subscriptions=STORE)
    address = config.subscriptions
    assert isinstance(address, Address)
    assert address.url == f"sqlite:///{(folder / 'people.db').resolve()}"
    assert (str(address), config.subscriber_list) == (str(folder / "people.db"), address)
    assert config.policy("anyone") == Policy()
    config = load(subscriptions=STORE, rest="[policies.default]\nk = 2\n")
    assert config.policy("anyone") == Policy(k=2)


def test_the_address_of_a_store_never_shows_a_password(load):
    url = "postgresql://ann:secret@host:5433/news"
    config = load(subscriptions=f'[subscriptions]\nstore = "{url}"\n')
    assert isinstance(config.subscriptions, Address)
    assert config.subscriptions.url == url
    assert "secret" not in f"{config.subscriptions} {config}"
    assert str(config.subscriptions) == "postgresql://host/news"


def test_a_path_with_characters_of_urls_is_opened(load, folder):
    (folder / "100% sure").mkdir()
    with open_store(folder / "100% sure" / "people.db") as store:
        store.catalogue.put({"id": "ann", "policy": {"k": 2}})
    config = load(subscriptions=STORE.replace("people.db", "100%25 sure/people.db"))
    assert isinstance(config.subscriptions, Address)
    with open_store(config.subscriptions.url) as store:
        assert store.catalogue.version() == 1


def test_stream_settings_and_metrics(load, folder):
    rest = """[stream]
trigger = "10s"
master = "local[2]"
checkpoint = "points"
[spark]
sql.shuffle.partitions = 4
"spark.executor.memory" = "2g"
[metrics]
prometheus = "tidings.prom"
"""
    config = load(rest=rest)
    assert (config.trigger, config.endless, config.master) == ("10s", True, "local[2]")
    assert config.checkpoint == str((folder / "points").resolve())
    assert config.settings == {
        "spark.sql.shuffle.partitions": "4",
        "spark.executor.memory": "2g",
    }
    assert config.metrics == Metrics(folder / "tidings.prom")
    assert load(rest='[stream]\ncheckpoint = "hdfs://a/b"\n').checkpoint == "hdfs://a/b"


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"text": FILES}, "config: field 'subscriptions' is missing"),
        (
            {"text": f"colour = 'red'\n{BASE}"},
            "config: unknown field 'colour'; expected one of: 's",
        ),
        ({"text": f"engine = 'flink'\n{BASE}"}, "engine is one of 'spark', 'local', not 'flink'"),
        ({"text": f"subscribers = 3\n{BASE}"}, "[subscribers] must be a table, not a number"),
        ({"text": f"policies = 3\n{BASE}"}, "policies must be tables [policies.NAME], not 3"),
        (
            {"subscriptions": "[subscriptions]\n"},
            "[subscriptions]: set either path or store",
        ),
        (
            {"subscriptions": "[subscriptions]\npath = 'none.jsonl'\n"},
            "[subscriptions] path: 'none.jsonl' does not exist in ",
        ),
        (
            {"subscriptions": "[subscriptions]\nstore = 'people.db'\n"},
            "[subscriptions] store cannot be read; write sqlite:///path, or postgresql://user@host",
        ),
        ({"subscriptions": STORE.replace("people", "none")}, "none.db does not exist"),
        (
            {"subscriptions": f"{STORE}path = 'x'\n"},
            "[subscriptions]: unknown field 'path'",
        ),
        (
            {"subscriptions": STORE, "rest": "[subscribers]\npath = 'subscribers.jsonl'\n"},
            "[subscribers]: the store of subscriptions already has the subscribers",
        ),
        ({"rest": "[stream]\nlateness = 'soon'\n"}, "[stream] lateness: 'soon' "),
        ({"rest": "[stream]\nbuckets = 0\n"}, "[stream] buckets is a whole number of at least 1"),
        (
            {"rest": "[stream]\nsize = 0\n"},
            "[stream]: unknown field 'size'; expected one of: 'la",
        ),
        ({"rest": "[stream]\ntrigger = 'often'\n"}, "trigger must be 'available-now' or a dura"),
        ({"rest": "[stream]\ntrigger = 5\n"}, "trigger must be 'available-now' or a duration: "),
        ({"rest": "[stream]\nfuture = 'soon'\n"}, "[stream] future must be 'off' or a duration: "),
        ({"rest": "[stream]\nmaster = 2\n"}, "[stream] master must be a non-empty string, not 2"),
        ({"rest": "[stream]\ncheckpoint = ''\n"}, "[stream] checkpoint must be a non-empty str"),
        ({"rest": "[spark]\nx = [1]\n"}, "x must be a string, a number or a boolean, not [1]"),
        (
            {"rest": "[metrics]\nstatsd = 'a'\n"},
            "[metrics]: unknown field 'statsd'; expected one",
        ),
        ({"rest": "[metrics]\njsonl = 3\n"}, "[metrics] jsonl must be a non-empty string, not 3"),
        ({"rest": "[policies.ann]\nk = 0\n"}, "[policies.ann] k is a whole number of at least 1"),
        ({"rest": "[policies.ann]\nwindow = 'none'\n"}, "[policies.ann] "),
        ({"rest": "[policies.ann]\nkk = 0\n"}, "[policies.ann] policy: unknown field 'kk'"),
    ],
)
def test_a_mistake_is_reported_with_key_value_and_rule(load, folder, parts, reason):
    with pytest.raises(InvalidForm) as error:
        load(**parts)
    assert str(error.value).startswith(f"{folder}/run.toml: ")
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("parts", "key"),
    [
        ({"source": KAFKA}, "[source] format = 'kafka'"),
        ({"sink": f"{OUT}format = 'csv'\noptions = {{}}\n"}, "[sink] format = 'csv'"),
        ({"rest": "[stream]\ntrigger = '1s'\n"}, "[stream] trigger = '1s'"),
    ],
)
def test_parts_that_need_spark_are_refused_by_the_local_engine(load, folder, parts, key):
    check_engine(load(**parts))
    local = {**parts, "source": f"engine = 'local'\n{parts.get('source', FILES)}"}
    with pytest.raises(InvalidForm) as error:
        check_engine(load(**local))
    message = f"{folder}/run.toml: {key} needs Spark, but the engine is 'local'"
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("rest", "future"),
    [
        ("", None),
        ("[stream]\ntrigger = '2s'\n", "5m"),
        ("[stream]\nfuture = '1h'\n", "1h"),
        ("[stream]\ntrigger = '2s'\nfuture = 'off'\n", None),
    ],
)
def test_only_an_endless_run_compares_events_with_the_clock(load, rest, future):
    assert load(rest=rest).allowed_future == future
