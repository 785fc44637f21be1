"""Sealed files in a folder, version by version, and which version each batch of a query sees.

A version is a small file that names, for each part of the subscribers, a base and the changes
behind it. No file changes once it is there; the newest version is the one with the largest number.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from shutil import rmtree
from tempfile import NamedTemporaryFile
from time import time
from typing import Any, Final, NamedTuple

from tidings.compiled.array_file import Damaged, parsed
from tidings.errors import TidingsError, shown
from tidings.index_files.file_names import file_name, is_file_name, older_name
from tidings.index_files.mapped_file import room_in
from tidings.index_files.subscriber_table import hash_of
from tidings.index_files.version_lock import held, hold
from tidings.model import validate

KEPT: Final = 8
"""So many of the newest versions, and of the newest pins of a query, are always kept."""

FORGOTTEN_S: Final = 30 * 24 * 3600
"""The pins of a query that has pinned nothing for so long are let go of."""

_ABANDONED_S: Final = 3600
"""A file that is so old and still has no name was left by a process that is gone."""

_NEW: Final = ".new-"
_VERSION: Final = re.compile(r"version-([0-9]{12,18})\.json")
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_MOST: Final = 2**64


class Change(NamedTuple):
    """A file of members that replace those before; whether some of them count publications.

    `source` is the version of the source that it leads to.
    """

    file: str
    members: int
    counting: bool = False
    source: int = 0


@dataclass(frozen=True)
class Shelf:
    """One part: the files of a base, how many are in it, and the changes after it.

    `counting` tells whether some of them count all that is published; `source` is the version of
    the source that the base shows, if there is a source.
    """

    index: str
    people: str
    archive: str
    size: int = 0
    counting: bool = False
    source: int | None = None
    changes: tuple[Change, ...] = ()

    @property
    def files(self) -> list[str]:
        """All of its files."""
        return [self.index, self.people, self.archive, *(each.file for each in self.changes)]


_FIELDS: Final = {each.name for each in fields(Shelf)}


class Edition(NamedTuple):
    """What a version shows: a source as of one of its own versions, shelf by shelf.

    `mark` tells which source that is, and what was added to it; 0: that is not known.
    """

    version: int
    source: int
    shelves: tuple[Shelf, ...]
    mark: int = 0

    @property
    def counting(self) -> bool:
        """Whether somebody counts all that is published, or did when the last base was made."""
        return any(
            each.counting or any(change.counting for change in each.changes)
            for each in self.shelves
        )


@dataclass(frozen=True)
class Folder:
    """Where versions are. It travels as its path; every machine must see the same files."""

    path: Path

    def newest(self) -> int:
        """Give the newest version; 0 if there is none."""
        return max(self._versions(), default=0)

    def next(self) -> int:
        """Give a number that no version has, nor has had that is pinned or held."""
        return max(self.needed(), default=0) + 1

    def edition(self, version: int) -> Edition:
        """Read a version."""
        path = self._version(version)
        try:
            return _edition(version, parsed(path.read_bytes()))
        except (OSError, ValueError) as error:
            raise Damaged(
                f"version {version} in {self.path} cannot be read: {path.name}: {error}; let its "
                "publisher start again, and begin with a new checkpoint if this is still said then"
            ) from None

    def put(self, edition: Edition) -> None:
        """Add a version, whole or not at all."""
        form = edition._asdict() | {"shelves": [asdict(each) for each in edition.shelves]}
        temporary = self._written(self.path, json.dumps(form))
        temporary.rename(self._version(edition.version))

    def remove(self, version: int) -> None:
        """Remove a version that is of no use any more; its files stay for others."""
        self._version(version).unlink(missing_ok=True)

    def pin(self, query: str, batch: int) -> int:
        """Give the version that a batch sees: the newest when it is first asked for, then that.

        Of several who ask at once, one decides for all.
        """
        pins = self._pins(query)
        pin = pins / f"{validate.count('a batch', batch, TidingsError, low=0):020d}"
        while not pin.exists():
            pins.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError, FileExistsError):  # just unpinned, or just pinned
                self._link(pin, self._some())
        version = _read_pin(pin)
        if version is None:
            raise Damaged(
                f"{pin} is damaged: it names no version; remove it, and the batch sees the newest"
            )
        return version

    def unpin(self, query: str) -> None:
        """Let go of all pins of a query that will not come back."""
        rmtree(self._pins(query), ignore_errors=True)

    def hold(self) -> int:
        """Give the newest version, which then stays until this process ends."""
        while True:
            version = self._some()
            hold(self.path, version)
            if self._young(version):
                return version

    def clean(self, making: Iterable[str] = ()) -> list[str]:
        """Remove versions that are old, not pinned and not held, with files that none needs.

        Files that are being made for a version to come are spared. Gives what is removed.
        """
        versions, needed = sorted(self._versions()), self.needed()
        doomed = [self._version(each) for each in versions if each not in needed]
        with suppress(Damaged):  # then nobody knows which files are needed: all of them stay
            files = {*making}
            for version in needed.intersection(versions):
                files |= {name for each in self.edition(version).shelves for name in each.files}
            doomed += [each for each in self.path.glob("*.sealed") if each.name not in files]
        doomed += [each for each in self.path.glob(f"**/{_NEW}*") if _older(each, _ABANDONED_S)]
        doomed = [each for each in doomed if each.is_file()]
        for each in doomed:
            each.unlink(missing_ok=True)
        return sorted(each.name for each in doomed)

    def needed(self) -> set[int]:
        """Give the versions that somebody may ask for: the newest, those pinned and those held."""
        newest = self._newest()  # looked up first: see `_young`
        return {*newest, *self._pinned(), *held(self.path)}

    def _newest(self) -> list[int]:
        return sorted(self._versions())[-KEPT:]

    def _young(self, version: int) -> bool:
        """Tell whether a version that was just pinned or held will stay.

        It is among the newest; so whoever finds it old later looks for pins and holds after that.
        """
        return version in self._newest()

    def _some(self) -> int:
        newest = self.newest()
        if not newest:
            raise TidingsError(f"there is no version in {self.path} yet; a publisher makes it")
        return newest

    def _link(self, pin: Path, version: int) -> None:
        """Make a pin, if its version stays; it keeps the version before it has a name."""
        temporary = self._written(pin.parent, str(version))
        try:
            if self._young(version):
                os.link(temporary, pin)
        finally:
            temporary.unlink(missing_ok=True)

    def _pinned(self) -> Iterator[int]:
        """Give the versions of the last pins of every query, and remove the pins before them.

        Those of a query that has pinned nothing for so long that it is forgotten are all removed.
        """
        for query in self.path.glob("pins/*"):
            pins = sorted(query.glob("*"))
            if all(_older(each, FORGOTTEN_S) for each in (query, *pins)):
                rmtree(query, ignore_errors=True)
                continue
            last = [each for each in pins if not each.name.startswith(_NEW)]
            for old in last[:-KEPT]:
                old.unlink(missing_ok=True)
            yield from filter(None, map(_read_pin, {*pins} - {*last[:-KEPT]}))

    def _versions(self) -> Iterator[int]:
        for each in self.path.iterdir() if self.path.is_dir() else ():
            found = _VERSION.fullmatch(each.name)
            if found and each.is_file():
                yield int(found[1])

    def _version(self, version: int) -> Path:
        return self.path / f"version-{version:012d}.json"

    def _pins(self, query: str) -> Path:
        """Return where the pins of a query are; those of an earlier release are moved there."""
        validate.name("a query's id", query, TidingsError)
        pins = self.path / "pins"
        found = pins / file_name(query)
        if (former := older_name(pins, query)) is not None:
            with suppress(OSError):  # another process moved them, or they are there
                former.rename(found)
        return found

    def _written(self, where: Path, text: str) -> Path:
        with (
            room_in(where),
            NamedTemporaryFile("w", dir=where, prefix=_NEW, delete=False) as file,
        ):
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).chmod(0o644)
        return Path(file.name)


def part_of(name: str, parts: int) -> int:
    """Give the part of a subscriber.

    Where the number of parts divides that of the buckets, all of a bucket are in one part.
    """
    return hash_of(name) % parts


def _read_pin(path: Path) -> int | None:
    """Return the version of a pin; None if it is gone, not written yet, or no pin."""
    try:
        text = path.read_text()
    except (OSError, ValueError):
        return None
    return int(text) if _NUMBER.fullmatch(text) else None


def _older(path: Path, seconds: float) -> bool:
    """Tell whether a file was written so long ago; one that is gone was not."""
    try:
        return time() - path.stat().st_mtime > seconds
    except FileNotFoundError:
        return False


def _edition(version: int, form: Any) -> Edition:
    """Return the edition of a manifest; whatever is wrong with it is a `ValueError`."""
    if not isinstance(form, dict) or form.get("version") != version:
        raise ValueError("it is not the manifest of this version")
    shelves = form.get("shelves")
    if not isinstance(shelves, list) or not shelves:
        raise ValueError("it names no shelves")
    source, mark = (_whole(form.get(name, 0), name) for name in ("source", "mark"))
    return Edition(version, source, tuple(map(_shelf, shelves)), mark)


def _shelf(form: Any) -> Shelf:
    if not isinstance(form, dict) or not form.keys() <= _FIELDS:
        raise ValueError(f"a shelf has the fields {', '.join(sorted(_FIELDS))}")
    changes, source = form.get("changes"), form.get("source")
    if not isinstance(changes, list) or not all(isinstance(each, list) for each in changes):
        raise ValueError("the changes of a shelf are lists")
    return Shelf(
        index=_file(form.get("index")),
        people=_file(form.get("people")),
        archive=_file(form.get("archive")),
        size=_whole(form.get("size", 0), "size"),
        counting=_flag(form.get("counting", False)),
        source=None if source is None else _whole(source, "source"),
        changes=tuple(_change(*each) for each in changes),
    )


def _change(
    name: Any = None, members: Any = None, counts: Any = False, source: Any = 0, *more: Any
) -> Change:
    if more:
        raise ValueError("a change is a file, members, counting and source")
    return Change(_file(name), _whole(members, "members"), _flag(counts), _whole(source, "source"))


def _file(name: Any) -> str:
    if not is_file_name(name):
        raise ValueError(f"{shown(name)} is no file of this folder")
    return str(name)


def _whole(value: Any, name: str) -> int:
    if type(value) is not int or not 0 <= value < _MOST:
        raise ValueError(f"{name} is a number from 0 to below 2**64, not {shown(value)}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"counting is true or false, not {shown(value)}")
    return value
