"""Who writes the versions of a folder: follows the changes of a store, and makes new bases."""

import fcntl
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final, Protocol, Self

from tidings.errors import TidingsError, VersionGone
from tidings.formats.arrow_by_row import DeadLetter
from tidings.index_files.background_build import Builder
from tidings.index_files.base_files import by_part, shelf_of, write_base, write_change
from tidings.index_files.default_policies import Defaults
from tidings.index_files.failures import Failures
from tidings.index_files.mapped_file import Damaged
from tidings.index_files.read_source import Records
from tidings.index_files.repair import mend
from tidings.index_files.subscriber_bundle import Member, counting
from tidings.index_files.versions import Change, Edition, Folder, Shelf, part_of
from tidings.model import validate

FEWEST: Final = 5_000
SHARE: Final = 10
MOST: Final = 256
"""A base is due when more members changed than FEWEST and than a SHARE-th of its own, or in more
than MOST files."""

_PUBLISHING: Final = "publishing"
_SERIAL: Final = re.compile(r"([0-9]{8,18})-")


@contextmanager
def _written_to(path: Path) -> Iterator[None]:
    """Tell which folder cannot be written to."""
    try:
        yield
    except OSError as error:
        raise TidingsError(f"{path} cannot be written to: {error}; name another folder") from None


class Source(Protocol):
    """The history of a catalogue (`tidings.store` has one): what there is, and what changed."""

    def store_id(self) -> str: ...
    def newest(self) -> int: ...
    def as_of(self, version: int | None = None) -> Iterator[Any]: ...
    def touched(self, since: int, upto: int) -> list[str]: ...
    def owned(self, subscribers: Iterable[str], version: int) -> Iterator[Any]: ...


