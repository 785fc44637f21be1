"""Opening of stores by address."""

import contextlib
from pathlib import Path
from typing import Any

import pytest

from tidings.errors import StoreError, TidingsError
from tidings.store import open_store


def test_every_form_of_a_path_opens_the_same_store(tmp_path: Path) -> None:
    path = tmp_path / "a b.db"
    with open_store(path) as store:
        store.catalogue.put({"id": "a"})
    quoted = str(path).replace(" ", "%20")
    with contextlib.chdir(tmp_path):
        for address in (str(path), f"sqlite:///{quoted}", "sqlite:///a%20b.db", "a b.db"):
            with open_store(address) as store:
                assert store.catalogue.version() == 1
                assert store.database.name.endswith("a b.db")
    assert {path.name for path in tmp_path.iterdir()} == {"a b.db"}


@pytest.mark.parametrize("address", ["mysql://host/db", "sqlite://host", "http://x"])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(
        StoreError, match="the address of a store cannot be read; write a path, sqlite:///path"
    ):
        open_store(address)


@pytest.mark.parametrize("address", ["", ":memory:", "sqlite:///", "sqlite:///:memory:"])
def test_an_address_that_names_no_file_is_refused(address: str) -> None:
    with pytest.raises(StoreError, match="names no file, but a store must be durable"):
        open_store(address)


def test_leaving_the_block_closes_the_store(tmp_path: Path) -> None:
    with open_store(tmp_path / "t.db") as store:
        store.catalogue.put({"id": "a"})
    with pytest.raises(StoreError, match="is closed; open it again"):
        store.catalogue.version()


@pytest.mark.parametrize("value", [None, 7, "text", [1.5], ["text"], [None], {"a": 1}])
def test_only_records_are_written(tmp_path: Path, value: Any) -> None:
    with open_store(tmp_path / "store.db") as store:
        for write in (
            lambda: store.notifications.append("q", 0, value),
            lambda: store.notifications.append("q", 0, late=value),
            lambda: store.notifications.append("q", 0, dead=value),
            lambda: store.catalogue.load(value),
            lambda: store.letters.give_back(value),
            lambda: store.letters.publish_again(value, 0),
        ):
            with pytest.raises(TidingsError):
                write()
        assert store.notifications.last_batch("q") is None
        assert store.catalogue.version() == 0
