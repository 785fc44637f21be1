"""Files of events, subscriptions, subscribers and deliveries, in the format that the suffix names.

JSON and JSON Lines hold the forms; CSV, Parquet and Arrow (Feather) hold the columns. A record
that cannot be read comes out as a BadRecord; only a file that cannot be read at all is an error.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

import pyarrow as pa
from pyarrow import feather, parquet

from tidings import columns, csvfile
from tidings.errors import InvalidForm
from tidings.forms import loads_event, loads_subscriber, loads_subscription
from tidings.model import Delivery, Event, Subscription
from tidings.policy import Subscriber
from tidings.rows import BadRecord, Cell, as_read, attempt

PathName = str | PathLike[str]
Form = dict[str, Any]


class Record(Protocol):
    """Anything with a form."""

    def to_dict(self) -> Form: ...


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class _Kind(Generic[T_co]):
    """How a kind of record is read: from a form, from a table, and from known cells of CSV."""

    loads: Callable[[Form], T_co]
    from_table: Callable[[pa.Table, Cell], Iterator[T_co | BadRecord]]
    known: csvfile.Known


def read_events(path: PathName, suffix: str | None = None) -> Iterator[Event | BadRecord]:
    """Read the events of a file, and its bad records; `suffix` may name another format."""
    return _read(path, _EVENTS, suffix)


def read_event_line(line: str, position: int) -> Event | BadRecord:
    """Read the event of one line of JSON Lines, or the line and why it is refused."""
    return _from_line(line.encode(), position, _EVENTS)


def write_events(events: Iterable[Event], path: PathName) -> None:
    """Write events to a file."""
    _write(events, path, columns.events_to_table)


def read_subscriptions(path: PathName) -> Iterator[Subscription | BadRecord]:
    """Read the subscriptions of a file, and its bad records."""
    return _read(path, _SUBSCRIPTIONS)


def read_subscription_line(line: str, position: int) -> Subscription | BadRecord:
    """Read the subscription of one line of JSON Lines, or the line and why it is refused."""
    return _from_line(line.encode(), position, _SUBSCRIPTIONS)


def write_subscriptions(subscriptions: Iterable[Subscription], path: PathName) -> None:
    """Write subscriptions to a file."""
    _write(subscriptions, path, columns.subscriptions_to_table)


def read_subscribers(path: PathName) -> Iterator[Subscriber | BadRecord]:
    """Read the subscribers of a file, and its bad records."""
    return _read(path, _SUBSCRIBERS)


def write_subscribers(subscribers: Iterable[Subscriber], path: PathName) -> None:
    """Write subscribers to a file; among columns, the policy is one of JSON text."""
    _write(subscribers, path, lambda each: columns.subscribers_to_table(map(_form, each)))


def write_deliveries(deliveries: Iterable[Delivery], path: PathName) -> None:
    """Write deliveries to a file; among columns, the window is one of JSON text."""
    _write(deliveries, path, columns.deliveries_to_table)


def _read(path: PathName, kind: _Kind[T], suffix: str | None = None) -> Iterator[T | BadRecord]:
    """Read a file; what concerns all of it is refused at once."""
    read = _READERS[suffix] if suffix else _by_suffix(_READERS, path)
    try:
        return read(Path(path).resolve(strict=True), kind)
    except (ValueError, RecursionError, pa.ArrowException) as error:
        raise InvalidForm(f"{path}: {error}") from None


def _write(items: Iterable[R], path: PathName, to_table: Callable[[Iterable[R]], pa.Table]) -> None:
    write = _by_suffix(_WRITERS, path)
    if write in (write_lines, _write_array):
        write(map(_form, items), Path(path))
    else:
        write(to_table(items), Path(path))


def _form(item: Record) -> Form:
    return item.to_dict()


def _by_suffix(formats: Mapping[str, T], path: PathName) -> T:
    found = formats.get(Path(path).suffix.lower())
    if found is None:
        raise InvalidForm(f"{path}: the suffix of a file is one of {', '.join(formats)}")
    return found


def _read_lines(path: Path, kind: _Kind[T]) -> Iterator[T | BadRecord]:
    with path.open("rb") as lines:
        for position, line in enumerate(lines, 1):
            if line.strip():
                yield _from_line(line, position, kind)


def _from_line(line: bytes, position: int, kind: _Kind[T]) -> T | BadRecord:
    form = attempt(json.loads, line, position, _text)
    return form if isinstance(form, BadRecord) else _from_form(form, position, kind)


def _text(line: bytes) -> Form:
    return {"text": line.decode(errors="replace")}


def _from_form(form: Any, position: int, kind: _Kind[T]) -> T | BadRecord:
    return attempt(kind.loads, form, position, lambda f: f if isinstance(f, dict) else {"value": f})


def _read_array(path: Path, kind: _Kind[T]) -> Iterator[T | BadRecord]:
    forms = json.loads(path.read_bytes())
    if not isinstance(forms, list):
        raise InvalidForm("the file holds no JSON array; JSON Lines have the suffix .jsonl")
    return (_from_form(form, position, kind) for position, form in enumerate(forms, 1))


def _read_csv(path: Path, kind: _Kind[T]) -> Iterator[T | BadRecord]:
    return csvfile.read_csv(path, kind.known, kind.from_table)


def _read_parquet(path: Path, kind: _Kind[T]) -> Iterator[T | BadRecord]:
    """Read a Parquet file, or a directory of them, whose partitions are columns too."""
    partitioning = "hive" if path.is_dir() else None
    return kind.from_table(parquet.read_table(path, partitioning=partitioning), as_read)


def _read_arrow(path: Path, kind: _Kind[T]) -> Iterator[T | BadRecord]:
    return kind.from_table(feather.read_table(path), as_read)


def write_lines(forms: Iterable[Form], path: Path) -> None:
    """Write forms of whatever kind as JSON Lines."""
    with path.open("w", encoding="utf-8", newline="\n") as lines:
        lines.writelines(json.dumps(form, ensure_ascii=False) + "\n" for form in forms)


def _write_array(forms: Iterable[Form], path: Path) -> None:
    path.write_text(json.dumps(list(forms), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


_EVENTS: Final = _Kind(
    loads_event,
    columns.read_events,
    {"id": str, "published_at": csvfile.number, "sequence": csvfile.number},
)
_SUBSCRIPTIONS: Final = _Kind(
    loads_subscription,
    columns.read_subscriptions,
    dict.fromkeys(("id", "subscriber", "where"), str)
    | dict.fromkeys(("prefrank", "score"), csvfile.number)
    | {"any": csvfile.array},
)
_SUBSCRIBERS: Final = _Kind(
    loads_subscriber,
    lambda table, cell: columns.read_subscribers(table, loads_subscriber, cell),
    {"id": str, "policy": str, "prefers": csvfile.array},
)
_READERS: Final[dict[str, Callable[[Path, _Kind[Any]], Iterator[Any]]]] = {
    ".jsonl": _read_lines,
    ".ndjson": _read_lines,
    ".json": _read_array,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
}
_WRITERS: Final[dict[str, Callable[[Any, Path], None]]] = {
    ".jsonl": write_lines,
    ".ndjson": write_lines,
    ".json": _write_array,
    ".csv": csvfile.write_csv,
    ".parquet": parquet.write_table,
    ".arrow": feather.write_feather,
    ".feather": feather.write_feather,
}
SUFFIXES: Final = tuple(_READERS)
