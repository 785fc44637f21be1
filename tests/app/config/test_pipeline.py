"""Sources, sinks, stores and streams of a config: what is read, and what is refused."""

import pytest

from tidings import Policy
from tidings.app.config import Address, Metrics, SinkConfig, check_engine, load_config
from tidings.errors import InvalidForm
from tidings.formats.event_source import Source, SparkSource
from tidings.store import open_store

FILES = '[source]\npath = "events.jsonl"\n'
WISHES = '[subscriptions]\npath = "subscriptions.jsonl"\n'
OUT = '[sink]\npath = "out"\n'


@pytest.fixture
def folder(tmp_path):
    for name in ("events.jsonl", "subscriptions.jsonl", "subscribers.jsonl"):
        (tmp_path / name).touch()
    open_store(tmp_path / "people.db").close()
    return tmp_path


def load(folder, source=FILES, wishes=WISHES, sink=OUT, rest=""):
    (folder / "run.toml").write_text(f"{source}{wishes}{sink}{rest}")
    return load_config(folder / "run.toml")


def test_a_source_of_spark_has_a_format_and_options(folder):
    text = """[source]
format = "kafka"
columns = { id = "cast(key as string)", value = "cast(value as string)" }
[source.options]
kafka.bootstrap.servers = "a:9092"
subscribe = "films"
maxOffsetsPerTrigger = 1000
includeHeaders = false
"""
    assert load(folder, text).source == SparkSource(
        "kafka",
        {
            "kafka.bootstrap.servers": "a:9092",
            "subscribe": "films",
            "maxOffsetsPerTrigger": "1000",
            "includeHeaders": "false",
        },
        columns={"id": "cast(key as string)", "value": "cast(value as string)"},
    )


def test_the_value_of_kafka_is_a_form_unless_something_else_is_said(folder):
    source = load(folder, '[source]\nformat = "kafka"\n').source
    assert isinstance(source, SparkSource)
    assert source.columns == {"value": "coalesce(cast(value as string), 'null')"}
    text = '[source]\nformat = "kafka"\nselect = "select * from source"\n'
    assert load(folder, text).source == SparkSource("kafka", select="select * from source")


def test_the_value_of_our_kafka_is_a_form_too(folder):
    source = load(folder, '[source]\nformat = "tidings-kafka"\n').source
    assert isinstance(source, SparkSource)
    assert source.columns == {"value": "coalesce(cast(value as string), 'null')"}


def test_the_file_of_a_table_is_seen_from_the_config_and_no_password_is_shown(folder):
    text = '[source]\nformat = "tidings-table"\noptions = { url = "sqlite:///shop.db" }\n'
    path = (folder / "shop.db").resolve()
    assert load(folder, text).source == SparkSource("tidings-table", {"url": f"sqlite:///{path}"})
    url = "postgresql://ann:secret@host/shop"
    source = load(folder, text.replace("sqlite:///shop.db", url)).source
    assert isinstance(source, SparkSource)
    assert source.options == {"url": url}
    assert "secret" not in str(source)


def test_a_format_of_ours_with_options_is_read_by_spark(folder):
    text = '[source]\nformat = "csv"\nschema = "id string"\noptions = { path = "in", sep = ";" }\n'
    path = str((folder / "in").resolve())
    expected = SparkSource("csv", {"path": path, "sep": ";"}, "id string")
    assert load(folder, text).source == expected
    text = '[source]\nformat = "json"\noptions = { path = "s3a://bucket/in" }\n'
    assert load(folder, text).source == SparkSource("json", {"path": "s3a://bucket/in"})


def test_files_say_what_an_unreadable_one_does(folder):
    source = load(folder, f'{FILES}unreadable = "dead-letter"\n').source
    assert isinstance(source, Source)
    assert source.unreadable == "dead-letter"


def test_a_store_has_subscriptions_and_subscribers(folder):
    config = load(folder, wishes='[subscriptions]\nstore = "sqlite:///people.db"\n')
    address = config.subscriptions
    assert isinstance(address, Address)
    assert address.url == f"sqlite:///{(folder / 'people.db').resolve()}"
    assert (str(address), config.subscriber_list) == (str(folder / "people.db"), address)
    assert config.policy("anybody") is None
    policies = "[policies.default]\nk = 2\n"
    config = load(folder, wishes='[subscriptions]\nstore = "sqlite:///people.db"\n', rest=policies)
    assert config.policy("anybody") == Policy(k=2)


