"""Streams of publications from files and from any source that Spark can read."""

import json
import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tidings.errors import TidingsError
from tidings.formats.event_source import Source, SparkSource, read_file
from tidings.formats.redaction import hider_of
from tidings.model.dead_letter import BadRecord
from tidings.model.limits import TRUSTED, Limits
from tidings.spark.ops.error_messages import SPARK_ERRORS, describe_error
from tidings.spark.ops.progress import watch_events

_TABLE: Final = "source"
_FILES: Final = "path string, modificationTime timestamp, length long, content binary"
_LINES: Final = pa.schema({"value": pa.string(), "reason": pa.string()})
# By default Spark silently skips files that are a week older than the newest one.
_ANY_AGE: Final = "36500d"


def read_stream(
    spark: SparkSession, source: Source | SparkSource, *, limits: Limits = TRUSTED
) -> DataFrame:
    """Return the present and future events of a source as a streaming DataFrame."""
    if isinstance(source, SparkSource):
        return watch_events(_read_spark(spark, source))
    return watch_events(_read_files(spark, source, limits))


def _read_spark(spark: SparkSession, source: SparkSource) -> DataFrame:
    """Load rows by a format and its options, and select publications from them."""
    try:
        reader = spark.readStream.format(source.format).options(**source.options)
        rows = (reader.schema(source.schema) if source.schema else reader).load()
        if source.select:
            rows.createOrReplaceTempView(_TABLE)
            return spark.sql(source.select)
        if source.columns:
            return rows.select(*(f.expr(each).alias(name) for name, each in source.columns.items()))
        return rows
    except SPARK_ERRORS as error:
        reason, hide = describe_error(error), hider_of(source.options)
    # Raised outside the handler so that it has no context: Spark's error may show options.
    raise TidingsError(f"[source] format = {source.format!r}: {hide(reason)}")


def _read_files(spark: SparkSession, source: Source, limits: Limits) -> DataFrame:
    """Return the events of files.

    Spark takes files by age; the order of files of the same age is unspecified. JSON Lines and
    Parquet are read by Spark. A file of another format is read by one worker with the reader of the
    local engine, and so is Parquet if unreadable files are to be dead letters.
    """
    reader = spark.readStream.option("maxFilesPerTrigger", source.files_per_batch)
    reader = reader.option("maxFileAge", _ANY_AGE)
    files = _glob(source)
    if source.suffix in (".jsonl", ".ndjson"):
        return reader.text(files).where(f.trim("value") != "")
    if source.suffix == ".parquet" and source.unreadable == "stop":
        return reader.schema(_schema(spark, source)).parquet(files)
    paths = reader.format("binaryFile").schema(_FILES).load(files).select("path")
    read = partial(read_files, source.suffix, limits=limits)
    return paths.mapInArrow(read, from_arrow_schema(_LINES))


def _schema(spark: SparkSession, source: Source) -> StructType:
    """Return the schema of the first readable file."""
    files = source.files()
    for file in files:
        try:
            return spark.read.parquet(_escaped(file)).schema
        except SPARK_ERRORS as error:
            failure = error
    raise TidingsError(f"none of {len(files)} Parquet files can be read: {describe_error(failure)}")


def _glob(source: Source) -> str:
    """Return the pattern of a source for Hadoop, where { } are special characters as well."""
    pattern = re.sub(r"([\\{}])", r"\\\1", source.pattern)
    return f"{_escaped(source.folder)}/{pattern}"


def _escaped(path: Path) -> str:
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", str(path.resolve()))


def read_files(
    suffix: str, batches: Iterable[pa.RecordBatch], *, limits: Limits = TRUSTED
) -> Iterator[pa.RecordBatch]:
    """Yield the records of whole files, one per line: events, or bad records with the reason."""
    for batch in batches:
        for uri in batch.column("path").to_pylist():
            records = read_file(unquote(urlsplit(uri).path), suffix, limits=limits)
            rows = [_line(each) for each in records]
            yield pa.RecordBatch.from_pylist(rows, _LINES)


def _line(record: Any) -> dict[str, str]:
    if isinstance(record, BadRecord):
        bad = record.to_dict()
        # Arrow refuses text with a lone surrogate, which the id of a bad record may contain.
        reason = bad["reason"].encode(errors="backslashreplace").decode()
        return {"value": json.dumps(bad["record"]), "reason": reason}
    return {"value": json.dumps(record.to_dict())}
