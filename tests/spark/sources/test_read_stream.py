"""Streams of files and of Spark's sources, as far as they need no session."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from tidings import Event, Limits, TidingsError, loads_event
from tidings.formats.event_source import Source, SparkSource
from tidings.spark.sources import read_stream as module
from tidings.spark.sources.read_stream import read_files, read_stream

EVENTS = [Event(f"e{n}", {"year": 2000 + n}, n) for n in range(2)]


def read(suffix: str, *paths: Path, limits: Limits | None = None) -> list[list[Any]]:
    """Return the rows of each file, read as a worker does."""
    batch = pa.record_batch({"path": [path.resolve().as_uri() for path in paths]})
    source = Source(paths[0].parent, f"*{suffix}", suffix)
    found = read_files(source, [batch], limits=limits or Limits())
    return [list(zip(*each.to_pydict().values(), strict=True)) for each in found]


def as_json(path: Path, *forms: Any) -> Path:
    path.write_text(json.dumps(forms))
    return path


def test_events_of_whole_files_become_lines(tmp_path: Path) -> None:
    first = as_json(tmp_path / "a b%20.json", *(event.to_dict() for event in EVENTS))
    second = as_json(tmp_path / "empty.json")
    (found,) = read(".json", first, second)
    assert [loads_event(json.loads(value)) for value, _ in found] == EVENTS
    assert [reason for _, reason in found] == [None, None]


def test_a_bad_record_is_a_line_with_its_reason(tmp_path: Path) -> None:
    path = as_json(tmp_path / "a.json", {"id": "half \ud83d"}, EVENTS[0].to_dict())
    ((bad, why), (_, none)) = read(".json", path)[0]
    assert "half" in json.loads(bad)["id"]
    assert why.startswith("event half \\ud83d: field 'published_at' is missing")
    assert none is None


def test_a_file_that_cannot_be_read_is_a_line_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"no parquet")
    (((record, reason),),) = read(".parquet", path)
    assert json.loads(record) == {"file": str(path)}
    assert str(path) in reason


def test_records_are_read_within_limits(tmp_path: Path) -> None:
    path = as_json(tmp_path / "a.json", Event("e", {"a": 1, "b": 2}, 0).to_dict())
    (((_, reason),),) = read(".json", path, limits=Limits(attributes=1))
    assert "above the limit attributes = 1" in reason


class Reader:
    """A reader of streams that records its calls, and answers with itself."""

    def __init__(self, columns: Sequence[str] = ()) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.columns = columns

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> "Reader":
            self.calls.append((name, *arguments, *options.items()))
            return self

        return call


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Return a reader for a module whose columns need no session."""
    monkeypatch.setattr(module, "watch_events", lambda rows: rows)
    monkeypatch.setattr(
        module,
        "f",
        SimpleNamespace(
            trim=lambda _: "", expr=lambda each: SimpleNamespace(alias=lambda name: (name, each))
        ),
    )
    return Reader()


def session(reader: Reader, **more: Any) -> Any:
    return SimpleNamespace(readStream=reader, **more)


def test_files_of_any_age_are_read_some_at_a_time(reader: Reader, tmp_path: Path) -> None:
    read_stream(session(reader), Source(tmp_path, "*.jsonl", ".jsonl", files_per_batch=3))
    assert reader.calls[:3] == [
        ("option", "maxFilesPerTrigger", 3),
        ("option", "maxFileAge", "36500d"),
        ("text", f"{tmp_path}/*.jsonl"),
    ]


def test_special_characters_of_hadoop_are_escaped(reader: Reader, tmp_path: Path) -> None:
    folder = tmp_path / "a{b}[c]*"
    read_stream(session(reader), Source(folder, "{x}[0-9]?.jsonl", ".jsonl"))
    assert reader.calls[2] == ("text", f"{tmp_path}/a\\{{b\\}}\\[c\\]\\*/\\{{x\\}}[0-9]?.jsonl")


@pytest.mark.parametrize(
    ("suffix", "unreadable"), [(".csv", "stop"), (".json", "stop"), (".parquet", "dead-letter")]
)
def test_other_formats_are_read_by_workers(
    reader: Reader, tmp_path: Path, suffix: str, unreadable: str
) -> None:
    source = Source(tmp_path, f"*{suffix}", suffix, unreadable=unreadable)
    read_stream(session(reader), source)
    names = [name for name, *_ in reader.calls]
    assert names == ["option", "option", "format", "schema", "load", "select", "mapInArrow"]
    work = reader.calls[-1][1]
    assert (work.func, work.args) == (read_files, (source,))


def test_rows_of_a_source_are_events_as_they_are(reader: Reader) -> None:
    read_stream(session(reader), SparkSource("rate", {"rowsPerSecond": "5"}))
    assert reader.calls == [("format", "rate"), ("options", ("rowsPerSecond", "5")), ("load",)]


def test_columns_of_a_source_are_expressions(reader: Reader) -> None:
    for keep, others in ((None, ["`b.c`"]), ((), []), (("a",), ["`a`"])):
        reader = Reader(["a", "id", "b.c"])
        columns = {"id": "a + 1", "published_at": "a"} if keep is None else {"id": "a + 1"}
        read_stream(
            session(reader), SparkSource("rate", schema="a int", columns=columns, keep=keep)
        )
        assert reader.calls[2:4] == [("schema", "a int"), ("load",)]
        assert reader.calls[4] == ("select", *columns.items(), *others)


def test_a_query_selects_from_the_table_source(reader: Reader) -> None:
    asked: list[str] = []
    read_stream(
        session(reader, sql=asked.append), SparkSource("rate", select="select * from source")
    )
    assert reader.calls[-1] == ("createOrReplaceTempView", "source")
    assert asked == ["select * from source"]


def test_an_error_of_a_source_does_not_show_its_secrets() -> None:
    class Failing(Reader):
        def load(self) -> Any:
            raise PySparkException("no user ann with swordfish")

    source = SparkSource("jdbc", {"password": "swordfish", "dbtable": "films"})
    with pytest.raises(TidingsError) as refused:
        read_stream(session(Failing()), source)
    assert str(refused.value) == "[source] format = 'jdbc': no user ann with ***"
    assert refused.value.__context__ is None
