"""The publisher of a folder: follows the changes of a store and writes versions.

    source version 7 ──> 8 ──> 9 ──> 10
    folder         base   delta delta  base      (a base is built in the background)

Most versions add one small delta to each part that changed. When deltas have become many, a thread
merges them into a new base, one part at a time, while further versions extend the old one. Failures
of background work are logged, kept until that work succeeds, and raised to callers that ask.
"""

import fcntl
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, Final, NamedTuple, Protocol, Self, TextIO

from tidings.errors import TidingsError, VersionGone
from tidings.index_files import mapped_file
from tidings.index_files.base_files import (
    current_bundles,
    new_part,
    read_delta,
    read_subscribers,
    split_by_part,
    write_base,
    write_delta,
)
from tidings.index_files.manifest import Delta, Manifest, PartManifest
from tidings.index_files.mapped_file import Damaged
from tidings.index_files.mapped_matcher import MappedMatcher
from tidings.index_files.read_source import Defaults, SourceReader
from tidings.index_files.subscriber_bundle import (
    SubscriberBundle,
    any_counts_published,
    read_bundles,
)
from tidings.index_files.versions import IndexFolder, part_of, reporting_unwritable
from tidings.model import validate
from tidings.model.dead_letter import DeadLetter

# Repair of a folder: damaged and missing files are rebuilt, each as its source was then.

Rebuild = Callable[[Manifest, int], PartManifest]
"""Builds the base of a part as a manifest shows it, or raises `VersionGone` or `Damaged`."""


def repair(folder: IndexFolder, rebuild: Rebuild) -> set[int]:
    """Repair every version that a batch may ask for; return those that cannot be rebuilt.

    Batches pinned to a version see what they saw before. A file that versions share is rebuilt
    once for all of them.
    """
    repairing, lost = _Repair(folder, rebuild), set[int]()
    for version in sorted(folder.needed()):
        try:
            repairing.repair(folder.manifest(version))
        except (VersionGone, Damaged):
            lost.add(version)
    return lost


class _Rebuilt(NamedTuple):
    """A base that was built again, and the version of the source that it shows."""

    source: int
    base: PartManifest


class _Repair:
    """One pass over the versions from old to new, with the bases rebuilt so far."""

    def __init__(self, folder: IndexFolder, rebuild: Rebuild) -> None:
        self._folder, self._rebuild = folder, rebuild
        self._intact: dict[str, bool] = {}
        self._rebuilt: dict[str, _Rebuilt] = {}

    def repair(self, manifest: Manifest) -> None:
        parts = tuple(self._repaired(manifest, number) for number in range(len(manifest.parts)))
        if parts != manifest.parts:
            self._folder.put(manifest._replace(parts=parts))

    def _repaired(self, manifest: Manifest, number: int) -> PartManifest:
        """Return an intact part: a base rebuilt past the last damage, and the deltas after it."""
        part = manifest.parts[number]
        damaged = [name for name in part.files if not self._is_intact(part, name)]
        if not damaged:
            return part
        last = damaged[-1]
        if last not in self._rebuilt:
            self._rebuilt[last] = _Rebuilt(manifest.source, self._rebuild(manifest, number))
        source, base = self._rebuilt[last]
        return replace(base, deltas=tuple(delta for delta in part.deltas if delta.source > source))

    def _is_intact(self, part: PartManifest, name: str) -> bool:
        if name not in self._intact:
            self._intact[name] = is_intact(self._folder.path, part, name)
        return self._intact[name]


def is_intact(path: Path, part: PartManifest, name: str) -> bool:
    """Return whether one of the files of a part exists and can be used; it is read once.

    Of an archive only the checksum is verified: the builder of the next base reads it.
    """
    try:
        if name == part.index:
            index = mapped_file.read(path / name, mapped_file.INDEX)
            MappedMatcher.read(index)
            list(read_bundles(index.within("others")))
        elif name == part.subscribers:
            read_subscribers(path, part)
        elif name == part.archive:
            mapped_file.read(path / name, mapped_file.ARCHIVE)
        else:
            read_delta(path / name)
    except Damaged:
        return False
    return True


MIN_CHANGED: Final = 5_000
CHANGED_SHARE: Final = 10
MAX_DELTAS: Final = 256
"""A new base is due when more than MIN_CHANGED bundles and more than 1/CHANGED_SHARE of the base
have changed, or when there are more than MAX_DELTAS deltas."""

