"""Where events come from: files by a pattern, or whatever Spark can read as a stream."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from glob import escape
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Final

from tidings.errors import InvalidForm
from tidings.formats.files import SUFFIXES, read_events
from tidings.formats.redaction import shown_safely
from tidings.model import validate
from tidings.model.dead_letter import BadRecord
from tidings.model.limits import TRUSTED, Limits
from tidings.model.records import Event

UNREADABLE: Final = ("stop", "dead-letter")
KAFKA: Final = "tidings-kafka"
TABLE: Final = "tidings-table"
_WILD: Final = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Source:
    """Files of one format in a folder, by a pattern of * ? [..], some of them a batch.

    The order of files is that of their names. A file whose name begins with . or _ is no source.
    `unreadable` says what a Parquet file that Spark cannot read does: it stops the stream, or it is
    a dead letter; for that, files are read one by one, each by its own schema.
    """

    folder: Path
    pattern: str
    suffix: str
    files_per_batch: int = 1
    unreadable: str = UNREADABLE[0]

    @property
    def label(self) -> str:
        """Name it in a line."""
        number = len(self.files())
        return f"{number:,} file{'' if number == 1 else 's'} of events"

    def files(self) -> list[Path]:
        """Give the files that there are now, in order."""
        return _files(self.folder, self.pattern)

    def older_than_before(self) -> Path | None:
        """Give the first file that is older than the one before it by name; None: there is none."""
        for before, file in pairwise(self.files()):
            if file.stat().st_mtime_ns < before.stat().st_mtime_ns:
                return file
        return None

    def batches(self) -> Iterator[list[Path]]:
        """Give the files batch by batch."""
        files = self.files()
        for start in range(0, len(files), self.files_per_batch):
            yield files[start : start + self.files_per_batch]


@dataclass(frozen=True)
class SparkSource:
    """A source of Spark by its format and options, and how its rows become publications.

    `columns` are SQL expressions by name, `select` is a whole query over the table `source`; with
    neither, the rows are publications already.
    """

    format: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    schema: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    select: str | None = None

    @property
    def label(self) -> str:
        """Name it in a line."""
        return f"a stream of {self.format}"


def read_file(
    path: str | Path, suffix: str, *, limits: Limits = TRUSTED
) -> Iterator[Event | BadRecord]:
    """Read the events of a file; one that cannot be read to its end is a bad record in itself."""
    try:
        yield from read_events(path, suffix, limits=limits)
    except InvalidForm as error:
        yield BadRecord({"file": str(path)}, str(error), 1)


def find_source(base: Path, path: str, form: str | None = None, files_per_batch: int = 1) -> Source:
    """Give the source that `path`, as seen from the folder `base`, names.

    Its format is `form`, or what the suffix of its files says.
    """
    if form is not None:
        validate.choice("format", form, [suffix[1:] for suffix in SUFFIXES], InvalidForm)
    try:
        folder, pattern = _split(base, path)
        suffix = f".{form}" if form else _suffix(path, _files(folder, pattern))
        if pattern == "":
            pattern = f"*{suffix}"
        found = _files(folder, pattern)
    except InvalidForm:
        raise
    except (OSError, ValueError, NotImplementedError):
        # A name that is too long, a folder that cannot be listed, a pattern that means nothing.
        found = []
    if not found:
        raise InvalidForm(f"path: no file is at {shown_safely(path)} in {base}")
    return Source(folder, pattern, suffix, files_per_batch)


def _split(base: Path, path: str) -> tuple[Path, str]:
    """Part `path` into a folder and a pattern below it; a whole folder has the pattern ''."""
    whole = base / path
    if whole.is_dir():
        return whole, ""
    if whole.is_file():
        return whole.parent, f"{escape(whole.name[:-1])}[{whole.name[-1]}]"
    if "**" in path:
        given = shown_safely(path)
        raise InvalidForm(f"path: ** is not possible, in {given}; name each folder, or write *")
    parts = Path(path).parts
    fixed = list(takewhile(lambda part: not _WILD.search(part), parts))
    return base.joinpath(*fixed), "/".join(parts[len(fixed) :])


def _files(folder: Path, pattern: str) -> list[Path]:
    if not pattern and not folder.is_dir():
        return []
    found = folder.glob(pattern or "*")
    return sorted(file for file in found if file.is_file() and file.name[0] not in "._")


def _suffix(path: str, files: list[Path]) -> str:
    found = sorted({file.suffix.lower() for file in files})
    if len(found) > 1:
        given = shown_safely(path)
        raise InvalidForm(f"path: {given} holds {' and '.join(found)} files; give a format")
    if found and found[0] not in SUFFIXES:
        listed = ", ".join(suffix[1:] for suffix in SUFFIXES)
        raise InvalidForm(f"path: {files[0].name} has no known suffix; give a format: {listed}")
    return found[0] if found else ""