class Publisher:
    """Brings a folder to the newest version of its source. One a folder; any thread may call.

    The first version takes as long as all conditions take to be read. Then `publish` costs what
    changed: those subscribers, with all that they have, are a new file. When they have become
    many, a thread makes a new base of their part, and nobody waits for it. `defaults` has the
    policies of owners of subscriptions who are no subscribers of the source. Where the folder shows
    another source, or other defaults, everything is made anew. Records that cannot be read are
    passed over, and kept in `refused`.
    """

    def __init__(
        self,
        path: Path,
        source: Source,
        parts: int = 1,
        fewest: int = FEWEST,
        defaults: Defaults | None = None,
    ) -> None:
        with _written_to(path):
            path.mkdir(parents=True, exist_ok=True)
        self.folder = Folder(path.resolve())
        self._source, self._parts = source, validate.count("parts", parts)
        self._fewest, self._defaults = fewest, defaults or Defaults()
        self._records = Records(self._defaults)
        self._lock, self._closed = Lock(), Event()
        self._failures = Failures(self.folder)
        self._builder = Builder(self.folder, self._lock, self._take, self._failures)
        self._follower: Thread | None = None
        self._mended, self._mark = False, 0
        with _written_to(path):
            self._alone = (path / "publisher.lock").open("w")
        try:
            fcntl.flock(self._alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._alone.close()
            raise TidingsError(
                f"another publisher writes to {path}; stop it first, or name another folder"
            ) from None
        serials = (_SERIAL.match(each.name) for each in path.glob("*.sealed"))
        self._serial = max((int(each[1]) for each in serials if each), default=0)

    @property
    def refused(self) -> Mapping[str, DeadLetter]:
        """The records without which the newest version is, by their ids, as far as it was read."""
        return self._records.refused

    def publish(self) -> int:
        """Show what the source has now; give the newest version then."""
        with self._lock:
            if self._closed.is_set():
                raise TidingsError(f"the publisher of {self.folder.path} is closed; make a new one")
            edition = self._newest(self._source.newest())
            self._tend(edition.shelves)
            self._failures.forget(_PUBLISHING)
            return edition.version

    def follow(self, every_s: float = 0.05) -> None:
        """Publish again and again, in a thread, until it is closed; what fails is tried again.

        To look takes one small question to the source. The default is less than Spark takes from
        the begin of a batch to its first task, which pins the version. Once is enough.
        """
        with self._lock:
            if self._follower is None:
                follower = Thread(target=self._follow, args=(every_s,), daemon=True)
                follower.start()
                self._follower = follower

    def settle(self) -> None:
        """Wait for a base that is being made; tell what fails at present, if something does."""
        self._builder.wait()
        with self._lock:
            self._failures.tell()

    def close(self) -> None:
        """End, wait for what is being made, and let others publish."""
        self._closed.set()
        try:
            with self._lock:  # whoever publishes is done then, and nobody begins again
                follower = self._follower
            if follower:
                follower.join()
            self._builder.wait()
        finally:
            self._alone.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _newest(self, upto: int) -> Edition:
        """Bring the folder to a version of the source."""
        if not self._mended:
            self._mend(upto)
        version = self.folder.newest()
        edition = self.folder.edition(version) if version else None
        if edition is None or not self._goes_on(edition, upto):
            return self._put(self._begun(upto))
        if upto == edition.source:
            return edition
        try:
            names = self._source.touched(edition.source, upto)
        except VersionGone:
            return self._put(self._begun(upto))
        return self._put(self._changed(edition, names, upto))

    def _ours(self, edition: Edition, upto: int) -> bool:
        """Tell whether an edition shows this source, with what is added to it here.

        What comes after the newest version is not of it: an old copy was put in its place.
        """
        return edition.mark == self._mark and edition.source <= upto

    def _goes_on(self, edition: Edition, upto: int) -> bool:
        """Tell whether changes behind an edition are enough."""
        return self._ours(edition, upto) and len(edition.shelves) == self._parts

    def _begun(self, upto: int) -> Edition:
        """Make all bases from the source, one part after the other."""
        parts = range(self._parts)
        shelves = [self._made(self._records, upto, part, self._parts) for part in parts]
        self._builder.forget()
        return Edition(self.folder.next(), upto, tuple(shelves), self._mark)

    def _made(self, records: Records, upto: int, part: int, parts: int) -> Shelf:
        """Make the base of a part as of a version of the source."""
        entries = self._source.as_of(upto)
        found = records.read(entries, lambda name: part_of(name, parts) == part)
        return write_base(self.folder.path, replace(self._next(part), source=upto), found)

    def _mend(self, upto: int) -> None:
        """Make anew what is damaged or missing, once, when this publisher begins.

        Of a version that cannot be made any more whoever asks for it is told. Its number is never
        given to another one; so the newest goes only when the next is there.
        """
        self._mark = self._defaults.mark(self._source.store_id())
        then = Records(self._defaults)  # what cannot be read of old versions is no matter of now

        def remade(edition: Edition, part: int) -> Shelf:
            if not self._ours(edition, upto):
                raise Damaged(f"version {edition.version} shows another source")
            return self._made(then, edition.source, part, len(edition.shelves))

        lost = mend(self.folder, remade)
        if self.folder.newest() in lost:
            self.folder.put(self._begun(upto))
        for version in lost:
            self.folder.remove(version)
        if lost:
            self.folder.clean(self._builder.making)
        self._mended = True

    def _changed(self, edition: Edition, names: list[str], upto: int) -> Edition:
        """Write what subscribers have now, behind the shelves of their parts."""
        found = {name: Member(name) for name in names}
        read = self._records.read(self._source.owned(names, upto), found.__contains__)
        found |= {each.name: each for each in read}
        shelves = list(edition.shelves)
        for part, changed in by_part(found.values(), self._parts).items():
            name = self._next(part).index.replace("index", "change")
            write_change(self.folder.path / name, changed)
            change = Change(name, len(changed), counting(changed), upto)
            shelves[part] = replace(shelves[part], changes=(*shelves[part].changes, change))
        return Edition(self.folder.next(), upto, tuple(shelves), self._mark)

    def _tend(self, shelves: Sequence[Shelf]) -> None:
        """Begin to make a new base, if one is due and none is being made."""
        due = [part for part, shelf in enumerate(shelves) if self._due(shelf)]
        ready = [part for part in due if not self._builder.rests(part)]
        if ready and not self._builder.making:
            shelf = shelves[ready[0]]
            made = replace(self._next(ready[0]), source=shelf.changes[-1].source)
            self._builder.begin(ready[0], shelf, made)

    def _due(self, shelf: Shelf) -> bool:
        changed = sum(each.members for each in shelf.changes)
        return changed > max(self._fewest, shelf.size // SHARE) or len(shelf.changes) > MOST

    def _take(self, part: int, shelf: Shelf, made: Shelf) -> None:
        """Put a new base in the place of what it was made of; what changed since stays behind."""
        newest = self.folder.edition(self.folder.newest())
        shelves, seen = list(newest.shelves), len(shelf.changes)
        if shelves[part].index == shelf.index:  # else everything was begun anew
            shelves[part] = replace(made, changes=shelves[part].changes[seen:])
            self._put(newest._replace(version=self.folder.next(), shelves=tuple(shelves)))

    def _follow(self, every_s: float) -> None:
        while not self._closed.wait(every_s):
            try:
                self.publish()
            except Exception as failure:  # noqa: BLE001 - whatever it is, it is told and may pass
                with self._lock:
                    if not self._closed.is_set():
                        self._failures.note(_PUBLISHING, failure)

    def _next(self, part: int) -> Shelf:
        self._serial += 1
        return shelf_of(self._serial, part)

    def _put(self, edition: Edition) -> Edition:
        self.folder.put(edition)
        self.folder.clean(self._builder.making)
        return edition
