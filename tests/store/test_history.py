"""The history of the catalogue in an SQLite file: changes, versions, compaction and pins."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidings.errors import StoreError, VersionGone
from tidings.store import CatalogueEntry, Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "tidings.db") as opened:
        yield opened


def person(name: str, k: int = 2) -> dict[str, Any]:
    return {"id": name, "policy": {"k": k}}


def wish(name: str, owner: str = "ann", year: int = 2003) -> dict[str, Any]:
    return {"id": name, "subscriber": owner, "where": f"year = {year}"}


def listed(entries: Any) -> list[tuple[int, str, Any]]:
    """Return versions, ids and years; None in place of the year of a removal."""
    found: list[CatalogueEntry] = list(entries)
    return [(e.version, e.id, e.form and e.form.get("where", "")[-4:]) for e in found]


def filled(store: Store) -> Store:
    """Make five changes: two new records, a replacement, a removal, and a new record."""
    store.catalogue.put(wish("s1", year=2001), wish("s2", "bob", 2001))
    store.catalogue.replace(wish("s1", year=2002))
    store.catalogue.remove("subscription", "s2")
    store.catalogue.put(wish("s3", "cleo", 2001))
    return store


def test_a_replacement_is_one_change_and_a_removal_has_no_form(store: Store) -> None:
    history = filled(store).history
    assert history.newest() == 5
    assert listed(history.changes(2)) == [(3, "s1", "2002"), (4, "s2", None), (5, "s3", "2001")]
    assert history.changes(5) == []


def test_changes_are_read_page_by_page(store: Store) -> None:
    history = filled(store).history
    found: list[CatalogueEntry] = []
    while page := history.changes(found[-1].version if found else 0, limit=2):
        assert len(page) == 2 or page[-1].version == 5
        found += page
    assert [entry.version for entry in found] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (0, []),
        (1, [(1, "s1", "2001")]),
        (2, [(1, "s1", "2001"), (2, "s2", "2001")]),
        (3, [(3, "s1", "2002"), (2, "s2", "2001")]),
        (4, [(3, "s1", "2002")]),
        (5, [(3, "s1", "2002"), (5, "s3", "2001")]),
        (None, [(3, "s1", "2002"), (5, "s3", "2001")]),
    ],
)
def test_everything_is_read_as_of_a_version(
    store: Store, version: int | None, expected: list[Any]
) -> None:
    assert listed(filled(store).history.as_of(version)) == expected


@pytest.mark.parametrize("page", [1, 2, 3, 4, 5])
def test_subscribers_come_first_whatever_the_size_of_a_page(
    store: Store, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.store.history._PAGE", page)
    store.catalogue.put(wish("a"), person("z"), wish("b"), person("a"))
    found = [(entry.kind, entry.id) for entry in store.history.as_of()]
    assert found == [
        ("subscriber", "a"),
        ("subscriber", "z"),
        ("subscription", "a"),
        ("subscription", "b"),
    ]


def test_subscribers_are_touched_by_changes_of_their_subscriptions(store: Store) -> None:
    history = filled(store).history
    assert history.touched(0, 5) == ["ann", "bob", "cleo"]
    assert history.touched(2, 3) == ["ann"]
    assert history.touched(3, 4) == ["bob"]
    assert history.touched(5, 5) == []


def test_a_subscription_that_moves_touches_both_subscribers(store: Store) -> None:
    store.catalogue.put(wish("s1", "ann"))
    store.catalogue.replace(wish("s1", "bob"))
    assert store.history.touched(1, 2) == ["ann", "bob"]
    assert listed(store.history.owned(["ann", "bob"], 1)) == [(1, "s1", "2003")]
    assert listed(store.history.owned(["ann"], 2)) == []


@pytest.mark.parametrize("at_once", [1, 2, 500])
def test_subscribers_are_read_with_their_subscriptions_as_of_a_version(
    store: Store, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.store.history._OWNERS_AT_ONCE", at_once)
    filled(store).catalogue.put(person("ann"))
    names = ["bob", "ann", "cleo", "nobody"]
    assert listed(store.history.owned(names, 3)) == [(2, "s2", "2001"), (3, "s1", "2002")]
    assert listed(store.history.owned(names, 6)) == [
        (6, "ann", ""),
        (3, "s1", "2002"),
        (5, "s3", "2001"),
    ]


def test_compaction_keeps_the_current_records_and_later_history(store: Store) -> None:
    history = filled(store).history
    assert history.compact(3) == 3
    assert listed(history.changes(3)) == [(4, "s2", None), (5, "s3", "2001")]
    assert listed(history.as_of(3)) == [(3, "s1", "2002"), (2, "s2", "2001")]
    for read in (history.changes, lambda version: list(history.as_of(version))):
        with pytest.raises(VersionGone, match="version 2 is gone, the oldest kept is 3"):
            read(2)
    with pytest.raises(VersionGone):
        history.touched(2, 4)
    with pytest.raises(VersionGone):
        list(history.owned(["ann"], 2))


def test_compaction_goes_neither_back_nor_beyond_the_newest_version(store: Store) -> None:
    history = filled(store).history
    assert history.compact(3) == 3
    assert history.compact(1) == 3
    assert history.compact(99) == 5
    assert history.changes(5) == []
    assert listed(history.as_of()) == [(3, "s1", "2002"), (5, "s3", "2001")]


def test_the_oldest_pin_holds_compaction_back_until_it_is_released(store: Store) -> None:
    history = store.history
    store.catalogue.put(wish("s1"))
    assert history.pin("slow", 0) == 1
    store.catalogue.put(wish("s2"))
    assert history.pin("fast", 0) == 2
    store.catalogue.put(wish("s3"))
    assert history.compact(3) == 1
    history.unpin("slow")
    history.unpin("unknown")
    assert history.compact(3) == 2
    assert history.pin("fast", 5) == 3
    assert history.compact(3) == 3


def test_a_batch_sees_the_same_version_again_and_a_later_one_the_newest(store: Store) -> None:
    history = store.history
    assert history.pin("q", 3) == 0
    store.catalogue.put(wish("s1"))
    assert history.pin("q", 3) == 0
    assert history.pin("other", 3) == 1
    assert history.pin("q", 4) == 1
    with pytest.raises(StoreError, match=r"batch 3 of query q is no longer pinned; .* batch is 4"):
        history.pin("q", 3)
    history.unpin("q")
    assert history.pin("q", 3) == 1


def test_a_version_that_does_not_exist_yet_is_refused(store: Store) -> None:
    history = filled(store).history
    for read in (history.changes, lambda version: list(history.as_of(version))):
        with pytest.raises(StoreError, match="there is no version 6 yet; the newest is 5"):
            read(6)


def test_records_out_of_order_do_not_loop_for_ever(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index that is damaged returns the same page again."""
    monkeypatch.setattr("tidings.store.history._PAGE", 1)
    monkeypatch.setattr(
        "tidings.store.history._AS_OF",
        "SELECT since, kind, id, form FROM records WHERE coalesce(?, ?, ?, ?) IS NOT NULL LIMIT ?",
    )
    store.catalogue.put(wish("s1"), wish("s2"))
    with pytest.raises(StoreError, match="it is damaged: its records are out of order"):
        list(store.history.as_of())
