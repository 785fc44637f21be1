"""Spools: numbers without gaps, repetitions that are known, and deletion."""

import pytest

from tidings.errors import StoreError
from tidings.store.spool import NumberedMessage, Spool, SpoolBounds, SpoolEntry


def entry(name: str, mark: str = "", *, may_repeat: bool = True) -> SpoolEntry:
    return SpoolEntry(name, mark, f"message of {name}", may_repeat)


def test_messages_are_numbered_and_deleted_when_they_are_processed(address: str) -> None:
    spool, other = Spool.open(address, "a"), Spool.open(address, "b")
    try:
        assert spool.bounds() == SpoolBounds(1, 1)
        assert spool.append([entry("x"), entry("y")], 7, "state") == 2
        assert spool.append([entry("y"), entry("z")], 8) == 1
        assert (spool.state(), other.state()) == ("state", "")
        assert spool.bounds() == SpoolBounds(1, 4)
        assert spool.page(2, 9, 1) == [NumberedMessage(2, "message of y")]
        spool.delete_before(3)
        spool.delete_before(2)
        assert spool.bounds() == SpoolBounds(3, 4)
        assert [message.number for message in spool.page(1, 9, 9)] == [3]
        assert other.bounds() == SpoolBounds(1, 1)
    finally:
        spool.close()
        other.close()


def test_only_what_may_repeat_is_compared_with_its_mark(address: str) -> None:
    spool = Spool.open(address, "a")
    try:
        assert spool.append([entry("1", "x", may_repeat=False)] * 2, 7) == 2
        assert spool.append([entry("1", "x")], 8) == 0
        assert spool.append([entry("1", "y")], 9) == 1
        spool.forget_marks(before_s=10)
        assert spool.append([entry("1", "y")], 11) == 1
    finally:
        spool.close()


def test_a_spool_that_cannot_be_opened_is_named() -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        Spool.open("sqlite:////nowhere/at/all.db", "a")
