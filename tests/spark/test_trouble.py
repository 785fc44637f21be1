"""What stopped a query, in a sentence."""

import pytest

from tidings.errors import StoreError
from tidings.spark.trouble import said

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
    "; put it right in its place and run again, or make it a dead letter with unreadable = "
    '"dead-letter" in [source]'
)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
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
def test_the_line_that_says_it_is_found(error, sentence):
    assert said(error) == sentence
