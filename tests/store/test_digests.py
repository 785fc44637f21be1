"""Digests: written before they are sent, and kept with what came of them."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tidings.store import Store, open_store
from tidings.store.channels import ChannelDraft
from tidings.store.digests import SENT, FixedDigest


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with open_store(address) as opened:
        yield opened


def test_a_digest_is_found_again(store: Store) -> None:
    key = store.channels.put(ChannelDraft("mail", "home", "ada"), 0).key
    assert store.digests.last(key) is None
    first = FixedDigest(key, 1, 4, 9, (1, 3), "id-1", 100)
    second = FixedDigest(key, 5, 9, 9, (5, 9), "id-2", 100)
    store.digests.fix(first)
    store.digests.fix(second)
    assert store.digests.last(key) == second
    assert store.digests.get(key, 1) == first == store.digests.find("id-1")
    assert store.digests.find("id-3") is None
    assert [first.covers(sequence) for sequence in (0, 1, 2, 4, 5)] == [0, 1, 1, 1, 0]
    store.digests.note(first, SENT)
    assert store.digests.get(key, 1) == replace(first, result="")
    store.channels.remove(key)
    assert store.digests.find("id-1") is None


def test_refusals_are_counted_since_the_last_success(store: Store) -> None:
    key = store.channels.put(ChannelDraft("mail", "home", "ada"), 0).key
    for first, result in enumerate(("550", SENT, "550", "551", None), start=1):
        store.digests.fix(FixedDigest(key, first, first, first, (first,), f"id-{first}", 0, result))
    assert store.digests.refused(key) == 2
    assert store.digests.refused("another") == 0


def test_old_digests_are_pruned_but_the_last(store: Store) -> None:
    key = store.channels.put(ChannelDraft("mail", "home", "ada"), 0).key
    for first in (1, 2, 3):
        store.digests.fix(FixedDigest(key, first, first, first, (first,), str(first), first, SENT))
    assert store.digests.prune(3) == 2
    assert store.digests.prune(10) == 0
    assert store.digests.last(key) is not None
