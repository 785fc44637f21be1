"""The files of bases, written and read again."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tidings.compiled.array_file import Damaged, Writer
from tidings.index_files import mapped_file
from tidings.index_files.archive import read_members, write_members
from tidings.index_files.mapped_matcher import Base, Sealed, seal
from tidings.index_files.overlay_matcher import Served
from tidings.index_files.subscriber_bundle import Member, counting, mark_of
from tidings.index_files.subscriber_table import SubscriberTable
from tidings.index_files.versions import Edition, Folder, Shelf, part_of


def shelf_of(serial: int, part: int) -> Shelf:
    """Name the files of a base."""
    begin = f"{serial:08d}-{part}"
    return Shelf(f"{begin}-index.sealed", f"{begin}-people.sealed", f"{begin}-archive.sealed")


def write_base(path: Path, shelf: Shelf, given: Iterable[Member]) -> Shelf:
    """Write the files of a base of members, whose names are in order."""
    everybody, archive = list(given), Writer()
    write_sealed(path, shelf, seal(everybody))
    write_members(archive, everybody)
    mapped_file.write(path / shelf.archive, mapped_file.ARCHIVE, archive)
    return replace(shelf, size=len(everybody), counting=counting(everybody))


def write_sealed(path: Path, shelf: Shelf, sealed: Sealed) -> None:
    """Write the two files of a base that are mapped."""
    index, people = Writer(), Writer()
    sealed.base.write(index)
    write_members(index.within("others"), sealed.others)
    sealed.people.write(people)
    others = [Member(each.name, each.subscriber) for each in sealed.others]
    write_members(people.within("others"), others)
    mapped_file.write(path / shelf.index, mapped_file.INDEX, index)
    mapped_file.write(path / shelf.people, mapped_file.PEOPLE, people)


def read_base(path: Path, shelf: Shelf) -> Served:
    """Give what a base answers."""
    return Served(read_sealed(path, shelf))


def read_sealed(path: Path, shelf: Shelf) -> Sealed:
    """Return the base of two files, which must be of the same people."""
    index, people = mapped_file.read(path / shelf.index, mapped_file.INDEX), path / shelf.people
    base, others = Base.read(index), list(read_members(index.within("others")))
    everybody = SubscriberTable.read(mapped_file.read(people, mapped_file.PEOPLE))
    if base.people != len(everybody):
        index.refuse(f"it is of {base.people} people, and {people} has {len(everybody)}")
    return Sealed(base, everybody, others)


def read_subscribers(path: Path, shelf: Shelf) -> SubscriberTable:
    """Return the subscribers of a base; its index is not touched."""
    reader = mapped_file.read(path / shelf.people, mapped_file.PEOPLE)
    table = SubscriberTable.read(reader)
    table.apply(list(read_members(reader.within("others"))))
    return table


def write_change(path: Path, members: Iterable[Member]) -> None:
    """Write a file of members that changed."""
    change = Writer()
    write_members(change, members)
    mapped_file.write(path, mapped_file.CHANGE, change)


def read_change(path: Path) -> list[Member]:
    """Return the members of a file of changes."""
    return list(read_members(mapped_file.read(path, mapped_file.CHANGE)))


def current(path: Path, shelf: Shelf) -> list[Member]:
    """Give the members of a shelf with all its changes, in order of their names."""
    whole = read_members(mapped_file.read(path / shelf.archive, mapped_file.ARCHIVE))
    found = {each.name: each for each in whole}
    for change in shelf.changes:
        found |= {each.name: each for each in read_change(path / change.file)}
    return [each for _, each in sorted(found.items()) if each.subscriber or each.subscriptions]


def is_sound(path: Path, shelf: Shelf, name: str) -> bool:
    """Tell whether one of the files of a shelf is there and can be used; it is read once.

    Of an archive only the checksum is looked at: whoever makes the next base reads it.
    """
    try:
        if name == shelf.index:
            index = mapped_file.read(path / name, mapped_file.INDEX)
            Base.read(index)
            list(read_members(index.within("others")))
        elif name == shelf.people:
            read_subscribers(path, shelf)
        elif name == shelf.archive:
            mapped_file.read(path / name, mapped_file.ARCHIVE)
        else:
            read_change(path / name)
    except Damaged:
        return False
    return True


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
