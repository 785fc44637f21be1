"""Publications as a user has them: which DataFrames can be read, and how their rows are."""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from tidings.errors import InvalidForm, InvalidPolicy
from tidings.formats import arrow as columns
from tidings.formats.arrow import ReadEvents
from tidings.model.dead_letter import BadRecord
from tidings.model.limits import TRUSTED, Limits, check_limits
from tidings.model.records import Event
from tidings.spark.match_stage.matcher_source import Matchers
from tidings.spark.match_stage.stage import ReadLines

_LINES: Final = (["value"], ["value", "reason"])


@dataclass(frozen=True)
class Renamed:
    """Reads rows of which some columns travel under other names."""

    read: ReadEvents
    names: Mapping[str, str]

    def __call__(self, batch: pa.RecordBatch) -> Iterator[Event | BadRecord]:
        """Read a batch, its columns under their own names."""
        return self.read(batch.rename_columns([self.names.get(n, n) for n in batch.schema.names]))


def readable(
    publications: DataFrame, *others: str, limits: Limits = TRUSTED
) -> tuple[DataFrame, ReadEvents]:
    """Give publications as Python can get them, and what reads their rows there.

    `others` are columns that are not read. A schema that holds no publications is refused. Spark
    takes a dot in the name of a column for a field of a struct when it hands rows to Python, so
    such columns travel under another name.
    """
    check_frame("publications", publications)
    read = event_reader(publications.drop(*others), check_limits(limits, InvalidPolicy))
    dotted = [name for name in publications.columns if {".", "`"} & {*name}]
    if not dotted:
        return publications, read
    safe = {name: f"tidings_name_{place}" for place, name in enumerate(dotted)}
    frame = publications.toDF(*(safe.get(name, name) for name in publications.columns))
    return frame, Renamed(read, {short: name for name, short in safe.items()})


def check_frame(what: str, given: object, columns: Iterable[str] = ()) -> None:
    """Refuse what is no DataFrame, or lacks some columns."""
    if not isinstance(given, DataFrame):
        raise InvalidForm(f"{what} are a DataFrame of Spark, not {type(given).__name__}")
    if missing := [name for name in columns if name not in given.columns]:
        raise InvalidForm(f"{what} lack the columns {missing}")


def event_reader(publications: DataFrame, limits: Limits = TRUSTED) -> ReadEvents:
    """Tell how the rows of a DataFrame are read, and refuse a schema that holds no publications.

    A DataFrame with the one column `value` (`spark.read.text`) holds the JSON form of an event a
    line; it may also have a column `reason`, for lines that another reader refused.
    """
    if publications.columns in _LINES:
        return ReadLines(limits)
    columns.read_events(to_arrow_schema(publications.schema, timezone="UTC").empty_table())
    return partial(columns.read_valid_events, limits=limits)


def check_sequences(publications: DataFrame, found: Matchers) -> None:
    """Refuse publications without numbers where some window counts all of them.

    Where subscribers come and go, that one counts is only warned of: it must not stop the others.
    """
    known = "sequence" in publications.columns or publications.columns in _LINES
    if known or not found.counting():
        return
    told = (
        'a subscriber counts published events (count="published"), so the publications need a '
        "column sequence"
    )
    if not found.follows:
        raise InvalidPolicy(told)
    warnings.warn(f"{told}; without it, such subscribers get nothing", stacklevel=4)
