"""Codes: only the newest one counts, for an hour and five attempts, and there are five a day."""

from collections.abc import Iterator

import pytest

from tidings.model.values import SECOND_US
from tidings.store import Store, open_store
from tidings.store.address_codes import CodeAnswer

HOUR_US = 3_600 * SECOND_US


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with open_store(address) as opened:
        yield opened


def made(store: Store, key: str = "k", address: str = "a@b.example", now_us: int = 0) -> str:
    code = store.address_codes.make(key, address, now_us)
    assert code is not None
    return code


def test_the_right_code_is_used_up(store: Store) -> None:
    code = made(store)
    check = store.address_codes.check
    assert check("k", "A" * 10, 1) is CodeAnswer.WRONG
    assert check("other", code, 1) is CodeAnswer.EXPIRED
    assert check("k", f" {code[:3]}-{code[3:].lower()}", 1) is CodeAnswer.RIGHT
    assert check("k", code, 1) is CodeAnswer.EXPIRED


def test_only_the_newest_code_counts(store: Store) -> None:
    old, new = made(store), made(store)
    if old != new:
        assert store.address_codes.check("k", old, 1) is CodeAnswer.WRONG
    assert store.address_codes.check("k", new, 1) is CodeAnswer.RIGHT


def test_a_code_expires_by_time_and_by_attempts(store: Store) -> None:
    code = made(store)
    assert store.address_codes.check("k", code, HOUR_US) is CodeAnswer.EXPIRED
    code = made(store)
    for _ in range(5):
        assert store.address_codes.check("k", "?", 1) is CodeAnswer.WRONG
    assert store.address_codes.check("k", code, 1) is CodeAnswer.EXPIRED


def test_an_address_gets_five_codes_a_day(store: Store) -> None:
    for number in range(5):
        made(store, f"k{number}")
    assert store.address_codes.make("k9", "a@b.example", 1) is None
    assert made(store, "k9", "c@d.example")
    assert made(store, "k9", now_us=24 * HOUR_US)


def test_no_code_is_in_the_store(store: Store) -> None:
    code = made(store)
    sql = "SELECT key, address, hash FROM address_codes"
    rows = store.database.read(lambda session: session.rows(sql))
    assert code not in str(rows)
    assert "a@b.example" not in str(rows)
