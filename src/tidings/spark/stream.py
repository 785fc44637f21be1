"""Files as a stream of publications, and a query followed batch by batch until it has no more."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from tidings.errors import TidingsError
from tidings.rows import BadRecord
from tidings.source import Source, read_file

_EVENTS: Final = "events"
_FILES: Final = "path string, modificationTime timestamp, length long, content binary"
_LINES: Final = pa.schema({"value": pa.string(), "reason": pa.string()})
_POLL_S: Final = 1
# Otherwise Spark passes over files that are a week older than the newest one, without a word.
_ANY_AGE: Final = "36500d"
Write = Callable[[DataFrame, int], None]


def read_stream(spark: SparkSession, source: Source) -> DataFrame:
    """Give the events of files, also of those that come later, as a streaming DataFrame.

    Spark takes files in order of their age; files of the very same age come in no order. JSON
    Lines and Parquet are read by Spark; a file of another format by one worker, as the local
    engine has it.
    """
    reader = spark.readStream.option("maxFilesPerTrigger", source.files_per_batch)
    reader = reader.option("maxFileAge", _ANY_AGE)
    files = _glob(source)
    if source.suffix in (".jsonl", ".ndjson"):
        lines = reader.text(files)
        return _counted(lines.where(f.trim("value") != ""))
    if source.suffix == ".parquet":
        schema = spark.read.parquet(_escaped(source.files()[0])).schema
        return _counted(reader.schema(schema).parquet(files))
    found = reader.format("binaryFile").schema(_FILES).load(files).select("path")
    return _counted(found.mapInArrow(partial(read_files, source.suffix), from_arrow_schema(_LINES)))


def _glob(source: Source) -> str:
    """Give the pattern of a source as Hadoop has it, to which { } mean something as well."""
    pattern = re.sub(r"([\\{}])", r"\\\1", source.pattern)
    return f"{_escaped(source.folder)}/{pattern}"


def _escaped(path: Path) -> str:
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", str(path.resolve()))


def _counted(events: DataFrame) -> DataFrame:
    return events.observe(_EVENTS, f.count(f.lit(1)).alias("count"))


def read_files(suffix: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read whole files: an event a line, or a bad record with the reason."""
    for batch in batches:
        for uri in batch.column("path").to_pylist():
            rows = [_line(each) for each in read_file(unquote(urlsplit(uri).path), suffix)]
            yield pa.RecordBatch.from_pylist(rows, _LINES)


def _line(record: Any) -> dict[str, str]:
    if isinstance(record, BadRecord):
        bad = record.to_dict()
        return {"value": json.dumps(bad["record"]), "reason": bad["reason"]}
    return {"value": json.dumps(record.to_dict())}


def start(outcomes: DataFrame, write: Write, checkpoint: Path) -> StreamingQuery:
    """Start a query over all files that there are, going on from its checkpoint."""
    writer = outcomes.writeStream.foreachBatch(write).trigger(availableNow=True)
    return writer.option("checkpointLocation", str(checkpoint)).start()


def follow(query: StreamingQuery) -> Iterator[tuple[int, int]]:
    """Give the number of each batch, and of its events, as they are done."""
    last = -1
    try:
        ended = False
        while not ended:
            ended = bool(query.awaitTermination(_POLL_S))
            for progress in query.recentProgress:
                if progress.batchId > last and _EVENTS in progress.observedMetrics:
                    last = progress.batchId
                    yield last, progress.observedMetrics[_EVENTS]["count"]
    except StreamingQueryException as error:
        raise TidingsError(f"the stream stopped: {_cause(error)}") from error
    finally:
        query.stop()


def _cause(error: PySparkException) -> str:
    """Give the last line that says what was raised; Spark puts many around it."""
    lines = [line.strip() for line in str(error).splitlines()]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Invalid\w+): ", line)]
    return re.sub(r"^tidings[\w.]+: ", "", raised[-1]) if raised else lines[0]


def count(outcomes: DataFrame) -> dict[tuple[str, str | None], int]:
    """Count the outcomes of a batch by kind and subscriber; a late event counts once."""
    groups = outcomes.groupBy("kind", "subscriber")
    counted = groups.agg(f.count(f.lit(1)).alias("rows"), f.count_distinct("event").alias("events"))
    return {
        (row["kind"], row["subscriber"]): row["events"] if row["kind"] == "late" else row["rows"]
        for row in counted.collect()
    }
