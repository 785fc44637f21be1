"""What stopped a query, in a sentence: Spark puts many lines around the one that says it."""

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

TROUBLES: Final = (PySparkException, Py4JError)
"""What Spark raises in Python, named by Spark or as it came out of Java."""
_FILE: Final = re.compile(r"while reading file (?P<file>\S+?)\.\s+(?P<why>.*?)\s*SQLSTATE")
_CAUSE: Final = re.compile(r"^(?:Caused by)?: [\w.$]+: (?P<why>.*)$", re.MULTILINE)
_RAISED: Final = re.compile(r"[\w.]+(Error|Exception|Invalid\w+|Gone|Damaged|NoRoom|Trouble): ")
_OURS: Final = re.compile(r"^tidings[\w.]+: ")
_CODE: Final = re.compile(r"^(?:[\w.$]+: )?\[[A-Z_.]+\] ")
_QUERY: Final = re.compile(r"^Query \[[^\]]*\] terminated with exception: ")
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+\s*$")
_NO_ROOM: Final = re.compile(r"No space left on device|Disk quota exceeded|File too large")
_ROOM: Final = 16 << 20
"""A folder with fewer bytes than that is full."""
_LOST: Final = re.compile(
    r"CANNOT_LOAD_STATE_STORE|STDS_FAILED_TO_READ|_stateSchema|Checksum error: |CONCURRENT_STREAM"
    r"|block checksum mismatch|Incomplete log|is in an inconsistent state|batch \d+ doesn't exist"
    r"|Unexpected (?:end-of-input|character)"
)
"""How Spark and RocksDB tell of a checkpoint in which something is damaged or missing."""
_CHECKPOINT: Final = re.compile(
    r"checkpointLocation=(?:file:)?(?P<named>[^\],]+)\]"
    r"|file:(?P<whole>/\S+?)/(?:state|offsets|commits|sources|metadata)\b"
)

_PATH: Final = re.compile(r"file:(/[^\s,:\]]+)")


class SparkTrouble(TidingsError):
    """What Spark could not do, in words."""


@contextmanager
def told() -> Iterator[None]:
    """Let Spark do something; what stops it is said in a sentence."""
    try:
        yield
    except TROUBLES as error:
        raise SparkTrouble(said(error)) from error


@contextmanager
def writing_to(place: Path) -> Iterator[None]:
    """Let Spark write to a folder that its errors do not name; if that is full, say so."""
    try:
        yield
    except TROUBLES as error:
        found = _NO_ROOM.search(str(error))
        if found is None or not _is_full(_there(place)):
            raise
        raise SparkTrouble(_without_room(str(place), found[0])) from error


def said(error: BaseException) -> str:
    """Tell what an error of Spark, or of what Spark called, comes down to.

    A file that cannot be read is named, and so is a checkpoint that is damaged or a folder that is
    full; with the reason and what can be done.
    """
    if isinstance(error, TidingsError):
        return str(error)
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [repr(error)]
    raised = [line for line in lines if _RAISED.match(line)]
    if ours := [line for line in raised if _OURS.match(line)]:
        return _OURS.sub("", ours[-1])
    if found := _FILE.search(text):
        return _unreadable(found["file"], found["why"] or _root(text))
    if _NO_ROOM.search(text):
        return _no_room(text)
    if _LOST.search(text):
        return _damaged(text, raised[-1] if raised else _plain(lines[0]))
    return raised[-1] if raised else _plain(lines[0])


def _plain(line: str) -> str:
    """Leave out the codes of Spark, and which run of which query it was."""
    return _STATE.sub("", _CODE.sub("", _QUERY.sub("", _CODE.sub("", line))))


def _root(text: str) -> str:
    """Give the innermost cause."""
    found = _CAUSE.findall(text)
    return found[-1] if found else "Spark says no more"


def _unreadable(uri: str, why: str) -> str:
    path = unquote(urlsplit(uri).path) or uri
    return (
        f"{path} cannot be read: {why.rstrip('.')}; put it right in its place and run again, or "
        'make it a dead letter with unreadable = "dead-letter" in [source]'
    )


def _damaged(text: str, line: str) -> str:
    causes = _CAUSE.findall(text)
    why = _plain(causes[-1] if causes else line).rstrip(". ")
    where = _checkpoint(text)
    return (
        f"the checkpoint{f' {where}' if where else ''} is damaged, or in use by another query: "
        f"{why}; put a copy of it in its place, or begin with a new one (tidings run --fresh): "
        "what a store has of the stream is not delivered again"
    )


def _checkpoint(text: str) -> str | None:
    """Give the checkpoint of a query that failed, where the error names it."""
    found = _CHECKPOINT.search(text)
    return found and (found["named"] or found["whole"])


def _no_room(text: str) -> str:
    full = [str(place) for place in _places(text) if _is_full(place)]
    where = " and ".join(full) or "a folder of Spark (the checkpoint, spark.local.dir, a sink)"
    return _without_room(where, _NO_ROOM.findall(text)[0])


def _without_room(where: str, why: str) -> str:
    return (
        f"{where} has no space left: {why}; free some space and run again: it goes on where it was"
    )


def _places(text: str) -> Iterable[Path]:
    """Give the folders to which a query writes on this machine, as far as its error tells them."""
    running = SparkContext._active_spark_context  # noqa: SLF001
    local = running.getConf().get("spark.local.dir") if running else None
    named = [_checkpoint(text) or "", *(local or tempfile.gettempdir()).split(",")]
    found = [Path(each) for each in (*named, *_PATH.findall(text)) if each]
    return dict.fromkeys(_there(each) for each in found)


def _there(path: Path) -> Path:
    """Give the folder in which something is, or was to be."""
    return path if path.is_dir() or path == path.parent else _there(path.parent)


def _is_full(place: Path) -> bool:
    return shutil.disk_usage(place).free < _ROOM
