"""What stopped a query, in a sentence: Spark puts many lines around the one that says it."""

import re
from typing import Final
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from tidings.errors import TidingsError

TROUBLES: Final = (PySparkException, Py4JError)
"""What Spark raises in Python, named by Spark or as it came out of Java."""
_FILE: Final = re.compile(r"while reading file (?P<file>\S+?)\.\s+(?P<why>.*?)\s*SQLSTATE")
_CAUSE: Final = re.compile(r"^Caused by: [\w.$]+: (?P<why>.*)$", re.MULTILINE)
_RAISED: Final = re.compile(r"[\w.]+(Error|Exception|Invalid\w+|Gone): ")
_OURS: Final = re.compile(r"^tidings[\w.]+: ")
_CODE: Final = re.compile(r"^(?:[\w.$]+: )?\[[A-Z_.]+\] ")


def said(error: BaseException) -> str:
    """Tell what an error of Spark, or of what Spark called, comes down to.

    A file that cannot be read is named, with the reason and what can be done.
    """
    if isinstance(error, TidingsError):
        return str(error)
    text = str(error)
    if found := _FILE.search(text):
        return _unreadable(found["file"], found["why"] or _root(text))
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [repr(error)]
    raised = [line for line in lines if _RAISED.match(line)]
    return _OURS.sub("", raised[-1]) if raised else _CODE.sub("", lines[0])


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
