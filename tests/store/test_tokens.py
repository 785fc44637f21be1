"""Tokens: only a hash is kept, and revoked or expired ones are not valid."""

from collections.abc import Iterator

import pytest

from tidings.errors import StoreError
from tidings.store import Store, open_store


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with open_store(address) as opened:
        yield opened


def test_a_token_is_found_until_it_is_revoked(store: Store) -> None:
    assert not store.tokens.exist()
    text = store.tokens.create("admin", 1, label="ops")
    token = store.tokens.find(text, 2)
    assert token is not None
    assert (token.role, token.tenant, token.label) == ("admin", "default", "ops")
    assert store.tokens.listed() == [token]
    assert store.tokens.revoke(token.id, 3)
    assert not store.tokens.revoke(token.id, 4)
    assert store.tokens.find(text, 5) is None
    assert store.tokens.exist()


def test_a_token_expires(store: Store) -> None:
    text = store.tokens.create("subscriber", 1, subscriber="ada", expires_us=10)
    assert store.tokens.find(text, 9) is not None
    assert store.tokens.find(text, 10) is None


@pytest.mark.parametrize("change", [lambda t: t[:-1] + "~", lambda t: t[:-2] + "AA", lambda t: ""])
def test_another_text_is_not_a_token(store: Store, change) -> None:
    text = store.tokens.create("publisher", 1)
    if change(text) != text:
        assert store.tokens.find(change(text), 2) is None


def test_only_a_hash_is_stored(store: Store) -> None:
    secret = store.tokens.create("publisher", 1).split("_", 2)[2]
    rows = store.database.read(lambda session: session.rows("SELECT * FROM tokens"))
    assert secret not in str(rows)


@pytest.mark.parametrize(
    "fields",
    [
        {"role": "king"},
        {"role": "admin", "tenant": "A; DROP"},
        {"role": "admin", "subscriber": "ada"},
        {"role": "subscriber"},
    ],
)
def test_what_no_token_can_have_is_refused(store: Store, fields) -> None:
    with pytest.raises(StoreError):
        store.tokens.create(now_us=1, **fields)


def test_a_tenant_has_a_store_of_its_own(address: str) -> None:
    with open_store(address) as main, open_store(address, tenant="acme") as acme:
        main.catalogue.put({"id": "ada"})
        assert acme.catalogue.page("subscriber") == []
        acme.catalogue.put({"id": "bob"})
        assert [entry.id for entry in main.catalogue.page("subscriber")] == ["ada"]
        assert main.history.store_id() != acme.history.store_id()


def test_tenants_are_those_with_tokens_and_the_default_one(store: Store) -> None:
    assert store.tokens.tenants() == {"default"}
    for tenant in ("acme", "acme", "other"):
        store.tokens.create("admin", 1, tenant=tenant)
    assert store.tokens.tenants() == {"default", "acme", "other"}
