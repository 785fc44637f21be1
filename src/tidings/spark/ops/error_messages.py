"""Errors of Spark in one sentence, taken from the many lines that Spark puts around it."""

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from tidings.errors import TidingsError

SPARK_ERRORS: Final = (PySparkException, Py4JError)
"""Errors that Spark raises in Python: its own, and those straight from Java."""
_FILE: Final = re.compile(r"while reading file (?P<file>\S+?)\.\s+(?P<why>.*?)\s*SQLSTATE")
_CAUSE: Final = re.compile(r"^(?:Caused by)?: [\w.$]+: (?P<why>.*)$", re.MULTILINE)
_RAISED: Final = re.compile(r"tidings[\w.]+: |[\w.]+(?:Error|Exception): ")
_OURS: Final = re.compile(r"^tidings[\w.]+: ")
_CODE: Final = re.compile(r"^(?:[\w.$]+: )?\[[A-Z_.]+\] ")
_QUERY: Final = re.compile(r"^Query \[[^\]]*\] terminated with exception: ")
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+\s*$")
_NO_SPACE: Final = re.compile(r"No space left on device|Disk quota exceeded|File too large")
_FULL_BELOW: Final = 16 << 20
"""A folder with less free space, in bytes, counts as full."""
_LOST: Final = re.compile(
    r"CANNOT_LOAD_STATE_STORE|STDS_FAILED_TO_READ|_stateSchema|Checksum error: |CONCURRENT_STREAM"
    r"|block checksum mismatch|Incomplete log|is in an inconsistent state|batch \d+ doesn't exist"
    r"|Unexpected (?:end-of-input|character)"
)
"""Messages of Spark and RocksDB about a checkpoint with damaged or missing files."""
_CHECKPOINT: Final = re.compile(
    r"checkpointLocation=(?:file:)?(?P<named>[^\],]+)\]"
    r"|file:(?P<whole>/\S+?)/(?:state|offsets|commits|sources|metadata)\b"
)

_PATH: Final = re.compile(r"file:(/[^\s,:\]]+)")


class SparkError(TidingsError):
    """An operation of Spark that failed, with the reason in one sentence."""


@contextmanager
def reporting_errors() -> Iterator[None]:
    """Turn errors of Spark into a `SparkError` with one sentence."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise SparkError(describe_error(error)) from error


@contextmanager
def writing_to(place: Path) -> Iterator[None]:
    """Name the folder in the error if Spark fails because it is full; its own errors do not."""
    try:
        yield
    except SPARK_ERRORS as error:
        match = _NO_SPACE.search(str(error))
        if match is None or not _is_full(_existing_parent(place)):
            raise
        raise SparkError(_no_space(str(place), match[0])) from error


def describe_error(error: BaseException) -> str:
    """Return the cause of an error of Spark, or of code that Spark called, in one sentence.

    It names a file that cannot be read, a damaged checkpoint or a full folder, with the reason and
    the way out. It is never empty.
    """
    if isinstance(error, TidingsError):
        return str(error)
    return _sentence(error).strip() or f"{type(error).__name__} without a reason"


def _sentence(error: BaseException) -> str:
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [repr(error)]
    raised = [line for line in lines if _RAISED.match(line)]
    if ours := [line for line in raised if _OURS.match(line)]:
        return _OURS.sub("", ours[-1])
    if match := _FILE.search(text):
        return _unreadable(match["file"], match["why"] or _root_cause(text))
    if _NO_SPACE.search(text):
        return _full_folders(text)
    if _LOST.search(text):
        return _damaged(text, raised[-1] if raised else _plain(lines[0]))
    return raised[-1] if raised else _plain(lines[0])


def _plain(line: str) -> str:
    """Strip the codes of Spark and the run of the query from a line."""
    return _STATE.sub("", _CODE.sub("", _QUERY.sub("", _CODE.sub("", line))))


def _root_cause(text: str) -> str:
    """Return the innermost cause."""
    causes = _CAUSE.findall(text)
    return causes[-1] if causes else "Spark gives no reason"


def _unreadable(uri: str, why: str) -> str:
    path = unquote(urlsplit(uri).path) or uri
    return (
        f"{path} cannot be read: {why.rstrip('.')}; repair it and run again, or "
        'turn it into a dead letter with unreadable = "dead-letter" in [source]'
    )


def _damaged(text: str, line: str) -> str:
    causes = _CAUSE.findall(text)
    why = _plain(causes[-1] if causes else line).rstrip(". ")
    path = _checkpoint(text)
    return (
        f"the checkpoint{f' {path}' if path else ''} is damaged, or in use by another query: "
        f"{why}; restore a copy of it, or start with a new one (tidings run --fresh): "
        "deliveries that a store already has are not repeated"
    )


def _checkpoint(text: str) -> str | None:
    """Return the checkpoint of a failed query if the error names it."""
    match = _CHECKPOINT.search(text)
    return match and (match["named"] or match["whole"])


def _full_folders(text: str) -> str:
    full = [str(folder) for folder in _folders(text) if _is_full(folder)]
    folders = " and ".join(full) or "a folder of Spark (the checkpoint, spark.local.dir, a sink)"
    return _no_space(folders, _NO_SPACE.findall(text)[0])


def _no_space(folders: str, why: str) -> str:
    return f"{folders} has no space left: {why}; free some space and run again to resume"


def _folders(text: str) -> Iterable[Path]:
    """Return the local folders to which a query writes, as far as its error names them."""
    running = SparkContext._active_spark_context  # noqa: SLF001
    local = running.getConf().get("spark.local.dir") if running else None
    named = [_checkpoint(text) or "", *(local or tempfile.gettempdir()).split(",")]
    paths = [Path(path) for path in (*named, *_PATH.findall(text)) if path]
    return dict.fromkeys(_existing_parent(path) for path in paths)


def _existing_parent(path: Path) -> Path:
    """Return the folder itself, or its nearest parent that exists."""
    return path if path.is_dir() or path == path.parent else _existing_parent(path.parent)


def _is_full(folder: Path) -> bool:
    return shutil.disk_usage(folder).free < _FULL_BELOW
