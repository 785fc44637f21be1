"""Makes anew what is damaged or missing in a folder: each version as its source was then."""

from collections.abc import Callable
from dataclasses import replace

from tidings.errors import VersionGone
from tidings.index_files.base_files import is_sound
from tidings.index_files.mapped_file import Damaged
from tidings.index_files.versions import Edition, Folder, Shelf

Make = Callable[[Edition, int], Shelf]
"""Makes the base of a part as an edition shows it; `VersionGone` or `Damaged` if it cannot."""


def mend(folder: Folder, make: Make) -> set[int]:
    """Mend all that some batch may ask for; give the versions that cannot be made again.

    Batches that are pinned to a version see what they saw. A file that many versions share is
    mended once for all of them.
    """
    mending, lost = _Mending(folder, make), set[int]()
    for version in sorted(folder.needed()):
        try:
            mending.mend(folder.edition(version))
        except (VersionGone, Damaged):
            lost.add(version)
    return lost


class _Mending:
    """Goes through versions from old to new, with the bases that it has made."""

    def __init__(self, folder: Folder, make: Make) -> None:
        self._folder, self._make = folder, make
        self._sound: dict[str, bool] = {}
        self._made: dict[str, tuple[int, Shelf]] = {}

    def mend(self, edition: Edition) -> None:
        shelves = tuple(self._mended(edition, part) for part in range(len(edition.shelves)))
        if shelves != edition.shelves:
            self._folder.put(edition._replace(shelves=shelves))

    def _mended(self, edition: Edition, part: int) -> Shelf:
        """Give a shelf that is whole: a new base behind what is damaged, and the changes since."""
        shelf = edition.shelves[part]
        damaged = [name for name in shelf.files if not self._is_sound(shelf, name)]
        if not damaged:
            return shelf
        if damaged[-1] not in self._made:
            self._made[damaged[-1]] = edition.source, self._make(edition, part)
        source, base = self._made[damaged[-1]]
        return replace(base, changes=tuple(each for each in shelf.changes if each.source > source))

    def _is_sound(self, shelf: Shelf, name: str) -> bool:
        if name not in self._sound:
            self._sound[name] = is_sound(self._folder.path, shelf, name)
        return self._sound[name]
