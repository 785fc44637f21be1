"""The files of bases and deltas: what each holds, written and read."""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tidings.compiled.array_file import Writer
from tidings.index_files import mapped_file
from tidings.index_files.manifest import Manifest, PartManifest
from tidings.index_files.mapped_matcher import BaseIndex, MappedMatcher, build_base
from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.index_files.subscriber_bundle import (
    SubscriberBundle,
    any_counts_published,
    fingerprint,
    read_bundles,
    write_bundles,
)
from tidings.index_files.subscriber_table import SubscriberTable
from tidings.index_files.versions import IndexFolder, part_of


def new_part(serial: int, part: int) -> PartManifest:
    """Return a part whose base is yet to be written, under names made of a serial number."""
    prefix = f"{serial:08d}-{part}"
    return PartManifest(
        f"{prefix}-index.sealed", f"{prefix}-people.sealed", f"{prefix}-archive.sealed"
    )


def write_base(path: Path, part: PartManifest, bundles: Iterable[SubscriberBundle]) -> PartManifest:
    """Write the files of a base of bundles, which come in order of name."""
    members, archive = list(bundles), Writer()
    with collection_paused():
        write_mapped_files(path, part, build_base(members))
        write_bundles(archive, members)
    mapped_file.write(path / part.archive, mapped_file.ARCHIVE, archive)
    return replace(part, size=len(members), counts_published=any_counts_published(members))


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the garbage collector, which would traverse all subscriptions again and again.

    A build allocates millions of objects without cycles, and the more there are, the longer each
    collection takes.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def write_mapped_files(path: Path, part: PartManifest, base: BaseIndex) -> None:
    """Write the two files of a base that are mapped.

    The file of subscribers repeats the uncompiled ones without their subscriptions, so that the
    state stage reads this file alone.
    """
    index, subscribers = Writer(), Writer()
    base.matcher.write(index)
    write_bundles(index.within("others"), base.uncompiled)
    base.subscribers.write(subscribers)
    names = [SubscriberBundle(bundle.name, bundle.subscriber) for bundle in base.uncompiled]
    write_bundles(subscribers.within("others"), names)
    mapped_file.write(path / part.index, mapped_file.INDEX, index)
    mapped_file.write(path / part.subscribers, mapped_file.SUBSCRIBERS, subscribers)


def open_matcher(path: Path, part: PartManifest) -> OverlayMatcher:
    """Return a matcher over the base of a part."""
    return OverlayMatcher(read_base(path, part))


def read_base(path: Path, part: PartManifest) -> BaseIndex:
    """Return the base of two files, which must be of the same subscribers."""
    index = mapped_file.read(path / part.index, mapped_file.INDEX)
    matcher, uncompiled = MappedMatcher.read(index), list(read_bundles(index.within("others")))
    names = path / part.subscribers
    subscribers = SubscriberTable.read(mapped_file.read(names, mapped_file.SUBSCRIBERS))
    if matcher.owners != len(subscribers):
        index.refuse(f"it is of {matcher.owners} subscribers, but {names} has {len(subscribers)}")
    return BaseIndex(matcher, subscribers, uncompiled)


def read_subscribers(path: Path, part: PartManifest) -> SubscriberTable:
    """Return the subscribers of a base without opening its index."""
    reader = mapped_file.read(path / part.subscribers, mapped_file.SUBSCRIBERS)
    table = SubscriberTable.read(reader)
    table.apply(list(read_bundles(reader.within("others"))))
    return table


def write_delta(path: Path, bundles: Iterable[SubscriberBundle]) -> None:
    """Write a file of the bundles that changed."""
    delta = Writer()
    write_bundles(delta, bundles)
    mapped_file.write(path, mapped_file.DELTA, delta)


def read_delta(path: Path) -> list[SubscriberBundle]:
    """Return the bundles of a delta file."""
    return list(read_bundles(mapped_file.read(path, mapped_file.DELTA)))


def current_bundles(path: Path, part: PartManifest) -> list[SubscriberBundle]:
    """Return the bundles of a part with all its deltas applied, in order of name."""
    archive = read_bundles(mapped_file.read(path / part.archive, mapped_file.ARCHIVE))
    by_name = {bundle.name: bundle for bundle in archive}
    for delta in part.deltas:
        by_name |= {bundle.name: bundle for bundle in read_delta(path / delta.file)}
    bundles = [bundle for _, bundle in sorted(by_name.items())]
    return [bundle for bundle in bundles if bundle.subscriber or bundle.subscriptions]


def split_by_part(
    bundles: Iterable[SubscriberBundle], parts: int
) -> dict[int, list[SubscriberBundle]]:
    """Return the bundles of each part that has any."""
    by_part: dict[int, list[SubscriberBundle]] = {}
    for bundle in bundles:
        by_part.setdefault(part_of(bundle.name, parts), []).append(bundle)
    return by_part


def build_folder(path: Path, bundles: Iterable[SubscriberBundle], parts: int = 1) -> IndexFolder:
    """Write a folder with one version of bundles that will not change.

    There is no source; a fingerprint of the policies stands for its version.
    """
    members = list(bundles)
    folder, by_part = IndexFolder(path.resolve()), split_by_part(members, parts)
    written = [write_base(path, new_part(0, part), by_part.pop(part, ())) for part in range(parts)]
    version = fingerprint(bundle.subscriber for bundle in members if bundle.subscriber)
    folder.put(Manifest(1, version, tuple(written)))
    return folder
