"""Who writes the versions of a folder: follows the changes of a store, and makes new bases."""

import fcntl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final, Protocol, Self

from tidings import checks
from tidings.errors import TidingsError, VersionGone
from tidings.forms import loads_subscriber, loads_subscription
from tidings.model import Subscription
from tidings.policy import Subscriber
from tidings.rows import DeadLetter
from tidings.sealed import file
from tidings.sealed.bases import by_part, current, shelf_of, write_base
from tidings.sealed.defaults import Defaults
from tidings.sealed.file import Damaged
from tidings.sealed.folder import Change, Edition, Folder, Shelf, part_of
from tidings.sealed.member import Member, counting, members
from tidings.sealed.mending import mend

FEWEST: Final = 5_000
SHARE: Final = 10
MOST: Final = 256
"""A base is due when more members changed than FEWEST and than a SHARE-th of its own, or in more
than MOST files."""


class Entry(Protocol):
    """A record of a catalogue: a subscriber or a subscription by its form."""

    @property
    def form(self) -> Mapping[str, Any] | None: ...


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
        path.mkdir(parents=True, exist_ok=True)
        self.folder = Folder(path.resolve())
        self._source, self._parts = source, checks.count("parts", parts)
        self._fewest, self._defaults = fewest, defaults or Defaults()
        self.refused: dict[str, DeadLetter] = {}
        self._lock = Lock()
        self._making: tuple[str, ...] = ()
        self._follower: Thread | None = None
        self._builder: Thread | None = None
        self._failure: Exception | None = None
        self._closed = Event()
        self._mended, self._mark = False, 0
        self._alone = (path / "publisher.lock").open("w")
        try:
            fcntl.flock(self._alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._alone.close()
            raise TidingsError(f"another publisher writes to {path}; stop it first") from None
        serials = (int(each.name.split("-")[0]) for each in path.glob("*.sealed"))
        self._serial = max(serials, default=0)

    def publish(self) -> int:
        """Show what the source has now; give the newest version then."""
        with self._lock:
            upto = self._source.newest()
            if not self._mended:
                self._mend(upto)
            version = self.folder.newest()
            edition = self.folder.edition(version) if version else None
            if (
                edition is None
                or len(edition.shelves) != self._parts
                or not self._ours(edition, upto)
            ):
                return self._put(self._begun(upto))
            if upto == edition.source:
                return version
            try:
                names = self._source.touched(edition.source, upto)
            except VersionGone:
                return self._put(self._begun(upto))
            return self._change(edition, names, upto)

    def follow(self, every_s: float = 0.05) -> None:
        """Publish again and again, in a thread, until it is closed; what fails is tried again.

        To look takes one small question to the source. The default is less than Spark takes from
        the begin of a batch to its first task, which pins the version.
        """
        self._follower = Thread(target=self._follow, args=(every_s,), daemon=True)
        self._follower.start()

    def settle(self) -> None:
        """Wait for a base that is being made; tell what failed last, if something did."""
        with self._lock:  # who holds it may be about to start the builder
            builder = self._builder
        if builder:
            builder.join()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise TidingsError(f"{self.folder.path} is not up to date: {failure}") from failure

    def close(self) -> None:
        """End, wait for what is being made, and let others publish."""
        self._closed.set()
        if self._follower:
            self._follower.join()
        if self._builder:  # looked up only now: the follower may have begun one last base
            self._builder.join()
        self._alone.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        shelves = [self._made(upto, part, self._parts) for part in range(self._parts)]
        return Edition(self.folder.next(), upto, tuple(shelves), self._mark)

    def _made(self, upto: int, part: int, parts: int) -> Shelf:
        """Make the base of a part as of a version of the source."""
        entries = (each for each in self._source.as_of(upto) if _in_part(each, part, parts))
        shelf = replace(self._next(part), source=upto)
        return write_base(self.folder.path, shelf, self._members(entries))

    def _mend(self, upto: int) -> None:
        """Make anew what is damaged or missing, once, when this publisher begins.

        Of a version that cannot be made any more whoever asks for it is told. Its number is never
        given to another one; so the newest goes only when the next is there.
        """
        self._mark = self._defaults.mark(self._source.store_id())

        def remade(edition: Edition, part: int) -> Shelf:
            if not self._ours(edition, upto):
                raise Damaged(f"version {edition.version} shows another source")
            return self._made(edition.source, part, len(edition.shelves))

        lost = mend(self.folder, remade)
        if self.folder.newest() in lost:
            self.folder.put(self._begun(upto))
        for version in lost:
            self.folder.remove(version)
        self._mended = True

    def _change(self, edition: Edition, names: list[str], upto: int) -> int:
        found = {name: Member(name) for name in names}
        found |= {each.name: each for each in self._members(self._source.owned(names, upto))}
        shelves = list(edition.shelves)
        for part, changed in by_part(found.values(), self._parts).items():
            name = self._next(part).index.replace("index", "change")
            file.write(self.folder.path / name, changed)
            change = Change(name, len(changed), counting(changed), upto)
            shelves[part] = replace(shelves[part], changes=(*shelves[part].changes, change))
        version = self._put(Edition(self.folder.next(), upto, tuple(shelves), self._mark))
        self._tend(shelves)
        return version

    def _tend(self, shelves: list[Shelf]) -> None:
        """Begin to make a new base, if one is due and none is being made."""
        due = [part for part, shelf in enumerate(shelves) if self._due(shelf)]
        if due and not self._making:
            shelf = shelves[due[0]]
            made = replace(self._next(due[0]), source=shelf.changes[-1].source)
            self._making = (*made.files, *shelf.files)  # all that must stay until it is done
            work = (due[0], shelf, made)
            self._builder = Thread(target=self._rebuild, args=work, daemon=True)
            self._builder.start()

    def _due(self, shelf: Shelf) -> bool:
        changed = sum(each.members for each in shelf.changes)
        return changed > max(self._fewest, shelf.size // SHARE) or len(shelf.changes) > MOST

    def _rebuild(self, part: int, shelf: Shelf, made: Shelf) -> None:
        """Make a base of what a shelf holds; what changes meanwhile stays behind it."""
        try:
            made = write_base(self.folder.path, made, current(self.folder.path, shelf))
            with self._lock:
                newest = self.folder.edition(self.folder.newest())
                shelves, seen = list(newest.shelves), len(shelf.changes)
                if shelves[part].index == shelf.index:  # else everything was begun anew
                    shelves[part] = replace(made, changes=shelves[part].changes[seen:])
                    next_ = self.folder.next()
                    self._put(newest._replace(version=next_, shelves=tuple(shelves)))
        except Exception as failure:  # noqa: BLE001 - whatever it is, who settles gets to know it
            self._failure = failure
        self._making = ()

    def _follow(self, every_s: float) -> None:
        while not self._closed.wait(every_s):
            try:
                self.publish()
            except (TidingsError, OSError) as failure:
                self._failure = failure

    def _next(self, part: int) -> Shelf:
        self._serial += 1
        return shelf_of(self._serial, part)

    def _put(self, edition: Edition) -> int:
        self.folder.put(edition)
        self.folder.clean(self._making)
        return edition.version

    def _members(self, entries: Iterable[Entry]) -> list[Member]:
        """Read members; a condition takes some 20 us, 0.3 ms where it needs a parser."""
        people, wanted = list[Subscriber](), list[Subscription]()
        for each in entries:
            form = each.form or {}
            try:
                if "subscriber" in form:
                    wanted.append(loads_subscription(form))
                else:
                    people.append(loads_subscriber(form))
            except TidingsError as error:
                self.refused[str(form.get("id"))] = DeadLetter(form, str(error))
        return [self._enrolled(each) for each in members(people, wanted)]

    def _enrolled(self, member: Member) -> Member:
        policy = self._defaults.policy(member.name) if member.subscriber is None else None
        if policy is None:
            return member
        return replace(member, subscriber=Subscriber(member.name, policy))


def _in_part(entry: Entry, part: int, parts: int) -> bool:
    form = entry.form or {}
    return part_of(str(form.get("subscriber", form.get("id"))), parts) == part
