"""Cache of the versions that this process has opened: a new version costs only its deltas."""

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

from tidings.index_files.base_files import open_matcher, read_delta, read_subscribers
from tidings.index_files.manifest import Delta, PartManifest
from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.index_files.subscriber_bundle import SubscriberBundle
from tidings.index_files.subscriber_table import SubscriberTable
from tidings.index_files.versions import IndexFolder, part_of
from tidings.policy import Policy

CACHED_PARTS: Final = 64
"""The number of parts, of all folders, that a process keeps open."""
_SOURCE_VERSIONS: Final = 2**64
"""The versions of a source are below this number."""


class AppliesDeltas(Protocol):
    """A view of a part that follows its deltas."""

    def apply(self, bundles: Sequence[SubscriberBundle]) -> None:
        """Replace bundles by name."""


T = TypeVar("T", bound=AppliesDeltas)


class PartReader(Generic[T]):
    """One part of a folder, moved from version to version; an older one is opened again."""

    def __init__(
        self, folder: IndexFolder, part: int, open_base: Callable[[Path, PartManifest], T]
    ) -> None:
        self._folder, self._part, self._open_base = folder, part, open_base
        self._index: str | None = None
        self._applied: tuple[Delta, ...] = ()
        self._view: T | None = None

    def at(self, version: int) -> T:
        """Return the part as of a version."""
        part = self._folder.manifest(version).parts[self._part]
        view, applied = self._view, self._applied
        self._view = None  # an error must not leave it half updated
        if view is None or self._index != part.index or applied != part.deltas[: len(applied)]:
            view, applied = self._open_base(self._folder.path, part), ()
        for delta in part.deltas[len(applied) :]:
            view.apply(read_delta(self._folder.path / delta.file))
        self._index, self._applied, self._view = part.index, part.deltas, view
        return view


@lru_cache(CACHED_PARTS)
def _matchers(folder: IndexFolder, part: int) -> PartReader[OverlayMatcher]:
    return PartReader(folder, part, open_matcher)


@lru_cache(CACHED_PARTS)
def _tables(folder: IndexFolder, part: int) -> PartReader[SubscriberTable]:
    return PartReader(folder, part, read_subscribers)


@lru_cache(CACHED_PARTS)
def _names_in(delta: Path) -> frozenset[str]:
    return frozenset(bundle.name for bundle in read_delta(delta))


def serve(folder: IndexFolder, version: int, part: int = 0) -> OverlayMatcher:
    """Return the matcher of one part at a version; this process keeps it for the next call."""
    return _matchers(folder, part).at(version)


class FolderPolicies:
    """The policies of all subscribers of a folder at one version of it.

    `version` is that of the source combined with the manifest's fingerprint. The tables are shared
    by this process and move on with the next version, so an object serves one batch.
    """

    def __init__(self, folder: IndexFolder, version: int) -> None:
        manifest = folder.manifest(version)
        self.version = manifest.fingerprint * _SOURCE_VERSIONS + manifest.source
        self.refused = manifest.refused
        self._folder, self._number, self._parts = folder, version, manifest.parts

    @cached_property
    def _tables(self) -> list[SubscriberTable]:
        """The tables of all parts, opened on first use."""
        return [_tables(self._folder, part).at(self._number) for part in range(len(self._parts))]

    def policy(self, name: str) -> Policy | None:
        """Return the policy of a subscriber, or None if there is no such subscriber."""
        return self._tables[part_of(name, len(self._tables))].policy(name)

    def policies_of(self, names: Sequence[str]) -> list[Policy | None]:
        """Return the policies of some subscribers, as `policy` does."""
        by_name, parts = dict[str, Policy | None](), len(self._tables)
        for part, table in enumerate(self._tables):
            own = [name for name in names if part_of(name, parts) == part] if parts > 1 else names
            by_name.update(zip(own, table.policies_of(own), strict=True))
        return [by_name[name] for name in names]

    @property
    def some_paused(self) -> bool:
        """Whether any subscriber is paused."""
        return any(table.paused for table in self._tables)

    def is_paused(self, name: str) -> bool:
        """Return whether a subscriber is paused."""
        return name in self._tables[part_of(name, len(self._tables))].paused

    def changed_since(self, version: int) -> set[str] | None:
        """Return the subscribers that changed after a version, or None if that is unknown.

        It is unknown for another source or other default policies, and once the changes are merged
        into a base.
        """
        fingerprint, since = divmod(version, _SOURCE_VERSIONS)
        if fingerprint != self.version // _SOURCE_VERSIONS or version > self.version:
            return None
        if any(part.source is None or part.source > since for part in self._parts):
            return None
        deltas = (delta for part in self._parts for delta in part.deltas if delta.source > since)
        return set().union(*(_names_in(self._folder.path / delta.file) for delta in deltas))


def forget() -> None:
    """Drop everything that this process has opened."""
    for cache in (_matchers, _tables, _names_in):
        cached: Any = cache
        cached.cache_clear()
