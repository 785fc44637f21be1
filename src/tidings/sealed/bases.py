"""The files of bases, written and read again."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tidings.sealed import archive, file
from tidings.sealed.base import Sealed, seal
from tidings.sealed.folder import Edition, Folder, Shelf, part_of
from tidings.sealed.member import Member, counting, mark_of
from tidings.sealed.roll import Roll
from tidings.sealed.served import Served


def shelf_of(serial: int, part: int) -> Shelf:
    """Name the files of a base."""
    begin = f"{serial:08d}-{part}"
    return Shelf(f"{begin}-index.sealed", f"{begin}-people.sealed", f"{begin}-archive.sealed")


def write_base(path: Path, shelf: Shelf, given: Iterable[Member]) -> Shelf:
    """Write the files of a base of members, whose names are in order."""
    everybody = list(given)
    sealed = seal(everybody)
    file.write(path / shelf.index, (sealed.base, sealed.others))
    others = [Member(each.name, each.subscriber) for each in sealed.others]
    file.write(path / shelf.people, (sealed.people, others))
    file.write(path / shelf.archive, archive.chunks(everybody))
    return replace(shelf, size=len(everybody), counting=counting(everybody))


def read_base(path: Path, shelf: Shelf) -> Served:
    """Give what a base answers."""
    base, others = file.read(path / shelf.index)
    people, _ = file.read(path / shelf.people)
    return Served(Sealed(base, people, others))


def read_roll(path: Path, shelf: Shelf) -> Roll:
    """Give who is in a base; its index is not touched."""
    return Roll(*file.read(path / shelf.people))


def current(path: Path, shelf: Shelf) -> list[Member]:
    """Give the members of a shelf with all its changes, in order of their names."""
    found = {each.name: each for each in archive.unpacked(file.read(path / shelf.archive))}
    for change in shelf.changes:
        found |= {each.name: each for each in file.read(path / change.file)}
    return [each for _, each in sorted(found.items()) if each.subscriber or each.subscriptions]


def by_part(given: Iterable[Member], parts: int) -> dict[int, list[Member]]:
    """Give members part by part, those parts that have some."""
    found: dict[int, list[Member]] = {}
    for each in given:
        found.setdefault(part_of(each.name, parts), []).append(each)
    return found


def seal_folder(path: Path, given: Iterable[Member], parts: int = 1) -> Folder:
    """Make a folder with one version of members that will not change.

    In the place of a source's version stands a number that their policies decide.
    """
    everybody = list(given)
    folder, split = Folder(path.resolve()), by_part(everybody, parts)
    shelves = [write_base(path, shelf_of(0, part), split.pop(part, ())) for part in range(parts)]
    mark = mark_of(each.subscriber for each in everybody if each.subscriber)
    folder.put(Edition(1, mark, tuple(shelves)))
    return folder
