"""The table [source]: files, or any format of Spark with its options."""

import pytest

from tidings.errors import InvalidForm
from tidings.formats.event_source import Source, SparkSource
from tidings.formats.messages import MessageSource

FILES = '[source]\npath = "events.jsonl"\n'
KAFKA = '[source]\nformat = "kafka"\n'


def test_a_source_of_spark_has_a_format_and_options(load):
    text = """[source]
format = "kafka"
columns = { id = "cast(key as string)", value = "cast(value as string)" }
[source.options]
kafka.bootstrap.servers = "a:9092"
subscribe = "films"
maxOffsetsPerTrigger = 1000
includeHeaders = false
"""
    assert load(source=text).source == SparkSource(
        "kafka",
        {
            "kafka.bootstrap.servers": "a:9092",
            "subscribe": "films",
            "maxOffsetsPerTrigger": "1000",
            "includeHeaders": "false",
        },
        columns={"id": "cast(key as string)", "value": "cast(value as string)"},
        keep=(),
    )


def test_a_kafka_value_is_the_form_of_an_event_by_default(load):
    source = load(source='[source]\nformat = "kafka"\n').source
    assert isinstance(source, SparkSource)
    assert source.columns == {"value": "coalesce(cast(value as string), 'null')"}
    text = '[source]\nformat = "kafka"\nselect = "select * from source"\n'
    assert load(source=text).source == SparkSource("kafka", select="select * from source")


def test_the_file_of_a_table_is_relative_to_the_config_and_no_password_is_shown(load, folder):
    text = '[source]\nformat = "tidings-table"\noptions = { url = "sqlite:///shop.db" }\n'
    path = (folder / "shop.db").resolve()
    expected = SparkSource("tidings-table", {"url": f"sqlite:///{path}"})
    assert load(source=text).source == expected
    url = "postgresql://ann:secret@host/shop"
    source = load(source=text.replace("sqlite:///shop.db", url)).source
    assert isinstance(source, SparkSource)
    assert source.options == {"url": url}
    assert "secret" not in str(source)


def test_a_format_of_ours_with_options_is_read_by_spark(load, folder):
    text = '[source]\nformat = "csv"\nschema = "id string"\noptions = { path = "in", sep = ";" }\n'
    path = str((folder / "in").resolve())
    expected = SparkSource("csv", {"path": path, "sep": ";"}, "id string")
    assert load(source=text).source == expected
    text = '[source]\nformat = "json"\noptions = { path = "s3a://bucket/in" }\n'
    assert load(source=text).source == SparkSource("json", {"path": "s3a://bucket/in"})


def test_unreadable_files_are_configured(load):
    source = load(source=f'{FILES}unreadable = "dead-letter"\n').source
    assert isinstance(source, Source)
    assert source.unreadable == "dead-letter"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("[source]\n", "[source]: field 'path' is missing"),
        ("source = 3\n", "[source] must be a table, not a number"),
        (f"{KAFKA}path = 'x'\n", "[source] format is one of 'jsonl'"),
        (f"{KAFKA}files_per_batch = 3\n", "unknown field 'files_per_batch'"),
        (f"{KAFKA}options = 3\n", "[source] options must be a table of names and values"),
        (f"{KAFKA}options = {{ a = [1] }}\n", "[source] options a must be a string, a number or a"),
        (f"{KAFKA}options = {{ a.b = [1] }}\n", "[source] options a.b must be a string"),
        (f"{KAFKA}columns = 'id'\n", "[source] columns must be a table of SQL expressions"),
        (f"{KAFKA}columns = {{ id = 3 }}\n", "[source] columns id must be a non-empty string"),
        (f"{KAFKA}select = ''\n", "[source] select must be a non-empty string, not ''"),
        (
            f"{KAFKA}select = 'x'\ncolumns = {{ id = 'a' }}\n",
            "[source] columns and select cannot be combined",
        ),
        (
            "[source]\nformat = 'tidings-table'\noptions = { url = 'a.db' }\n",
            "[source] options url cannot be read; write sqlite:///path, or postgresql://user@host/",
        ),
        (f"{FILES}unreadable = 'skip'\n", "[source] unreadable is one of 'stop', 'd"),
        (
            FILES.replace("events.jsonl", "none.jsonl"),
            "[source] path: there is no file at 'none.jsonl'",
        ),
        (FILES.replace("events.jsonl", "*.csv"), "[source] path: there is no file at '*.csv' in "),
        (FILES.replace("events.jsonl", "**/*.csv"), "[source] path: ** is not supported"),
    ],
)
def test_a_mistake_is_reported_with_key_value_and_rule(load, folder, source, reason):
    with pytest.raises(InvalidForm) as error:
        load(source=source)
    assert str(error.value).startswith(f"{folder}/run.toml: ")
    assert reason in str(error.value)


def test_columns_are_content_on_any_source(load):
    for text in ('path = "events.jsonl"', 'format = "rate"'):
        source = load(source=f'[source]\n{text}\ncontent = ["title", "url"]\n').source
        assert source.content == ("title", "url")
        for wrong in ('"title"', "[1]", '[""]', "{}"):
            with pytest.raises(InvalidForm, match=r"\[source\] content must be"):
                load(source=f"[source]\n{text}\ncontent = {wrong}\n")


def test_content_that_is_not_kept_is_content_only(load):
    text = 'content = ["id", "title", "url"]\nkeep = ["title"]\n'
    source = load(source=f"{FILES}{text}").source
    assert isinstance(source, Source)
    assert (source.content, source.hidden) == (("id", "title", "url"), ("url",))
    assert source.layout.keep == ("title", "url")
    source = load(source=f'[source]\nformat = "rate"\n{text}').source
    assert isinstance(source, SparkSource)
    assert (source.keep, source.hidden) == (("title",), ("url",))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("tidings-kafka", "tidings-kafka"), ("nats", "tidings-nats"), ("tidings-rss", "tidings-rss")],
)
def test_messages_are_read_by_both_engines(load, name, kind):
    source = load(source=f'[source]\nformat = "{name}"\ncontent = ["title"]\n').source
    assert isinstance(source, MessageSource)
    assert (source.format, source.form.content) == (kind, ("title",))


def test_sql_over_messages_needs_spark(load):
    source = load(source='[source]\nformat = "tidings-nats"\nselect = "select * from source"\n')
    assert isinstance(source.source, SparkSource)


def test_avro_has_a_schema_file(load, tmp_path):
    (tmp_path / "film.avsc").write_text('{"type": "string"}')
    source = load(source='[source]\nformat = "nats"\nschema_file = "film.avsc"\n').source
    assert (source.form.encoding, source.form.schema) == ("avro", '{"type": "string"}')
    with pytest.raises(InvalidForm, match="encoding = 'avro' and schema_file cannot be combined"):
        load(source='[source]\nformat = "nats"\nencoding = "avro"\n')
    with pytest.raises(InvalidForm, match=r"schema_file .*missing.avsc: No such file"):
        load(source='[source]\nformat = "nats"\nschema_file = "missing.avsc"\n')
