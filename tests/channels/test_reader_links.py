"""Links with which readers act without a token: nothing in them can be changed."""

import hmac
from base64 import urlsafe_b64decode
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.channels.card import Card
from tidings.channels.layouts import DigestLinks
from tidings.channels.reader_links import ACTIONS, LinkOwner, ReaderLinks, seal

OWNER = LinkOwner("main", "k1", "Sw0rdfish")
CARDS = [Card(number, f"title {number}", None, None, None, "") for number in (3, 9)]
BASE = "https://films.example"
actions, numbers = st.sampled_from(ACTIONS), st.integers(0, 3)
keys = st.sampled_from(["a", "b", "ä", ""])


@given(keys, actions, numbers, keys, actions, numbers)
def test_a_seal_belongs_to_one_secret_action_and_number(
    secret: str, action: str, number: int, other: str, other_action: str, other_number: int
) -> None:
    same = (secret, action, number) == (other, other_action, other_number)
    assert (seal(secret, action, number) == seal(other, other_action, other_number)) == same


def test_a_seal_is_a_keyed_hash_that_fits_an_address() -> None:
    sealed = seal("Sw0rdfish", "read", 7)
    assert len(sealed) == 24
    assert {*sealed} <= {*"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"}
    expected = hmac.digest(b"Sw0rdfish", b"read:7", sha256)[:18]
    assert urlsafe_b64decode(sealed) == expected


def test_a_link_names_all_but_the_secret() -> None:
    link = ReaderLinks(BASE).link(OWNER, "pause", 0)
    assert link == f"{BASE}/readers/main/k1/pause/0/{seal('Sw0rdfish', 'pause', 0)}"
    assert "Sw0rdfish" not in link


@pytest.mark.parametrize("base", [BASE, f"{BASE}/", f"{BASE}//"])
def test_an_address_may_end_with_a_slash(base: str) -> None:
    assert ReaderLinks(base).link(OWNER, "read", 1) == ReaderLinks(BASE).link(OWNER, "read", 1)


def test_the_name_of_a_tenant_is_quoted() -> None:
    owner = OWNER._replace(tenant="a/b?c")
    assert ReaderLinks(BASE).link(owner, "read", 1).startswith(f"{BASE}/readers/a%2Fb%3Fc/k1/")


def test_without_an_address_there_are_no_links() -> None:
    assert ReaderLinks().of(OWNER, CARDS, 3) == DigestLinks()
    assert ReaderLinks(None, track=True).of(OWNER, CARDS, 3) == DigestLinks(None, {}, {}, None)


def test_a_message_can_be_paused_and_each_card_dismissed() -> None:
    links = ReaderLinks(BASE)
    found = links.of(OWNER, CARDS, 3)
    assert found.pause == links.link(OWNER, "pause", 0)
    assert found.dismiss == {n: links.link(OWNER, "not-for-me", n) for n in (3, 9)}
    assert (found.visit, found.opened) == ({}, None)


def test_what_is_opened_is_seen_only_if_it_is_tracked() -> None:
    links = ReaderLinks(BASE, track=True)
    found = links.of(OWNER, iter(CARDS), 3)
    assert found.visit == {n: links.link(OWNER, "read", n) for n in (3, 9)}
    assert found.opened == links.link(OWNER, "opened", 3)
    assert found.dismiss.keys() == {3, 9}
