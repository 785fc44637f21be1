"""Errors of Spark in one sentence."""

import shutil
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from tidings.errors import StoreError
from tidings.spark.ops.error_messages import (
    SparkError,
    describe_error,
    reporting_errors,
    writing_to,
)

READING = """An error occurred while calling o84.collectToPython.
: org.apache.spark.SparkException: [FAILED_READ_FILE.{code}] Encountered error while reading file \
file:///data/in%20here/b.parquet. {why} SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(X.scala:920)
Caused by: java.io.IOException: outer
Caused by: java.lang.RuntimeException: not a Parquet file. Expected magic number at tail
\tat org.apache.parquet.hadoop.ParquetFileReader.readFooter(ParquetFileReader.java:622)
"""
FILE = "/data/in here/b.parquet"
REMEDY = (
    "; repair it and run again, or turn it into a dead letter with unreadable = "
    '"dead-letter" in [source]'
)


FAILED = "[STREAM_FAILED] Query [id = 1-a, runId = 2-b] terminated with exception: {why}\n"
PLAN = """=== Streaming Query ===
Logical Plan:
~WriteToMicroBatchDataSourceV1 ForeachBatchSink, 1-a, [checkpointLocation=/data/check], Append
"""
STATE = """py4j.protocol.Py4JJavaError: An error occurred while calling o185.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
Caused by: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error \
occurred during loading state.  SQLSTATE: 58030
Caused by: org.apache.hadoop.fs.ChecksumException: {why}
"""
SUM = "Checksum error: file:/data/check/state/0/0/2.zip at 1536 exp: 18 got: 13"
FULL = """py4j.protocol.Py4JJavaError: An error occurred while calling o279.getResult.
Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
"""


def lost(why: str, path: str = " /data/check") -> str:
    """Return the message for a damaged checkpoint."""
    return (
        f"the checkpoint{path} is damaged, or in use by another query: {why}; restore a copy of "
        "it, or start with a new one (tidings run --fresh): deliveries that a store already has "
        "are not repeated"
    )


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (RuntimeError(STATE.format(why=SUM)), lost(SUM)),
        (
            RuntimeError(STATE.format(why="Unexpected end of ZLIB input stream") + PLAN),
            lost("Unexpected end of ZLIB input stream"),
        ),
        (
            RuntimeError(FAILED.format(why="batch 1 doesn't exist SQLSTATE: XXKST") + PLAN),
            lost("batch 1 doesn't exist"),
        ),
        (
            RuntimeError(
                FAILED.format(why="[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update.") + PLAN
            ),
            lost("Concurrent update"),
        ),
        (
            RuntimeError(
                "An error occurred while calling o1.start.\n"
                ": com.fasterxml.jackson.core.io.JsonEOFException: Unexpected end-of-input: quote"
            ),
            lost("Unexpected end-of-input: quote", path=""),
        ),
        (
            RuntimeError(
                FULL
                + "tidings.index_files.mapped_file.DiskFull: /data/index has no space left\n at x"
            ),
            "/data/index has no space left",
        ),
        (StoreError("the disk is full"), "the disk is full"),
        (
            RuntimeError(READING.format(code="NO_HINT", why="")),
            f"{FILE} cannot be read: not a Parquet file. Expected magic number at tail{REMEDY}",
        ),
        (
            RuntimeError(READING.format(code="MISMATCH", why="Data type mismatches in [n].")),
            f"{FILE} cannot be read: Data type mismatches in [n]{REMEDY}",
        ),
        (
            RuntimeError(
                "[STREAM_FAILED] ...\n  tidings.errors.StoreError: the disk is full\nat x"
            ),
            "the disk is full",
        ),
        (RuntimeError("Traceback:\nKeyError: 'x'\nValueError: two\n at y"), "ValueError: two"),
        (
            RuntimeError("\n\n[PARSE_SYNTAX_ERROR] Syntax error at '('.\nmore"),
            "Syntax error at '('.",
        ),
        (RuntimeError(), "RuntimeError()"),
    ],
)
def test_the_line_with_the_cause_is_found(error, sentence):
    assert describe_error(error) == sentence


def test_a_full_folder_is_named(tmp_path, monkeypatch):
    """It is the checkpoint, or another folder in the error, which need not exist yet."""
    (tmp_path / "small").mkdir()
    monkeypatch.setattr(
        shutil,
        "disk_usage",
        lambda place: SimpleNamespace(free=100 if place.name == "small" else 1 << 30),
    )
    rest = " has no space left: No space left on device; free some space and run again to resume"
    checkpoint = PLAN.replace("/data/check", f"{tmp_path}/small/check")
    for text in (checkpoint, f"while writing rows to file:{tmp_path}/small/out/a.parquet.\n"):
        assert describe_error(RuntimeError(FULL + text)).startswith(f"{tmp_path}/small{rest}")
    elsewhere = "a folder of Spark (the checkpoint, spark.local.dir, a sink)"
    assert describe_error(RuntimeError(FULL + PLAN)).startswith(f"{elsewhere}{rest}")


def test_a_full_sink_is_named(tmp_path, monkeypatch):
    sink = tmp_path / "sink"
    with pytest.raises(PySparkException, match="No space"), writing_to(sink):
        raise PySparkException(FULL)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(SparkError, match=rf"^{sink} has no space left: No sp"), writing_to(sink):
        raise PySparkException(FULL)
    with pytest.raises(PySparkException, match="other"), writing_to(sink):
        raise PySparkException("other")


def test_spark_errors_are_raised_in_one_sentence():
    with pytest.raises(SparkError, match=r"^Syntax error$"), reporting_errors():
        raise PySparkException("[PARSE_SYNTAX_ERROR] Syntax error\nmore")
    with pytest.raises(ValueError, match="ours"), reporting_errors():
        raise ValueError("ours")


@pytest.mark.parametrize("text", ["", "\n \n", "[INTERNAL_ERROR] ", "SQLSTATE: XXKST"])
def test_a_description_is_never_empty(text):
    assert describe_error(RuntimeError(text)).strip()
