"""Snapshots: a reader sees the version it holds, whatever is written later."""

from tidings.index.access import Access
from tidings.index.access.snapshot import Snapshot
from tidings.model.records import Event, Subscription

EVENT = Event("e", {"x": 1}, 0)


def wanted(name: str) -> Subscription:
    return Subscription(name, "u", "x = 1")


def test_an_empty_snapshot_has_no_parts() -> None:
    snapshot = Snapshot.empty(5)
    assert (snapshot.version, snapshot.size, snapshot.segments) == (5, 0, ())
    assert (len(snapshot.table.subscriptions), snapshot.vocabulary.terms) == (0, 0)
    assert Snapshot.empty().version == 0


def test_empty_snapshots_share_nothing() -> None:
    one, other = Snapshot.empty(), Snapshot.empty()
    assert one.memtable is not other.memtable
    assert one.vocabulary is not other.vocabulary
    assert one.table is not other.table


def test_a_later_version_has_the_same_parts_and_all_of_the_memtable() -> None:
    access = Access([wanted("a")])
    before = access.snapshot
    access.add(wanted("b"))
    after = access.snapshot
    assert after.memtable is before.memtable
    assert after.size > before.size
    later = before.at(9)
    assert (later.version, later.size) == (9, after.size)
    assert later[:4] == before[:4]


def test_a_snapshot_keeps_its_size_and_version() -> None:
    access = Access([wanted("a")])
    held = access.snapshot
    size, version = held.size, held.version
    access.add(wanted("b"))
    access.remove("a")
    assert (held.size, held.version) == (size, version)
    assert access.snapshot.version > version
    assert [one.id for one in access.matching(EVENT)] == ["b"]
