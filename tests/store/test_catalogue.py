"""The catalogue in an SQLite file: versions of changes, and pages of the current entries."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidings.errors import InvalidSubscription, StoreError
from tidings.policy import Policy, Subscriber
from tidings.store import Store, open_store
from tidings.store.catalogue import Catalogue


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "tidings.db") as opened:
        yield opened


@pytest.fixture
def catalogue(store: Store) -> Catalogue:
    return store.catalogue


def person(name: str, k: int = 2) -> dict[str, Any]:
    return {"id": name, "policy": {"k": k}}


def wish(name: str, owner: str = "ann", year: int = 2003) -> dict[str, Any]:
    return {"id": name, "subscriber": owner, "where": f"year = {year}"}


def ids(catalogue: Catalogue, *arguments: Any, **options: Any) -> list[str]:
    return [entry.id for entry in catalogue.page(*arguments, **options)]


def test_every_changed_record_is_a_version(catalogue: Catalogue) -> None:
    assert catalogue.version() == 0
    assert catalogue.put(person("ann"), wish("s1"), wish("s2")) == 3
    assert catalogue.replace(wish("s2", year=2004)) == 4
    found = {entry.id: entry.version for entry in catalogue.page("subscription")}
    assert found == {"s1": 2, "s2": 4}


def test_an_unchanged_record_takes_no_version(catalogue: Catalogue) -> None:
    catalogue.put(wish("s1"), wish("s2"))
    assert catalogue.put(wish("s1")) == 2
    assert catalogue.replace(wish("s2")) == 2
    assert catalogue.load([wish("s1"), wish("s2")]) == 2
    assert catalogue.put(wish("s1"), wish("s3"), wish("s2")) == 3
    entry = catalogue.get("subscription", "s3")
    assert entry is not None
    assert entry.version == 3


def test_calls_without_records_change_nothing(catalogue: Catalogue) -> None:
    catalogue.put(person("ann"))
    seen: list[int] = []
    assert catalogue.put() == catalogue.replace() == catalogue.load([], seen.append) == 1
    assert seen == []


def test_a_subscriber_and_a_subscription_may_have_the_same_id(catalogue: Catalogue) -> None:
    catalogue.put(person("ann"), wish("ann"))
    assert catalogue.remove("subscription", "ann")
    assert catalogue.get("subscription", "ann") is None
    entry = catalogue.get("subscriber", "ann")
    assert entry is not None
    assert (entry.version, entry.form) == (1, {"id": "ann", "policy": {"k": 2}})


def test_a_load_writes_the_last_of_equal_ids_and_counts_all(catalogue: Catalogue) -> None:
    seen: list[int] = []
    forms = [wish("s1", year=2001), wish("s2"), wish("s1", year=2002)]
    assert catalogue.load(iter(forms), seen.append) == 2
    assert seen == [3]
    entry = catalogue.get("subscription", "s1")
    assert entry is not None
    assert entry.form == wish("s1", year=2002)


def test_a_record_may_be_put_again_after_its_removal(catalogue: Catalogue) -> None:
    catalogue.put(wish("s1"))
    assert catalogue.remove("subscription", "s1") is True
    assert catalogue.remove("subscription", "s1") is False
    assert catalogue.version() == 2
    with pytest.raises(InvalidSubscription, match="there is no subscription 's1' to replace"):
        catalogue.replace(wish("s1"))
    assert catalogue.put(wish("s1")) == 3


def test_a_subscriber_is_removed_after_its_subscriptions(store: Store) -> None:
    store.catalogue.put(person("m"), wish("z", "m"), wish("a", "m"), wish("b", "ann"))
    assert store.catalogue.remove("subscriber", "m") is True
    assert [(entry.version, entry.id) for entry in store.history.changes(4)] == [
        (5, "a"),
        (6, "z"),
        (7, "m"),
    ]
    assert ids(store.catalogue, "subscription") == ["b"]


def test_a_subscriber_that_only_owns_subscriptions_cannot_be_removed(catalogue: Catalogue) -> None:
    catalogue.put(wish("s1", "ann"))
    assert catalogue.remove("subscriber", "ann") is False
    assert ids(catalogue, "subscription") == ["s1"]


def test_a_subscription_can_move_to_another_subscriber(catalogue: Catalogue) -> None:
    catalogue.put(wish("s1", "ann"), wish("s2", "ann"))
    catalogue.replace(wish("s1", "bob"))
    assert ids(catalogue, "subscription", "ann") == ["s2"]
    assert ids(catalogue, "subscription", "bob") == ["s1"]


def test_several_entries_are_found_by_their_ids(catalogue: Catalogue) -> None:
    catalogue.put(person("ann"), wish("s2"), wish("s1"), wish("s3"))
    catalogue.remove("subscription", "s3")
    found = catalogue.find("subscription", ["s3", "s2", "ann", "s1", "s2"])
    assert [entry.id for entry in found] == ["s1", "s2"]
    assert catalogue.find("subscription", []) == []


def test_pages_are_in_order_of_id_after_an_id(catalogue: Catalogue) -> None:
    catalogue.put(*map(wish, ("s2", "s10", "S3", "é")), person("s1"))
    assert ids(catalogue, "subscription") == ["S3", "s10", "s2", "é"]
    assert ids(catalogue, "subscription", after="s10", limit=1) == ["s2"]
    assert ids(catalogue, "subscription", after="é") == []
    assert ids(catalogue, "subscriber") == ["s1"]
    assert ids(catalogue, "subscriber", "s1") == ["s1"]


@pytest.mark.parametrize("limit", [0, -1, 1.5, True])
def test_a_page_has_at_least_one_entry(catalogue: Catalogue, limit: Any) -> None:
    with pytest.raises(StoreError, match="limit"):
        catalogue.page("subscriber", limit=limit)


def test_a_refused_call_changes_nothing(catalogue: Catalogue) -> None:
    catalogue.put(wish("s1"))
    with pytest.raises(InvalidSubscription, match="'s1' already exists; replace it instead"):
        catalogue.put(wish("s0"), wish("s1", year=2004))
    with pytest.raises(InvalidSubscription, match="subscriber 'ann' is listed twice"):
        catalogue.replace(person("ann"), person("ann", k=3))
    assert catalogue.version() == 1
    assert ids(catalogue, "subscription") == ["s1"]


def test_a_subscriber_is_paused_and_resumed_in_place(tmp_path: Path) -> None:
    with open_store(tmp_path / "people.db") as store:
        store.catalogue.put(Subscriber("ann", Policy(k=3), [("s", "t")]))
        assert store.pause("ann") == 2
        assert store.pause("ann") == 2  # no change
        entry = store.catalogue.get("subscriber", "ann")
        assert entry is not None
        assert entry.record == Subscriber("ann", Policy(k=3), [("s", "t")], paused=True)
        assert store.resume("ann") == 3
        entry = store.catalogue.get("subscriber", "ann")
        assert entry is not None
        assert entry.form == Subscriber("ann", Policy(k=3), [("s", "t")]).to_dict()
        with pytest.raises(
            InvalidSubscription, match=r"no subscriber 'bob' to pause or resume; .* added"
        ):
            store.pause("bob")
