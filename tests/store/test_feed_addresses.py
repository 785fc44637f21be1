"""Secret addresses of feeds: found by what was shown once, and never stored."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.store import Store, open_store
from tidings.store.feed_addresses import FeedAddresses, FeedOwner

ADA, BOB = FeedOwner("main", "ada"), FeedOwner("main", "bob")
OTHER_ADA = FeedOwner("other", "ada")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "tidings.db")) as opened:
        yield opened


@pytest.fixture
def addresses(store: Store) -> FeedAddresses:
    return FeedAddresses(store.database)


def test_an_address_leads_to_its_owner(addresses: FeedAddresses) -> None:
    secrets = {owner: addresses.change(owner, 5) for owner in (ADA, BOB, OTHER_ADA)}
    assert len({*secrets.values()}) == 3
    for owner, secret in secrets.items():
        assert len(secret) == 43  # 256 bits
        assert addresses.find(secret) == owner


@pytest.mark.parametrize("secret", ["", "x", "A" * 43, "\ud800", "ä", "' or 1=1 --"])
def test_any_other_address_leads_to_none(addresses: FeedAddresses, secret: str) -> None:
    addresses.change(ADA, 5)
    assert addresses.find(secret) is None


def test_a_new_address_revokes_the_old_one_of_this_owner(addresses: FeedAddresses) -> None:
    old, other = addresses.change(ADA, 5), addresses.change(OTHER_ADA, 5)
    new = addresses.change(ADA, 6)
    assert new != old
    assert addresses.find(old) is None
    assert addresses.find(new) == ADA
    assert addresses.find(other) == OTHER_ADA


def test_a_revoked_address_leads_to_none(addresses: FeedAddresses) -> None:
    ada, bob = addresses.change(ADA, 5), addresses.change(BOB, 5)
    assert addresses.remove(ADA)
    assert not addresses.remove(ADA)
    assert not addresses.remove(FeedOwner("main", "cy"))
    assert addresses.find(ada) is None
    assert addresses.find(bob) == BOB


def test_only_hashes_are_stored(addresses: FeedAddresses, store: Store) -> None:
    secret = addresses.change(ADA, 5)
    sql = "SELECT hash, tenant, subscriber, created_us FROM feed_addresses"
    rows = store.database.read(lambda session: session.rows(sql))
    assert rows == [(hashlib.sha256(secret.encode()).hexdigest(), "main", "ada", 5)]
