"""Repair of a folder: damaged and missing files are rebuilt, each as its source was then."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tidings.errors import VersionGone
from tidings.index_files import mapped_file
from tidings.index_files.base_files import read_delta, read_subscribers
from tidings.index_files.manifest import Manifest, PartManifest
from tidings.index_files.mapped_file import Damaged
from tidings.index_files.mapped_matcher import MappedMatcher
from tidings.index_files.subscriber_bundle import read_bundles
from tidings.index_files.versions import IndexFolder

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

    Of an archive only the checksum is verified: whoever builds the next base reads it.
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
