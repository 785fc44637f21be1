"""Streams of publications from files and from any source that Spark can read."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tidings.errors import TidingsError
from tidings.formats.event_source import Source, SparkSource
from tidings.formats.messages import LINES, MessageForm, MessageSource, event_line
from tidings.formats.redaction import hider_of
from tidings.model.dead_letter import Failure, try_call
from tidings.model.limits import CONTENT, TRUSTED, Limits
from tidings.spark.match_stage.stage import LAST
from tidings.spark.ops.error_messages import SPARK_ERRORS, describe_error
from tidings.spark.ops.progress import watch_events
from tidings.spark.publications import quoted

_TABLE: Final = "source"
_FILES: Final = "path string, modificationTime timestamp, length long, content binary"
_MARKED_LINES: Final = LINES.append(pa.field(LAST, pa.bool_()))
_ROWS: Final = 4096
# By default Spark silently skips files that are a week older than the newest one.
_ANY_AGE: Final = "36500d"


def read_stream(
    spark: SparkSession,
    source: Source | SparkSource | MessageSource,
    *,
    limits: Limits = TRUSTED,
    ends: Collection[str] = (),
) -> DataFrame:
    """Return the present and future events of a source as a streaming DataFrame.

    The column LAST marks the rows of the files `ends`, with which runs of a stream of files end.
    """
    if isinstance(source, SparkSource):
        return watch_events(_read_spark(spark, source))
    if isinstance(source, MessageSource):
        messages = _read_spark(spark, SparkSource(source.format, source.options))
        read = partial(read_messages, source.form, limits=limits)
        return watch_events(messages.mapInArrow(read, from_arrow_schema(LINES)))
    rows = _read_files(spark, source, limits, ends)
    return watch_events(rows)


def _read_spark(spark: SparkSession, source: SparkSource) -> DataFrame:
    """Load rows by a format and its options, and select publications from them."""
    try:
        reader = spark.readStream.format(source.format).options(**source.options)
        rows = (reader.schema(source.schema) if source.schema else reader).load()
        if source.select:
            rows.createOrReplaceTempView(_TABLE)
            return spark.sql(source.select)
        if source.columns:
            named = [f.expr(sql).alias(name) for name, sql in source.columns.items()]
            return rows.select(*named, *_others(rows.columns, source), *_hidden(source))
        if source.keep is not None:
            return rows.select(*map(quoted, source.keep), *_hidden(source))
        return rows
    except SPARK_ERRORS as error:
        reason, hide = describe_error(error), hider_of(source.options)
    # Raised outside the handler so that it has no context: Spark's error may show options.
    raise TidingsError(f"[source] format = {source.format!r}: {hide(reason)}")


def _others(columns: Sequence[str], source: SparkSource) -> list[str]:
    """Return the columns to keep in addition to those of a source that have expressions."""
    used = {*source.columns} | {sql.strip("` ") for sql in source.columns.values()}
    names = columns if source.keep is None else source.keep
    return [quoted(name) for name in names if name not in used]


def _hidden(source: SparkSource) -> list[Column]:
    """Return the column of content, if some columns are only for that."""
    fields = [f.col(quoted(name)).alias(name) for name in source.hidden]
    return [f.struct(*fields).alias(CONTENT)] if fields else []


def _read_files(
    spark: SparkSession, source: Source, limits: Limits, ends: Collection[str]
) -> DataFrame:
    """Return the events of files.

    Spark takes files by age, those of the same age by name. JSON Lines of events and Parquet are
    read by Spark. Any other file is read by one worker with the reader of the local engine, and so
    is Parquet that Spark cannot read, or whose unreadable files are to be dead letters.
    """
    reader = spark.readStream.option("maxFilesPerTrigger", source.files_per_batch)
    reader = reader.option("maxFileAge", _ANY_AGE)
    files = _glob(source)
    if source.suffix in (".jsonl", ".ndjson") and source.layout.is_plain:
        return _mark(reader.text(files).where(f.trim("value") != ""), ends)
    if source.suffix == ".parquet" and _spark_can_read(source):
        rows = reader.schema(_schema(spark, source)).parquet(files)
        columns = source.layout.sources(rows.columns).items()
        named = [f.col(quoted(column)).alias(name) for name, column in columns]
        return _mark(rows.select(*named), ends)
    paths = reader.format("binaryFile").schema(_FILES).load(files).select("path")
    read = partial(read_files, source, limits=limits, ends=frozenset(ends))
    return paths.mapInArrow(read, from_arrow_schema(_MARKED_LINES if ends else LINES))


def _mark(rows: DataFrame, ends: Collection[str]) -> DataFrame:
    """Add the column LAST to the rows of files that Spark reads."""
    if not ends:
        return rows
    # Spark encodes only some characters; decoding also turns each plus sign into a space.
    names = ["file://" + end.replace("+", " ") for end in ends]
    return rows.withColumn(LAST, f.url_decode(f.input_file_name()).isin(names))


def _spark_can_read(source: Source) -> bool:
    """Return whether Spark can read Parquet files, judging by the first of them.

    It has no times in nanoseconds, which pandas writes, and no types for files yet to come.
    """
    files = source.files()
    if source.unreadable != "stop" or not source.layout.renames_only or source.hidden or not files:
        return False
    schema = try_call(parquet.read_schema, files[0])
    if isinstance(schema, Failure):
        return True
    return not any("[ns" in str(column.type) for column in schema)


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


def read_messages(
    form: MessageForm, batches: Iterable[pa.RecordBatch], *, limits: Limits = TRUSTED
) -> Iterator[pa.RecordBatch]:
    """Yield the events of messages, one per line."""
    return (form.lines(batch, limits) for batch in batches)


def read_files(
    source: Source,
    batches: Iterable[pa.RecordBatch],
    *,
    limits: Limits = TRUSTED,
    ends: AbstractSet[str] = frozenset(),
) -> Iterator[pa.RecordBatch]:
    """Yield the records of whole files, one per line: events, or bad records with the reason."""
    schema = _MARKED_LINES if ends else LINES
    for batch in batches:
        for uri in batch.column("path").to_pylist():
            path = unquote(urlsplit(uri).path)
            records = source.read(path, limits=limits)
            while rows := [
                event_line(record) | {LAST: path in ends} for record in islice(records, _ROWS)
            ]:
                yield pa.RecordBatch.from_pylist(rows, schema)
