"""Sources as streams of publications: files, and whatever Spark can read."""

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
from tidings.spark.ops.error_messages import TROUBLES, said
from tidings.spark.ops.progress import watch_events

_TABLE: Final = "source"
_FILES: Final = "path string, modificationTime timestamp, length long, content binary"
_LINES: Final = pa.schema({"value": pa.string(), "reason": pa.string()})
# Otherwise Spark passes over files that are a week older than the newest one, without a word.
_ANY_AGE: Final = "36500d"


def read_stream(
    spark: SparkSession, source: Source | SparkSource, *, limits: Limits = TRUSTED
) -> DataFrame:
    """Give the events of a source, also those that come later, as a streaming DataFrame."""
    if isinstance(source, SparkSource):
        return watch_events(_read_spark(spark, source))
    return watch_events(_read_files(spark, source, limits))


def _read_spark(spark: SparkSession, source: SparkSource) -> DataFrame:
    """Load what a format and options name, and make publications of it."""
    try:
        reader = spark.readStream.format(source.format).options(**source.options)
        rows = (reader.schema(source.schema) if source.schema else reader).load()
        if source.select:
            rows.createOrReplaceTempView(_TABLE)
            return spark.sql(source.select)
        if source.columns:
            return rows.select(*(f.expr(each).alias(name) for name, each in source.columns.items()))
        return rows
    except TROUBLES as error:
        words, hide = said(error), hider_of(source.options)
    # Raised here, it has no context: Spark's error may show options.
    raise TidingsError(f"[source] format = {source.format!r}: {hide(words)}")


def _read_files(spark: SparkSession, source: Source, limits: Limits) -> DataFrame:
    """Give the events of files.

    Spark takes files in order of their age; files of the very same age come in no order. JSON
    Lines and Parquet are read by Spark; a file of another format by one worker, as the local
    engine has it, and so is Parquet of which bad files are dead letters.
    """
    reader = spark.readStream.option("maxFilesPerTrigger", source.files_per_batch)
    reader = reader.option("maxFileAge", _ANY_AGE)
    files = _glob(source)
    if source.suffix in (".jsonl", ".ndjson"):
        return reader.text(files).where(f.trim("value") != "")
    if source.suffix == ".parquet" and source.unreadable == "stop":
        return reader.schema(_schema(spark, source)).parquet(files)
    found = reader.format("binaryFile").schema(_FILES).load(files).select("path")
    read = partial(read_files, source.suffix, limits=limits)
    return found.mapInArrow(read, from_arrow_schema(_LINES))


def _schema(spark: SparkSession, source: Source) -> StructType:
    """Give the schema of the first file that has one."""
    files = source.files()
    for file in files:
        try:
            return spark.read.parquet(_escaped(file)).schema
        except TROUBLES as error:
            trouble = error
    raise TidingsError(f"none of {len(files)} Parquet files can be read: {said(trouble)}")


def _glob(source: Source) -> str:
    """Give the pattern of a source as Hadoop has it, to which { } mean something as well."""
    pattern = re.sub(r"([\\{}])", r"\\\1", source.pattern)
    return f"{_escaped(source.folder)}/{pattern}"


def _escaped(path: Path) -> str:
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", str(path.resolve()))


def read_files(
    suffix: str, batches: Iterable[pa.RecordBatch], *, limits: Limits = TRUSTED
) -> Iterator[pa.RecordBatch]:
    """Read whole files: an event a line, or a bad record with the reason."""
    for batch in batches:
        for uri in batch.column("path").to_pylist():
            records = read_file(unquote(urlsplit(uri).path), suffix, limits=limits)
            rows = [_line(each) for each in records]
            yield pa.RecordBatch.from_pylist(rows, _LINES)


def _line(record: Any) -> dict[str, str]:
    if isinstance(record, BadRecord):
        bad = record.to_dict()
        # Half a surrogate pair, in the id of a bad record perhaps, is no text to Arrow.
        reason = bad["reason"].encode(errors="backslashreplace").decode()
        return {"value": json.dumps(bad["record"]), "reason": reason}
    return {"value": json.dumps(record.to_dict())}
