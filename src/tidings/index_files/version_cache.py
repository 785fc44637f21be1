"""What a process has read of a folder, kept for the next batch: going on costs the changes only."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

from tidings.index_files.base_files import read_base, read_change, read_subscribers
from tidings.index_files.overlay_matcher import Served
from tidings.index_files.subscriber_bundle import Member
from tidings.index_files.subscriber_table import SubscriberTable
from tidings.index_files.versions import Change, Folder, Shelf, part_of
from tidings.policy import Policy

MOST: Final = 64
"""So many parts, of all folders, a process keeps."""
_SOURCES: Final = 2**64
"""So many versions a source may have."""


class Follows(Protocol):
    """What takes changes."""

    def apply(self, changed: Sequence[Member]) -> None:
        """Put members in the places of those that have their names."""


T = TypeVar("T", bound=Follows)


class Reader(Generic[T]):
    """One part of a folder as of one version after the other; older ones are read anew."""

    def __init__(self, folder: Folder, part: int, begin: Callable[[Path, Shelf], T]) -> None:
        self._folder, self._part, self._begin = folder, part, begin
        self._index: str | None = None
        self._done: tuple[Change, ...] = ()
        self._held: T | None = None

    def at(self, version: int) -> T:
        """Give the part as it is at a version."""
        shelf = self._folder.edition(version).shelves[self._part]
        held, done = self._held, self._done
        self._held = None  # until all is done
        if held is None or self._index != shelf.index or done != shelf.changes[: len(done)]:
            held, done = self._begin(self._folder.path, shelf), ()
        for change in shelf.changes[len(done) :]:
            held.apply(read_change(self._folder.path / change.file))
        self._index, self._done, self._held = shelf.index, shelf.changes, held
        return held


@lru_cache(MOST)
def _servers(folder: Folder, part: int) -> Reader[Served]:
    return Reader(folder, part, read_base)


@lru_cache(MOST)
def _names(path: Path) -> frozenset[str]:
    """Give who is in a file of changes."""
    return frozenset(each.name for each in read_change(path))


@lru_cache(MOST)
def _tables(folder: Folder, part: int) -> Reader[SubscriberTable]:
    return Reader(folder, part, read_subscribers)


def serve(folder: Folder, version: int, part: int = 0) -> Served:
    """Give what answers for one part at a version; this process keeps it for the next call."""
    return _servers(folder, part).at(version)


class FolderPolicies:
    """The policies of all subscribers of a folder at one version of it.

    `version` is that of the source combined with the manifest's fingerprint. The tables are shared
    by this process and move on with the next version, so an object serves one batch.
    """

    def __init__(self, folder: Folder, version: int) -> None:
        edition = folder.edition(version)
        self.version = edition.mark * _SOURCES + edition.source
        self._path, self._shelves = folder.path, edition.shelves
        parts = range(len(edition.shelves))
        self._tables = [_tables(folder, part).at(version) for part in parts]

    def policy(self, name: str) -> Policy | None:
        """Return the policy of a subscriber, or None if there is no such subscriber."""
        return self._tables[part_of(name, len(self._tables))].policy(name)

    def changed_since(self, version: int) -> set[str] | None:
        """Return the subscribers that changed after a version, or None if that is unknown.

        It is unknown for another source or other default policies, and once the changes are merged
        into a base.
        """
        mark, since = divmod(version, _SOURCES)
        bases = [each.source for each in self._shelves]
        if mark != self.version // _SOURCES or version > self.version:
            return None
        if any(each is None or each > since for each in bases):
            return None
        files = (
            change.file
            for shelf in self._shelves
            for change in shelf.changes
            if change.source > since
        )
        return set().union(*(_names(self._path / each) for each in files))


def forget() -> None:
    """Let go of everything that this process has read."""
    for kept in (_servers, _tables, _names):
        cached: Any = kept
        cached.cache_clear()
