"""Sources of events: files that match a pattern, or any stream that Spark can read."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from glob import escape
from itertools import pairwise, takewhile
from os.path import isdir
from pathlib import Path
from typing import Final

from tidings.errors import InvalidForm
from tidings.formats.files import SUFFIXES, read_events, suffix_of
from tidings.formats.layout import AS_IT_IS, Layout
from tidings.formats.redaction import shown_safely
from tidings.model import validate
from tidings.model.dead_letter import BadRecord, attempt
from tidings.model.limits import TRUSTED, Limits
from tidings.model.records import Event

UNREADABLE: Final = ("stop", "dead-letter")
KAFKA: Final = "tidings-kafka"
TABLE: Final = "tidings-table"
KINESIS: Final = "tidings-kinesis"
NATS: Final = "tidings-nats"
MQTT: Final = "tidings-mqtt"
RSS: Final = "tidings-rss"
OUTBOX: Final = "tidings-outbox"
CHANGES: Final = "tidings-postgres"
_WILD: Final = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Source:
    """Files of one format in a folder that match a pattern of * ? [..], read in batches.

    Files are ordered by name; those whose names begin with . or _ are skipped. A Parquet file that
    Spark cannot read stops the stream, or becomes a dead letter, depending on `unreadable`; in the
    latter case, files are read one by one, each with its own schema. The attributes named in
    `content` are in the content of the events as well; the `hidden` ones are only there.
    """

    folder: Path
    pattern: str
    suffix: str
    files_per_batch: int = 1
    unreadable: str = UNREADABLE[0]
    content: tuple[str, ...] = ()
    layout: Layout = AS_IT_IS
    hidden: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """A short description."""
        number = len(self.files())
        return f"{number:,} file{'' if number == 1 else 's'} of events"

    def files(self) -> list[Path]:
        """Return the files that exist now, in order."""
        return _files(self.folder, self.pattern)

    def older_than_before(self) -> Path | None:
        """Return the first file that is older than the file before it by name, or None."""
        for before, file in pairwise(self.files()):
            if file.stat().st_mtime_ns < before.stat().st_mtime_ns:
                return file
        return None

    def read(self, path: str | Path, *, limits: Limits = TRUSTED) -> Iterator[Event | BadRecord]:
        """Yield the events of a file; if it cannot be read to its end, a bad record names it."""
        records = read_file(path, self.suffix, limits=limits, layout=self.layout)
        return showing(records, self.content, self.hidden)

    def batches(self) -> Iterator[list[Path]]:
        """Yield the files in batches."""
        files = self.files()
        for start in range(0, len(files), self.files_per_batch):
            yield files[start : start + self.files_per_batch]


@dataclass(frozen=True)
class SparkSource:
    """A Spark source: its format and options, and the SQL that turns its rows into events.

    `columns` are SQL expressions by name. The columns `keep` are kept as well, or all others that
    no expression merely renames. `select` is a whole query over the table `source`. With
    neither, the rows already are events.
    """

    format: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    schema: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    select: str | None = None
    content: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    keep: tuple[str, ...] | None = None

    @property
    def label(self) -> str:
        """A short description."""
        return f"a stream of {self.format}"


def read_file(
    path: str | Path, suffix: str, *, limits: Limits = TRUSTED, layout: Layout = AS_IT_IS
) -> Iterator[Event | BadRecord]:
    """Yield the events of a file; if it cannot be read to its end, a bad record names it."""
    try:
        yield from read_events(path, suffix, limits=limits, layout=layout)
    except InvalidForm as error:
        yield BadRecord({"file": str(path)}, str(error), 1)


def showing(
    records: Iterable[Event | BadRecord], content: Sequence[str], hidden: Collection[str] = ()
) -> Iterator[Event | BadRecord]:
    """Yield events with some of their attributes in their content as well, or `hidden` only there.

    An event whose content would be too large becomes a bad record.
    """
    for position, record in enumerate(records, start=1):
        if isinstance(record, BadRecord) or not content:
            yield record
        else:
            show = partial(Event.showing, names=content, hidden=hidden)
            yield attempt(show, record, position, Event.to_dict)


def find_source(
    base: Path,
    path: str,
    form: str | None = None,
    files_per_batch: int = 1,
    *,
    watched: bool = False,
) -> Source:
    """Return the source at `path`, relative to the folder `base`.

    Its format is `form`, or that of the suffix of its files. A folder that is `watched` may still
    be empty, if its format is known.
    """
    if form is not None:
        validate.choice("format", form, [suffix[1:] for suffix in SUFFIXES], InvalidForm)
    try:
        folder, pattern = _split(base, path)
        suffix = f".{form}" if form else _suffix(path, _files(folder, pattern))
        if pattern == "":
            pattern = f"*{suffix}"
        files = _files(folder, pattern)
        exists = bool(files) or (watched and folder.is_dir())
    except InvalidForm:
        raise
    except (OSError, ValueError, NotImplementedError):
        # A name that is too long, a folder that cannot be listed, or an invalid pattern.
        raise InvalidForm(_no_file(path, base)) from None
    if not exists:
        raise InvalidForm(_no_file(path, base))
    if not suffix:
        what = shown_safely(path)
        raise InvalidForm(f"path: the folder {what} is empty; to wait for files, set a format")
    return Source(folder, pattern, suffix, files_per_batch)


def _no_file(path: str, base: Path) -> str:
    what = shown_safely(path)
    if isdir(base / path):  # noqa: PTH112 - a name that no file can have is an error of Path
        return f"path: there is no file to read in the folder {what}"
    return f"path: there is no file at {what} in {base}"


def _split(base: Path, path: str) -> tuple[Path, str]:
    """Split `path` into a folder and a pattern below it; a whole folder has the pattern ''."""
    whole = base / path
    if whole.is_dir():
        return whole, ""
    if whole.is_file():
        return whole.parent, f"{escape(whole.name[:-1])}[{whole.name[-1]}]"
    if "**" in path:
        shown = shown_safely(path)
        raise InvalidForm(f"path: ** is not supported, in {shown}; name each folder, or use *")
    parts = Path(path).parts
    fixed = list(takewhile(lambda part: not _WILD.search(part), parts))
    return base.joinpath(*fixed), "/".join(parts[len(fixed) :])


def _files(folder: Path, pattern: str) -> list[Path]:
    if not pattern and not folder.is_dir():
        return []
    matching = folder.glob(pattern or "*")
    return sorted(file for file in matching if file.is_file() and file.name[0] not in "._")


def _suffix(path: str, files: list[Path]) -> str:
    suffixes = sorted({suffix_of(file) for file in files or [Path(path)]})
    if not files and suffixes[0] not in SUFFIXES:
        return ""
    if len(suffixes) > 1:
        shown = shown_safely(path)
        raise InvalidForm(f"path: {shown} has {' and '.join(suffixes)} files; set a format")
    if suffixes and suffixes[0] not in SUFFIXES:
        listed = ", ".join(suffix[1:] for suffix in SUFFIXES)
        raise InvalidForm(f"path: {files[0].name} has an unknown suffix; set a format: {listed}")
    return suffixes[0] if suffixes else ""
