"""A folder of index files: its versions, the pins of queries, and the locks of processes.

    version-000000000007.json     the manifest of version 7
    00000012-0-index.sealed       files that manifests name; never changed once they are there
    pins/QUERY/BATCH              the version that a batch of a streaming query sees
    holds/VERSION-ID              a version that a living process has locked

The newest version is the one with the largest number. Two things keep an older one: a *pin*
survives its process, so that a replayed batch sees the same version again; a *lock* ends with its
process, for batch jobs, which have no batch number to pin a version to. Ids of queries, which may
contain anything, become file names that stay inside their folder.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from tempfile import NamedTemporaryFile
from time import time
from typing import Final
from urllib.parse import quote
from uuid import uuid4

from tidings.compiled.array_file import Damaged, parsed
from tidings.errors import TidingsError, prefix_errors
from tidings.index_files.manifest import Manifest, read_manifest
from tidings.index_files.mapped_file import reporting_full_disk
from tidings.index_files.subscriber_table import hash_of
from tidings.model import validate

KEPT_VERSIONS: Final = 8
"""This many of the newest versions, and of the newest pins of each query, are always kept."""

PINS_EXPIRE_S: Final = 30 * 24 * 3600
"""The pins of a query that has pinned nothing for this long are released."""

_ABANDONED_S: Final = 3600
"""A temporary file this old was left by a process that is gone."""

_MANIFEST_BYTES: Final = 1 << 28
_PIN_BYTES: Final = 100

_TEMPORARY: Final = ".new-"
_LOCKS: Final = "holds"
_LOCK_NAME: Final = re.compile(r"([0-9]{1,18})-[0-9a-f]{32}")
_MANIFEST_NAME: Final = re.compile(r"version-([0-9]{12,18})\.json")
_VERSION_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_PLAIN: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_NOT_READABLE: Final = re.compile(r"[^a-z0-9]+")
_READABLE_LENGTH: Final = 40


@dataclass(frozen=True)
class IndexFolder:
    """A folder of versions. It is pickled as its path; every machine must see the same files."""

    path: Path

    def newest(self) -> int:
        """Return the newest version; 0 if there is none."""
        return max(self._versions(), default=0)

    def next(self) -> int:
        """Return a number that no version has, nor a removed one that is still pinned or locked."""
        return max(self.needed(), default=0) + 1

    def manifest(self, version: int) -> Manifest:
        """Read the manifest of a version."""
        path = self._manifest_path(version)
        try:
            return read_manifest(version, parsed(validate.file_bytes(path, _MANIFEST_BYTES)))
        except (OSError, ValueError) as error:
            raise Damaged(
                f"version {version} in {self.path} cannot be read: {path.name}: {error}; restart "
                "its publisher, and start from a new checkpoint if the error remains"
            ) from None

    def put(self, manifest: Manifest) -> None:
        """Add a version atomically."""
        temporary = self._write_temporary(self.path, json.dumps(manifest.to_dict()))
        temporary.rename(self._manifest_path(manifest.version))

    def remove(self, version: int) -> None:
        """Remove the manifest of a version that cannot be used; `clean` removes its files."""
        self._manifest_path(version).unlink(missing_ok=True)

    def pin(self, query: str, batch: int) -> int:
        """Return the version that a batch sees: the newest at the first call, then always that one.

        Of several processes that ask at once, one decides for all.
        """
        number = validate.count("a batch", batch, TidingsError, low=0)
        with reporting_unwritable(self.path):
            pins = self._pins(query)
            pin = pins / f"{number:020d}"
            while not os.path.lexists(pin):
                pins.mkdir(parents=True, exist_ok=True)
                with suppress(FileNotFoundError, FileExistsError):  # just unpinned, or just pinned
                    self._link(pin, self._require_newest())
        version = _read_pin(pin)
        if version is None:
            raise Damaged(
                f"{pin} is damaged: it holds no version number; remove it, and the batch will see "
                "the newest version"
            )
        return version

    def unpin(self, query: str) -> None:
        """Release all pins of a query that will not run again."""
        rmtree(self._pins(query), ignore_errors=True)

    def lock_newest(self) -> int:
        """Return the newest version, and keep it until this process ends."""
        while True:
            version = self._require_newest()
            with reporting_unwritable(self.path):
                _lock(self.path, version)
            if self._is_young(version):
                return version

    def clean(self, building: Iterable[str] = ()) -> list[str]:
        """Remove old versions that are neither pinned nor locked, and the files only they need.

        The files of a base that is being built are spared. Return the names of the removed files.
        """
        versions, needed = sorted(self._versions()), self.needed()
        doomed = [self._manifest_path(number) for number in versions if number not in needed]
        with suppress(Damaged):  # without a manifest it is unknown which files are needed: keep all
            files = {*building}
            for version in needed.intersection(versions):
                files |= {name for part in self.manifest(version).parts for name in part.files}
            doomed += [path for path in self.path.glob("*.sealed") if path.name not in files]
        temporaries = self.path.glob(f"**/{_TEMPORARY}*")
        doomed += [path for path in temporaries if _is_older(path, _ABANDONED_S)]
        doomed = [path for path in doomed if path.is_file()]
        with reporting_unwritable(self.path):
            for path in doomed:
                path.unlink(missing_ok=True)
        return sorted(path.name for path in doomed)

    def needed(self) -> set[int]:
        """Return the versions that may still be needed: the newest, the pinned, the locked."""
        newest = self._newest_versions()  # looked up first: see `_is_young`
        return {*newest, *self._pinned(), *locked_versions(self.path)}

    def _newest_versions(self) -> list[int]:
        return sorted(self._versions())[-KEPT_VERSIONS:]

    def _is_young(self, version: int) -> bool:
        """Return whether a version that was just pinned or locked will stay.

        A young version is among the newest. `needed` lists the newest before it looks for pins and
        locks; so by the time it finds this version old, it also sees the pin or the lock.
        """
        return version in self._newest_versions()

    def _require_newest(self) -> int:
        newest = self.newest()
        if not newest:
            raise TidingsError(f"{self.path} has no version yet; a publisher must write one first")
        return newest

    def _link(self, pin: Path, version: int) -> None:
        """Create a pin if its version stays; the temporary file already protects the version."""
        temporary = self._write_temporary(pin.parent, str(version))
        try:
            if self._is_young(version):
                os.link(temporary, pin)
        finally:
            temporary.unlink(missing_ok=True)

    def _pinned(self) -> Iterator[int]:
        """Yield the versions of the newest pins of each query, and remove its older pins.

        All pins of a query that has pinned nothing for `PINS_EXPIRE_S` are removed.
        """
        for query in self.path.glob("pins/*"):
            files = sorted(query.glob("*"))
            if all(_is_older(path, PINS_EXPIRE_S) for path in (query, *files)):
                rmtree(query, ignore_errors=True)
                continue
            pins = [path for path in files if not path.name.startswith(_TEMPORARY)]
            for old in pins[:-KEPT_VERSIONS]:
                old.unlink(missing_ok=True)
            yield from filter(None, map(_read_pin, {*files} - {*pins[:-KEPT_VERSIONS]}))

    def _versions(self) -> Iterator[int]:
        try:
            files = [*self.path.iterdir()] if self.path.is_dir() else []
        except OSError as error:
            raise TidingsError(f"{self.path} cannot be read: {error.strerror or error}") from None
        for path in files:
            name = _MANIFEST_NAME.fullmatch(path.name)
            if name and path.is_file():
                yield int(name[1])

    def _manifest_path(self, version: int) -> Path:
        return self.path / f"version-{version:012d}.json"

    def _pins(self, query: str) -> Path:
        """Return the folder of a query's pins; a folder of an earlier release is renamed."""
        validate.name("a query's id", query, TidingsError)
        pins = self.path / "pins"
        folder = pins / file_name(query)
        if (former := former_folder(pins, query)) is not None:
            with suppress(OSError):  # another process renamed it, or the new folder exists
                former.rename(folder)
        return folder

    def _write_temporary(self, folder: Path, text: str) -> Path:
        with (
            reporting_full_disk(folder),
            NamedTemporaryFile("w", dir=folder, prefix=_TEMPORARY, delete=False) as file,
        ):
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).chmod(0o644)
        return Path(file.name)


