"""Which kind of records a file holds, told by the fields or columns that they have."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import feather, parquet

from tidings.errors import InvalidForm
from tidings.formats.files import SUFFIXES
from tidings.model import validate

# In this order: an event may well have an attribute `policy`, as a column.
MARKS: Final = {
    "events": {"attributes", "published_at"},
    "subscriptions": {"subscriber", "where", "any"},
    "subscribers": {"policy", "prefers", "id"},
}
_LOOKED_AT: Final = 100
_FOREIGN: Final = (
    ValueError,
    RecursionError,
    OSError,
    LookupError,
    MemoryError,
    csv.Error,
    pa.ArrowException,
)


def kind_of(path: Path) -> str:
    """Tell whether a file holds events, subscriptions or subscribers, by its first records."""
    peek = _PEEKS.get(path.suffix.lower())
    if peek is None:
        raise InvalidForm(f"the suffix of a file is one of .toml, {', '.join(SUFFIXES)}")
    try:
        names = set(peek(validate.regular_file(path)))
    except _FOREIGN as error:
        raise InvalidForm(str(error) or type(error).__name__) from None
    for kind, marks in MARKS.items():
        if names & marks:
            return kind
    raise InvalidForm(
        "this holds neither events (with attributes or a column published_at), nor subscriptions "
        "(with a subscriber), nor subscribers (with a policy or prefers)"
    )


def _lines(path: Path) -> list[str]:
    with path.open("rb") as lines:
        return _names(form for line in islice(lines, _LOOKED_AT) for form in _parsed(line))


def _parsed(line: bytes) -> Iterator[Any]:
    try:
        yield json.loads(line)
    except (ValueError, RecursionError):
        return


def _array(path: Path) -> list[str]:
    forms = json.loads(path.read_bytes())
    return _names(forms if isinstance(forms, list) else ())


def _names(forms: Iterable[Any]) -> list[str]:
    return [name for form in forms if isinstance(form, dict) for name in form]


def _header(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="") as lines:
        return next(csv.reader(lines), [])


def _parquet(path: Path) -> list[str]:
    return list(parquet.read_schema(path).names)


def _arrow(path: Path) -> list[str]:
    return list(feather.read_table(path).column_names)


_PEEKS: Final[dict[str, Callable[[Path], list[str]]]] = {
    ".jsonl": _lines,
    ".ndjson": _lines,
    ".json": _array,
    ".csv": _header,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
}