_PUBLISHING: Final = "publishing"
_SERIAL: Final = re.compile(r"([0-9]{8,18})-")
_LOG: Final = logging.getLogger(__name__)
RETRY_AFTER_S: Final = 60.0
"""After a base could not be built, its part is left alone for this long."""
Install = Callable[[int, PartManifest, PartManifest], None]
"""Replaces a part, by number, with the one that was built from it."""


class RecordSource(Protocol):
    """The history of a catalogue, as `tidings.store` has one: its records and their changes."""

    def store_id(self) -> str: ...
    def newest(self) -> int: ...
    def as_of(self, version: int | None = None) -> Iterator[Any]: ...
    def touched(self, since: int, upto: int) -> list[str]: ...
    def owned(self, subscribers: Iterable[str], version: int) -> Iterator[Any]: ...


class Publisher:
    """Keeps a folder at the newest version of its source. One per folder; safe for threads.

    The first version takes as long as reading all conditions. After that, `publish` costs only what
    changed: the bundles of the subscribers concerned are a new delta. `defaults` has policies for
    owners of subscriptions that are not subscribers of the source. If the folder shows another
    source or other defaults, everything is built again. Records that cannot be read are skipped,
    and kept in `refused`; each manifest lists the first of them, so that streams can report them.
    """

    def __init__(
        self,
        path: Path,
        source: RecordSource,
        parts: int = 1,
        min_changed: int = MIN_CHANGED,
        defaults: Defaults | None = None,
    ) -> None:
        with reporting_unwritable(path):
            path.mkdir(parents=True, exist_ok=True)
        self.folder = IndexFolder(path.resolve())
        self._source, self._parts = source, validate.count("parts", parts)
        self._min_changed, self._defaults = min_changed, defaults or Defaults()
        self._reader = SourceReader(self._defaults)
        self._lock, self._closed = Lock(), Event()
        self._failures = BackgroundFailures(self.folder)
        self._builder = BackgroundBuilder(self.folder, self._lock, self._install, self._failures)
        self._follower: Thread | None = None
        self._repaired, self._resumed, self._fingerprint = False, False, 0
        with reporting_unwritable(path):
            self._lock_file = _open_lock(path / "publisher.lock")
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock_file.close()
            raise TidingsError(
                f"another publisher writes to {path}; stop it first, or choose another folder"
            ) from None
        serials = (_SERIAL.match(file.name) for file in path.glob("*.sealed"))
        self._serial = max((int(serial[1]) for serial in serials if serial), default=0)

    @property
    def refused(self) -> Mapping[str, DeadLetter]:
        """The records that are missing from the newest version, by id.

        Those that an earlier process refused are known by id and owner only.
        """
        return self._reader.refused

    def publish(self) -> int:
        """Bring the folder up to date with the source; return the newest version."""
        with self._lock:
            if self._closed.is_set():
                raise TidingsError(
                    f"the publisher of {self.folder.path} is closed; create a new one"
                )
            newest = self._source.newest()
            with reporting_unwritable(self.folder.path):
                manifest = self._newest(newest)
            self._start_due_base(manifest.parts)
            self._failures.forget(_PUBLISHING)
            return manifest.version

    def follow(self, every_s: float = 0.05) -> None:
        """Publish repeatedly in a thread until this is closed; failures are retried.

        A look costs one small query to the source. The default interval is shorter than the time
        from the start of a Spark batch to its first task, which pins the version. A second call
        does nothing.
        """
        with self._lock:
            if self._follower is None:
                follower = Thread(target=self._follow, args=(every_s,), daemon=True)
                follower.start()
                self._follower = follower

    def settle(self) -> None:
        """Wait for a base that is being built, and raise the present failure, if there is one."""
        self._builder.wait()
        with self._lock:
            self._failures.raise_any()

    def close(self) -> None:
        """Stop, wait for a base that is being built, and release the folder."""
        self._closed.set()
        try:
            with self._lock:  # a call of `publish` is over then, and no other can start
                follower = self._follower
            if follower:
                follower.join()
            self._builder.wait()
        finally:
            self._lock_file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _newest(self, upto: int) -> Manifest:
        """Return the manifest that shows a version of the source, and write it if it is new."""
        if not self._repaired:
            self._repair(upto)
        version = self.folder.newest()
        manifest = self.folder.manifest(version) if version else None
        if manifest is None or not self._can_continue(manifest, upto):
            return self._put(self._build_all(upto))
        if not self._resumed:
            self._reader.resume(manifest.refused)
            self._resumed = True
        if upto == manifest.source:
            return manifest
        try:
            names = self._source.touched(manifest.source, upto)
        except VersionGone:
            return self._put(self._build_all(upto))
        return self._put(self._with_deltas(manifest, names, upto))

    def _shows_source(self, manifest: Manifest, upto: int) -> bool:
        """Return whether a manifest shows this source with these defaults.

        If it is ahead of the source, an older copy of the store was put in its place.
        """
        return manifest.fingerprint == self._fingerprint and manifest.source <= upto

    def _can_continue(self, manifest: Manifest, upto: int) -> bool:
        """Return whether deltas after this manifest are enough."""
        return self._shows_source(manifest, upto) and len(manifest.parts) == self._parts

    def _build_all(self, upto: int) -> Manifest:
        """Build all bases from the source, one part after the other to save memory."""
        numbers = range(self._parts)
        parts = [self._build(self._reader, upto, number, self._parts) for number in numbers]
        self._builder.forget()
        self._resumed = True
        return self._manifest(upto, parts)

    def _build(self, reader: SourceReader, upto: int, number: int, parts: int) -> PartManifest:
        """Build the base of a part as of a version of the source."""
        records = self._source.as_of(upto)
        bundles = reader.read(records, lambda name: part_of(name, parts) == number)
        part = replace(self._new_part(number), source=upto)
        return write_base(self.folder.path, part, bundles)

    def _repair(self, upto: int) -> None:
        """Rebuild what is damaged or missing, once, when this publisher starts.

        A reader of a version that cannot be rebuilt gets an error. Its number is never used again;
        so the newest is removed only once the next is there.
        """
        self._fingerprint = self._defaults.fingerprint(self._source.store_id())
        past = SourceReader(self._defaults)  # records refused in old versions are not `refused` now

        def rebuild(manifest: Manifest, number: int) -> PartManifest:
            if not self._shows_source(manifest, upto):
                raise Damaged(f"version {manifest.version} shows another source")
            return self._build(past, manifest.source, number, len(manifest.parts))

        lost = repair(self.folder, rebuild)
        if self.folder.newest() in lost:
            self.folder.put(self._build_all(upto))
        for version in lost:
            self.folder.remove(version)
        if lost:
            self.folder.clean(self._builder.building)
        self._repaired = True

    def _with_deltas(self, manifest: Manifest, names: list[str], upto: int) -> Manifest:
        """Write the present bundles of some names as deltas of their parts."""
        bundles = {name: SubscriberBundle(name) for name in names}
        present = self._reader.read(self._source.owned(names, upto), bundles.__contains__)
        bundles |= {bundle.name: bundle for bundle in present}
        parts = list(manifest.parts)
        for number, changed in split_by_part(bundles.values(), self._parts).items():
            file = self._new_part(number).index.replace("index", "change")
            write_delta(self.folder.path / file, changed)
            delta = Delta(file, len(changed), any_counts_published(changed), upto)
            parts[number] = replace(parts[number], deltas=(*parts[number].deltas, delta))
        return self._manifest(upto, parts)

    def _manifest(self, upto: int, parts: Iterable[PartManifest]) -> Manifest:
        refused = self._reader.listed()
        return Manifest(self.folder.next(), upto, tuple(parts), self._fingerprint, refused)

    def _start_due_base(self, parts: Sequence[PartManifest]) -> None:
        """Start to build a new base, if one is due and none is being built."""
        due = [number for number, part in enumerate(parts) if self._is_due(part)]
        ready = [number for number in due if not self._builder.is_resting(number)]
        if ready and not self._builder.building:
            number = ready[0]
            new = replace(self._new_part(number), source=parts[number].deltas[-1].source)
            self._builder.start(number, parts[number], new)

    def _is_due(self, part: PartManifest) -> bool:
        changed = sum(delta.bundles for delta in part.deltas)
        enough = max(self._min_changed, part.size // CHANGED_SHARE)
        return changed > enough or len(part.deltas) > MAX_DELTAS

    def _install(self, number: int, part: PartManifest, base: PartManifest) -> None:
        """Replace a part by the base that was built from it; deltas written since follow it."""
        newest = self.folder.manifest(self.folder.newest())
        parts, merged = list(newest.parts), len(part.deltas)
        if parts[number].index == part.index:  # otherwise everything was built again meanwhile
            parts[number] = replace(base, deltas=parts[number].deltas[merged:])
            self._put(newest._replace(version=self.folder.next(), parts=tuple(parts)))

    def _follow(self, every_s: float) -> None:
        while not self._closed.wait(every_s):
            try:
                self.publish()
            except Exception as failure:  # noqa: BLE001 - any failure is reported, and may pass
                with self._lock:
                    if not self._closed.is_set():
                        self._failures.note(_PUBLISHING, failure)

    def _new_part(self, number: int) -> PartManifest:
        self._serial += 1
        return new_part(self._serial, number)

    def _put(self, manifest: Manifest) -> Manifest:
        self.folder.put(manifest)
        self.folder.clean(self._builder.building)
        return manifest


def _open_lock(path: Path) -> TextIO:
    """Open the file that a publisher locks; a pipe would wait for a reader, so it is refused."""
    if path.exists():
        validate.regular_file(path)
    return path.open("w")


class BackgroundFailures:
    """The last failure of each kind of work on a folder, until that work succeeds."""

    def __init__(self, folder: IndexFolder) -> None:
        self._folder = folder
        self._failures: dict[str, Exception] = {}

    def note(self, work: str, failure: Exception) -> None:
        """Keep a failure, and log it unless this work failed in the same way before."""
        previous, self._failures[work] = self._failures.get(work), failure
        if repr(previous) != repr(failure):
            _LOG.warning("%s: %s failed and will be retried: %r", self._folder.path, work, failure)

    def forget(self, work: str) -> None:
        """Drop the failure of some work, which succeeded."""
        self._failures.pop(work, None)

    def raise_any(self) -> None:
        """Raise the present failure, if there is one."""
        for work, failure in self._failures.items():
            raise TidingsError(
                f"{self._folder.path} is not up to date: {work}: {failure}"
            ) from failure


class BackgroundBuilder:
    """A thread at a time that merges a part and its deltas into a base, and calls `install`.

    Callers hold the lock, except in `wait`; `install` is called with the lock held.
    """

    def __init__(
        self, folder: IndexFolder, lock: Lock, install: Install, failures: BackgroundFailures
    ) -> None:
        self._folder, self._lock, self._install, self._failures = folder, lock, install, failures
        self._thread: Thread | None = None
        self._retry_at: dict[int, float] = {}
        self.building: tuple[str, ...] = ()
        """The files that must stay until the base is built; empty if none is being built."""

    def is_resting(self, number: int) -> bool:
        """Return whether the base of a part failed a short while ago."""
        return monotonic() < self._retry_at.get(number, 0)

    def start(self, number: int, part: PartManifest, new: PartManifest) -> None:
        """Start to build a base in the files that `new` names."""
        self.building = (*new.files, *part.files)
        self._thread = Thread(target=self._run, args=(number, part, new), daemon=True)
        try:
            self._thread.start()
        except RuntimeError as failure:  # no more threads, or the interpreter is shutting down
            self._thread = None
            self._finish(number, failure)

    def forget(self) -> None:
        """Drop all failures: every base was just built."""
        for number in self._retry_at:
            self._failures.forget(_work(number))
        self._retry_at = {}

    def wait(self) -> None:
        """Wait for the base that is being built."""
        with self._lock:  # its holder may be about to start one
            thread = self._thread
        if thread:
            thread.join()

    def _run(self, number: int, part: PartManifest, new: PartManifest) -> None:
        failure, path = None, self._folder.path
        try:
            base = write_base(path, new, current_bundles(path, part))
            with self._lock:
                self._install(number, part, base)
        except Exception as error:  # noqa: BLE001 - any failure is reported, and retried
            failure = error
        with self._lock:
            self._finish(number, failure)

    def _finish(self, number: int, failure: Exception | None) -> None:
        self.building = ()
        if failure is None:
            self._failures.forget(_work(number))
        else:
            self._failures.note(_work(number), failure)
            self._retry_at[number] = monotonic() + RETRY_AFTER_S


def _work(number: int) -> str:
    return f"building a base of part {number}"