def reporting_unwritable(path: Path) -> AbstractContextManager[None]:
    """Raise a `TidingsError`, which names the folder, if it cannot be written to."""
    return prefix_errors(
        f"{path} cannot be written to: ", OSError, TidingsError, suffix="; choose another folder"
    )


@cache
def _lock(folder: Path, version: int) -> int:
    """Lock a version until this process ends; return the open file, which holds the lock.

    The system releases the lock however the process ends, so a lock never outlives it.
    """
    locks = folder / _LOCKS
    locks.mkdir(parents=True, exist_ok=True)
    name = f"{version}-{uuid4().hex}"
    temporary = locks / f"{_TEMPORARY}{name}"
    file = os.open(temporary, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    fcntl.flock(file, fcntl.LOCK_SH)
    temporary.rename(locks / name)  # locked before another process can find it
    return file


def locked_versions(folder: Path) -> Iterator[int]:
    """Yield the versions that living processes have locked, and remove the files of dead ones."""
    for path in (folder / _LOCKS).glob("[0-9]*-*"):
        name = _LOCK_NAME.fullmatch(path.name)
        if name is None or not path.is_file():  # not ours
            continue
        if _is_locked(path):
            yield int(name[1])
        else:
            path.unlink(missing_ok=True)


def _is_locked(path: Path) -> bool:
    try:
        with validate.regular_file(path).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def part_of(name: str, parts: int) -> int:
    """Return the part of a subscriber.

    Where the number of parts divides the number of buckets, a bucket lies in one part.
    """
    return hash_of(name) % parts


def _read_pin(path: Path) -> int | None:
    """Return the version of a pin; None if it is gone, not written yet, or damaged."""
    try:
        text = validate.file_bytes(path, _PIN_BYTES).decode()
    except (OSError, ValueError):
        return None
    return int(text) if _VERSION_NUMBER.fullmatch(text) else None


def _is_older(path: Path, seconds: float) -> bool:
    """Return whether a file was written longer ago than this; False if it cannot be found."""
    try:
        return time() - path.stat().st_mtime > seconds
    except OSError:
        return False


def file_name(name: str) -> str:
    """Return a name for the file or folder of an id; no two ids share one.

    Ids of lower-case letters, digits, `.`, `_` and `-` are kept, such as those that Spark gives its
    queries. All others are named by a hash after a readable prefix, so that `..`, slashes, NUL,
    long names, and names that differ only in case, stay apart and inside their folder.

    >>> file_name("6f1c-22"), file_name("..")[:6], file_name("A query")[:10]
    ('6f1c-22', '=-5ec1', '=a-query-0')
    """
    if _PLAIN.fullmatch(name):
        return name
    readable = _NOT_READABLE.sub("-", name.lower()).strip("-")[:_READABLE_LENGTH]
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:40]
    return f"={readable}-{digest}"


def former_folder(folder: Path, name: str) -> Path | None:
    """Return where an earlier release kept the files of an id, if they are still there.

    Only entries of the folder are considered, so that no id can lead out of it.
    """
    former = quote(name, safe="", errors="replace")
    if former == file_name(name) or not folder.is_dir():
        return None
    return next((path for path in folder.iterdir() if path.name == former), None)