def test_the_address_of_a_store_never_shows_a_password(folder):
    url = "postgresql://ann:secret@host:5433/news"
    config = load(folder, wishes=f'[subscriptions]\nstore = "{url}"\n')
    assert isinstance(config.subscriptions, Address)
    assert config.subscriptions.url == url
    assert "secret" not in f"{config.subscriptions} {config}"
    assert str(config.subscriptions) == "postgresql://host/news"


def test_a_path_with_signs_that_addresses_use_is_found_again(folder):
    place = folder / "100% sure"
    place.mkdir()
    with open_store(place / "people.db") as store:
        store.catalogue.put({"id": "ann", "policy": {"k": 2}})
    config = load(folder, wishes='[subscriptions]\nstore = "sqlite:///100%25 sure/people.db"\n')
    assert isinstance(config.subscriptions, Address)
    with open_store(config.subscriptions.url) as store:
        assert store.catalogue.version() == 1


def test_sinks_are_folders_stores_and_formats_of_spark(folder):
    assert load(folder).sink == SinkConfig(folder / "out")
    sink = load(folder, sink=f'{OUT}store = "sqlite:///news.db"\n').sink
    assert (sink.format, sink.label, sink.is_spark) == ("store", str(folder / "news.db"), False)
    sink = load(folder, sink=f'{OUT}format = "kafka"\noptions = {{ topic = "news" }}\n').sink
    assert (sink.is_spark, sink.options) == (True, {"topic": "news"})
    assert sink.select == "select subscriber as key, to_json(struct(*)) as value from deliveries"
    sink = load(folder, sink=f'{OUT}format = "csv"\noptions = {{ path = "t" }}\n').sink
    assert (sink.options["path"], sink.select) == (str((folder / "t").resolve()), None)


def test_streams_settings_and_metrics_are_read(folder):
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
    config = load(folder, rest=rest)
    assert (config.trigger, config.endless, config.master) == ("10s", True, "local[2]")
    assert config.checkpoint == str((folder / "points").resolve())
    assert config.settings == {
        "spark.sql.shuffle.partitions": "4",
        "spark.executor.memory": "2g",
    }
    assert config.metrics == Metrics(folder / "tidings.prom")
    assert not load(folder).endless
    assert load(folder, rest='[stream]\ncheckpoint = "hdfs://a/b"\n').checkpoint == "hdfs://a/b"


