"""Files of events, subscriptions, subscribers and deliveries; the suffix determines the format.

JSON and JSON Lines hold JSON forms, or flat objects if a layout names their fields; CSV (or .tsv,
since the header shows the separator), Parquet and Arrow (Feather) hold columns. Text may be
compressed with gzip (.jsonl.gz, .csv.gz).

A record that cannot be read becomes a BadRecord; only a file that cannot be read at all is an
error. Files are not trusted: columns are validated in full before they are decoded, the decoded
size of a file is bounded by its size, and no line is read that is longer than a record may be.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from itertools import chain
from os import PathLike
from os.path import realpath
from pathlib import Path
from typing import Any, BinaryIO, Final, Generic, Protocol, TypeVar

import pyarrow as pa
from pyarrow import feather, parquet

from tidings.errors import InvalidForm
from tidings.formats import arrow, csv_file
from tidings.formats.arrow_by_row import AS_READ, Cells
from tidings.formats.columnar_files import ColumnarFile, open_arrow, open_parquet
from tidings.formats.gzip_file import SUFFIX as GZIP
from tidings.formats.gzip_file import open_text
from tidings.formats.json_forms import loads_event, loads_subscriber, loads_subscription, ordinary
from tidings.formats.json_text import Line, array_texts, read_json, read_lines
from tidings.formats.layout import AS_IT_IS, FileLayout, Layout, flat_fields
from tidings.model import validate as checks
from tidings.model.dead_letter import BadRecord, attempt
from tidings.model.limits import TRUSTED, Limits, check_limits
from tidings.model.records import Delivery, Event, Subscription
from tidings.policy import Subscriber

PathName = str | PathLike[str]
Form = dict[str, Any]


class Record(Protocol):
    """An object with a JSON form."""

    def to_dict(self) -> Form: ...


# The errors of third-party readers, which do not name the file.
_FOREIGN: Final = (
    ArithmeticError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    pa.ArrowException,
)
_BEGINNING: Final = 200

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class _Kind(Generic[T_co]):
    """The readers of one kind of record: from a form, from a table, and from cells of CSV."""

    loads: Callable[[Form, Limits], T_co]
    from_table: Callable[[pa.Table, Cells, Limits], Iterator[T_co | BadRecord]]
    cell_readers: csv_file.CellReaders
    file: FileLayout | None = None

    def load(self, record: Any, position: int, limits: Limits) -> T_co:
        """Read a JSON value of a file, by the layout of the file if it has one."""
        if self.file is not None and not self.file.layout.is_plain:
            record = self.file.form(record, position, limits)
        return self.loads(ordinary(record), limits)

    def read_table(
        self, table: pa.Table, rows: Iterable[int], limits: Limits
    ) -> Iterator[T_co | BadRecord]:
        """Read the rows of a table, whose numbers in the file are given."""
        if self.file is None:
            return self.from_table(table, AS_READ, limits)
        return self.from_table(self.file.table(table, rows), self.file.layout.cells(), limits)


def read_events(
    path: PathName,
    suffix: str | None = None,
    *,
    limits: Limits = TRUSTED,
    layout: Layout = AS_IT_IS,
) -> Iterator[Event | BadRecord]:
    """Yield the events and bad records of a file; `suffix` may name another format.

    With a `layout`, records are flat: the layout says which fields are id and time.
    """
    return _read(path, _EVENTS, limits, suffix, layout)


def read_rows(
    path: PathName, suffix: str | None = None, *, limits: Limits = TRUSTED
) -> Iterator[Form | BadRecord]:
    """Yield the rows of a file of any columns, without their missing cells."""
    return _read(path, _ROWS, limits, suffix)


def read_event_line(
    line: str | bytes, position: int, *, limits: Limits = TRUSTED
) -> Event | BadRecord:
    """Return the event of one line of JSON Lines, or a bad record."""
    return _from_text(line, position, _EVENTS, limits)


def write_events(events: Iterable[Event], path: PathName) -> None:
    """Write events to a file."""
    _write(events, path, arrow.events_to_table)


def read_subscriptions(
    path: PathName, *, limits: Limits = TRUSTED
) -> Iterator[Subscription | BadRecord]:
    """Yield the subscriptions and bad records of a file."""
    return _read(path, _SUBSCRIPTIONS, limits)


def read_subscription_line(
    line: str | bytes, position: int, *, limits: Limits = TRUSTED
) -> Subscription | BadRecord:
    """Return the subscription of one line of JSON Lines, or a bad record."""
    return _from_text(line, position, _SUBSCRIPTIONS, limits)


def write_subscriptions(subscriptions: Iterable[Subscription], path: PathName) -> None:
    """Write subscriptions to a file."""
    _write(subscriptions, path, arrow.subscriptions_to_table)


def read_subscribers(
    path: PathName, *, limits: Limits = TRUSTED
) -> Iterator[Subscriber | BadRecord]:
    """Yield the subscribers and bad records of a file."""
    return _read(path, _SUBSCRIBERS, limits)


def write_subscribers(subscribers: Iterable[Subscriber], path: PathName) -> None:
    """Write subscribers to a file; in columnar formats, policies are JSON text."""
    _write(subscribers, path, lambda items: arrow.subscribers_to_table(map(_form, items)))


def write_deliveries(deliveries: Iterable[Delivery], path: PathName) -> None:
    """Write deliveries to a file; in columnar formats, windows are JSON text."""
    _write(deliveries, path, arrow.deliveries_to_table)


def _read(
    path: PathName,
    kind: _Kind[T],
    limits: Limits,
    suffix: str | None = None,
    layout: Layout | None = None,
) -> Iterator[T | BadRecord]:
    """Open a file and yield its records; errors of the whole file are raised at once."""
    check_limits(limits, InvalidForm)
    read = _READERS[suffix] if suffix else _by_suffix(_READERS, path)
    try:
        # `Path.resolve` reports a loop of links by a RuntimeError, `realpath` by an OSError.
        file = checks.regular_file(Path(realpath(path, strict=True)))
        if layout is not None:
            kind = replace(kind, file=FileLayout(layout, file))
        records = read(file, kind, limits)
    except _FOREIGN as error:
        raise InvalidForm(f"{path}: {_reason(error)}") from None
    return _naming_the_file(path, records)


def _naming_the_file(path: PathName, records: Iterator[T]) -> Iterator[T]:
    """Yield records; turn an error of the reader between them into one that names the file."""
    while True:
        try:
            record = next(records, None)
        except _FOREIGN as error:
            raise InvalidForm(f"{path}: {_reason(error)}") from None
        if record is None:
            return
        yield record


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"the file cannot be read: {error.strerror}"
    if isinstance(error, MemoryError):
        return "the file claims more than fits into memory"
    if isinstance(error, RecursionError):
        return "its values nest too deeply"
    return str(error) or type(error).__name__


def _write(items: Iterable[R], path: PathName, to_table: Callable[[Iterable[R]], pa.Table]) -> None:
    write = _by_suffix(_WRITERS, path)
    if write in (write_lines, _write_array):
        write(map(_form, items), Path(path))
    else:
        write(to_table(items), Path(path))


def _form(item: Record) -> Form:
    return item.to_dict()


def suffix_of(path: PathName) -> str:
    """Return the suffix that determines the format of a file.

    >>> suffix_of("Events.CSV"), suffix_of("events.2026.jsonl.gz")
    ('.csv', '.jsonl.gz')
    """
    suffixes = Path(path).suffixes
    zipped = bool(suffixes) and suffixes[-1].lower() == GZIP
    return "".join(suffixes[-2 if zipped else -1 :]).lower()


def _by_suffix(formats: Mapping[str, T], path: PathName) -> T:
    by_suffix = formats.get(suffix_of(path))
    if by_suffix is None:
        raise InvalidForm(f"{path}: the suffix of a file is one of {', '.join(formats)}")
    return by_suffix


def _read_lines(path: Path, kind: _Kind[T], limits: Limits) -> Iterator[T | BadRecord]:
    return _from_lines(open_text(path), kind, limits)


def _from_lines(file: BinaryIO, kind: _Kind[T], limits: Limits) -> Iterator[T | BadRecord]:
    with file:
        for line in read_lines(file, limits.record_bytes):
            yield _from_line(line, kind, limits)


def _from_line(line: Line, kind: _Kind[T], limits: Limits) -> T | BadRecord:
    """Return the record of a line, or a bad record."""
    if line.whole:
        return _from_text(line.text, line.position, kind, limits)
    return _too_long(line.text, line.position, limits)


def _too_long(text: str | bytes, position: int, limits: Limits) -> BadRecord:
    beginning = text[:_BEGINNING]
    if isinstance(beginning, bytes):
        beginning = beginning.decode(errors="replace")
    reason = f"the record is longer than the limit record_bytes = {limits.record_bytes:,}"
    return BadRecord({"beginning": beginning}, reason, position)


def _from_text(line: str | bytes, position: int, kind: _Kind[T], limits: Limits) -> T | BadRecord:
    if (
        len(line) > check_limits(limits, InvalidForm).record_bytes + 2
    ):  # the end of a line does not count
        return _too_long(line, position, limits)
    form = attempt(read_json, line, position, _text)
    if isinstance(form, BadRecord):
        return form
    return attempt(lambda raw: kind.load(raw, position, limits), form, position, _shown_form)


def _text(line: str | bytes) -> Form:
    return {"text": line if isinstance(line, str) else line.decode(errors="replace")}


def _shown_form(refused: Any) -> Form:
    return refused if isinstance(refused, dict) else {"value": refused}


def _read_array(path: Path, kind: _Kind[T], limits: Limits) -> Iterator[T | BadRecord]:
    with open_text(path) as file:
        content = file.read()
    if _is_json_lines(content):
        return _from_lines(BytesIO(content), kind, limits)
    texts = array_texts(content)
    if texts is None:
        raise InvalidForm(
            "the file is not a JSON array of records, nor does it hold one record per line"
            + _hint_of_records(path, content)
        )
    return (_from_text(text, position, kind, limits) for position, text in enumerate(texts, 1))


def _hint_of_records(path: Path, content: bytes) -> str:
    """Return how to get at the records in a field of one object, or nothing."""
    try:
        fields = read_json(content)
    except InvalidForm:
        return ""
    for name, value in fields.items() if isinstance(fields, dict) else ():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            key = json.dumps(name, ensure_ascii=False)
            return f"; its field {name} is one: jq -c '.[{key}][]' {path.name} > {path.stem}.jsonl"
    return ""


def _is_json_lines(content: bytes) -> bool:
    """Return whether a file that is called .json holds an object in its first line, and more."""
    first, _, rest = content.strip().partition(b"\n")
    if not rest or first.lstrip(b"\xef\xbb\xbf")[:1] != b"{":
        return False
    try:
        return isinstance(read_json(first), dict)
    except InvalidForm:
        return False


def _read_csv(path: Path, kind: _Kind[T], limits: Limits) -> Iterator[T | BadRecord]:
    def read(table: pa.Table, cells: Cells) -> Iterator[T | BadRecord]:
        return kind.from_table(table, cells, limits)

    return csv_file.read_csv(path, kind.cell_readers, read, limits.record_bytes, kind.file)


def _read_parquet(path: Path, kind: _Kind[T], limits: Limits) -> Iterator[T | BadRecord]:
    return _from_columns(open_parquet(path, limits), kind, limits)


def _read_arrow(path: Path, kind: _Kind[T], limits: Limits) -> Iterator[T | BadRecord]:
    return _from_columns(open_arrow(path), kind, limits)


def _from_columns(file: ColumnarFile, kind: _Kind[T], limits: Limits) -> Iterator[T | BadRecord]:
    """Yield the rows of a file; its schema and its first batch are checked at once."""
    csv_file.check_width(len(file.schema))
    kind.read_table(file.schema.empty_table(), (), limits)
    batches = file.batches()
    first = next(batches, None)
    if first is None:
        return iter(())
    return _from_batches(chain([first], batches), kind, limits)


def _from_batches(
    batches: Iterable[pa.RecordBatch], kind: _Kind[T], limits: Limits
) -> Iterator[T | BadRecord]:
    rows_before = 0
    for batch in batches:
        numbers = range(rows_before + 1, rows_before + batch.num_rows + 1)
        for record in kind.read_table(pa.Table.from_batches([batch]), numbers, limits):
            if isinstance(record, BadRecord):
                yield replace(record, position=record.position + rows_before)
            else:
                yield record
        rows_before += batch.num_rows


def write_lines(forms: Iterable[Form], path: Path) -> None:
    """Write JSON forms of any kind as JSON Lines."""
    # A lone surrogate, such as in the id of a bad record, is written as a JSON escape.
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as lines:
        lines.writelines(json.dumps(form, ensure_ascii=False) + "\n" for form in forms)


def _write_array(forms: Iterable[Form], path: Path) -> None:
    text = json.dumps(list(forms), ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")


_EVENTS: Final = _Kind(
    loads_event,
    lambda table, cells, limits: arrow.read_events(table, cells, limits=limits),
    {"id": str, "published_at": csv_file.number, "sequence": csv_file.number, "content": str},
)
_ROWS: Final = _Kind(
    flat_fields,
    lambda table, cells, limits: arrow.read_plain_rows(table, cells, limits=limits),
    {},
)
_SUBSCRIPTIONS: Final = _Kind(
    loads_subscription,
    lambda table, cells, limits: arrow.read_subscriptions(table, cells, limits=limits),
    dict.fromkeys(("id", "subscriber", "where"), str)
    | dict.fromkeys(("prefrank", "score"), csv_file.number)
    | {"any": csv_file.array},
)
_SUBSCRIBERS: Final = _Kind(
    loads_subscriber,
    lambda table, cells, limits: arrow.read_subscribers(
        table, partial(loads_subscriber, limits=limits), cells, limits=limits
    ),
    {"id": str, "policy": str, "prefers": csv_file.array, "paused": csv_file.boolean},
)
_READERS: Final[dict[str, Callable[[Path, _Kind[Any], Limits], Iterator[Any]]]] = {
    ".jsonl": _read_lines,
    ".ndjson": _read_lines,
    ".json": _read_array,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
    ".jsonl.gz": _read_lines,
    ".ndjson.gz": _read_lines,
    ".json.gz": _read_array,
    ".csv.gz": _read_csv,
    ".tsv.gz": _read_csv,
}
_WRITERS: Final[dict[str, Callable[[Any, Path], None]]] = {
    ".jsonl": write_lines,
    ".ndjson": write_lines,
    ".json": _write_array,
    ".csv": csv_file.write_csv,
    ".parquet": parquet.write_table,
    ".arrow": feather.write_feather,
    ".feather": feather.write_feather,
}
SUFFIXES: Final = tuple(_READERS)
