"""The sink of any format: the calls that it makes, and its errors, without a session."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from tidings.formats.arrow import DELIVERIES
from tidings.spark.ops.error_messages import SparkError
from tidings.spark.sinks import files
from tidings.spark.sinks.files import format_sink


class Frame:
    """A batch, its rows and its writer in one, which records the calls of a sink."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._failure = failure

    @property
    def write(self) -> "Frame":
        return self

    @property
    def sparkSession(self) -> "Frame":  # noqa: N802
        return self

    def save(self) -> None:
        self.calls.append(("save",))
        if self._failure:
            raise self._failure

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> "Frame":
            self.calls.append((name, *arguments, *options.items()))
            return self

        return call


@pytest.fixture(autouse=True)
def _columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let columns be their names, which need no session."""
    monkeypatch.setattr(files, "f", SimpleNamespace(col=lambda name: name))


def written(frame: Any, **options: Any) -> list[tuple[Any, ...]]:
    """Return the calls of a sink that writes a batch."""
    format_sink("jdbc", {"dbtable": "films", "password": "swordfish"}, **options)(frame, 3)
    return list(frame.calls)


SAVED = [
    ("format", "jdbc"),
    ("options", ("dbtable", "films"), ("password", "swordfish")),
    ("mode", "append"),
    ("save",),
]


def test_deliveries_are_appended_by_a_format() -> None:
    calls = written(Frame())
    assert calls[0] == ("persist",)
    assert calls[2] == ("select", *DELIVERIES.names)
    assert calls[3:] == [*SAVED, ("unpersist",)]


def test_a_query_selects_from_the_table_deliveries() -> None:
    calls = written(Frame(), select="select event from deliveries")
    assert calls[3:] == [
        ("createOrReplaceTempView", "deliveries"),
        ("sql", "select event from deliveries"),
        *SAVED,
        ("unpersist",),
    ]


def test_a_batch_is_reported_after_it_is_written() -> None:
    frame = Frame()
    reported: list[Any] = []
    written(frame, written=lambda number, batch: reported.append((number, batch, *frame.calls[-1])))
    assert reported == [(3, frame, "save")]


def test_an_error_names_the_format_and_hides_the_options() -> None:
    frame = Frame(PySparkException("no user ann with swordfish in films"))
    reported: list[Any] = []
    with pytest.raises(SparkError) as refused:
        written(frame, written=lambda *_: reported.append("written"))
    assert str(refused.value) == "[sink] format = 'jdbc': no user ann with *** in films"
    assert refused.value.__context__ is None
    assert frame.calls[-1] == ("unpersist",)
    assert reported == []


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(KeyError, match="a bug"):
        written(Frame(KeyError("a bug")))