KAFKA = '[source]\nformat = "kafka"\n'


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"source": "[source]\n"}, "[source]: field 'path' is missing"),
        ({"source": "source = 3\n"}, "[source] must be a table, not a number"),
        ({"source": f"{KAFKA}path = 'x'\n"}, "[source] format is one of 'jsonl'"),
        ({"source": f"{KAFKA}files_per_batch = 3\n"}, "unknown field 'files_per_batch'"),
        ({"source": f"{KAFKA}options = 3\n"}, "[source] options must be a table of names and val"),
        (
            {"source": f"{KAFKA}options = {{ a = [1] }}\n"},
            "[source] options a must be a string, a number",
        ),
        (
            {"source": f"{KAFKA}options = {{ a.b = [1] }}\n"},
            "[source] options a.b must be a string",
        ),
        ({"source": f"{KAFKA}columns = 'id'\n"}, "[source] columns must be a table of SQL express"),
        ({"source": f"{KAFKA}columns = {{ id = 3 }}\n"}, "[source] columns id must be a non-empty"),
        ({"source": f"{KAFKA}select = ''\n"}, "[source] select must be a non-empty string, not ''"),
        (
            {"source": f"{KAFKA}select = 'x'\ncolumns = {{ id = 'a' }}\n"},
            "[source] columns and select exclude each other",
        ),
        (
            {"source": "[source]\nformat = 'tidings-table'\noptions = { url = 'a.db' }\n"},
            "[source] options url cannot be read; write sqlite:///path, or postgresql://user@host/",
        ),
        ({"source": f"{FILES}unreadable = 'skip'\n"}, "[source] unreadable is one of 'stop', 'd"),
        ({"wishes": "[subscriptions]\n"}, "[subscriptions]: give either the path of a"),
        (
            {"wishes": "[subscriptions]\nstore = 'people.db'\n"},
            "[subscriptions] store cannot be read; write sqlite:///path, or postgresql://user@host",
        ),
        (
            {"wishes": "[subscriptions]\nstore = 'sqlite:///none.db'\n"},
            " does not exist",
        ),
        (
            {"wishes": "[subscriptions]\nstore = 'sqlite:///people.db'\npath = 'x'\n"},
            "[subscriptions]: unknown field 'path'",
        ),
        (
            {
                "wishes": "[subscriptions]\nstore = 'sqlite:///people.db'\n",
                "rest": "[subscribers]\npath = 'subscribers.jsonl'\n",
            },
            "[subscribers]: the store of subscriptions already has the subscribers",
        ),
        ({"sink": f"{OUT}format = 'store'\n"}, "[sink] store is missing: give its address"),
        (
            {"sink": f"{OUT}format = 'jsonl'\nstore = 'sqlite:///a.db'\n"},
            "[sink] store requires format = 'store', not 'jsonl'",
        ),
        ({"sink": f"{OUT}store = 'a.db'\n"}, "[sink] store cannot be read; write sqlite:///path"),
        ({"sink": f"{OUT}options = {{}}\n"}, "[sink] options requires a format of Spark, not 'pa"),
        (
            {"sink": f"{OUT}format = 'kafka'\n"},
            "[sink] unknown format 'kafka'; expected one of: parq",
        ),
        (
            {"sink": f"{OUT}format = 'x'\noptions = {{}}\nselect = 3\n"},
            "[sink] select must be a non-em",
        ),
        ({"rest": "[stream]\ntrigger = 'often'\n"}, "[stream] trigger must be 'available-now' or"),
        ({"rest": "[stream]\ntrigger = 5\n"}, "[stream] trigger must be 'available-now' or"),
        ({"rest": "[stream]\nmaster = 2\n"}, "[stream] master must be a non-empty string, not 2"),
        ({"rest": "[stream]\ncheckpoint = ''\n"}, "[stream] checkpoint must be a non-empty string"),
        (
            {"rest": "[spark]\nx = [1]\n"},
            "[spark] x must be a string, a number or a boolean, not [1]",
        ),
        ({"rest": "[metrics]\nstatsd = 'a'\n"}, "[metrics]: unknown field 'statsd'; possible are"),
        ({"rest": "[metrics]\njsonl = 3\n"}, "[metrics] jsonl must be a non-empty string, not 3"),
    ],
)
def test_a_mistake_is_named_with_key_value_and_rule(folder, parts, reason):
    with pytest.raises(InvalidForm) as error:
        load(folder, **parts)
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
def test_what_needs_spark_is_refused_in_one_process(folder, parts, key):
    config = load(folder, **parts)
    check_engine(config)
    parts = {name: text for name, text in parts.items() if name != "source"} | {
        "source": "engine = 'local'\n" + parts.get("source", FILES)
    }
    with pytest.raises(InvalidForm) as error:
        check_engine(load(folder, **parts))
    said = f"{folder}/run.toml: {key} needs Spark, but the engine is 'local'"
    assert str(error.value) == said


@pytest.mark.parametrize(
    ("rest", "future"),
    [
        ("", None),
        ("[stream]\ntrigger = '2s'\n", "5m"),
        ("[stream]\nfuture = '1h'\n", "1h"),
        ("[stream]\ntrigger = '2s'\nfuture = 'off'\n", None),
    ],
)
def test_a_run_that_does_not_end_is_judged_by_the_clock(folder, rest, future):
    assert load(folder, rest=rest).allowed_future == future


def test_a_future_that_is_no_duration_is_refused(folder):
    with pytest.raises(InvalidForm, match="future must be 'off' or a duration"):
        load(folder, rest="[stream]\nfuture = 'soon'\n")
