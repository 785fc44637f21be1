"""Addresses of stores: which ones are read, and which of their parts are shown."""

from pathlib import Path

import pytest

from tidings.errors import InvalidForm, StoreError
from tidings.store.address import read_address


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgres://ann:p%40ss@host:5432/db", "postgresql://host/db"),
        ("postgresql://ann@one,two:1/db?sslmode=require", "postgresql://one,two/db"),
        ("postgresql:///db?host=/tmp", "postgresql:///tmp/db"),
        ("postgresql://[::1]:5432/db", "postgresql://[::1]/db"),
    ],
)
def test_only_host_and_database_are_shown(text: str, shown: str) -> None:
    address = read_address(text)
    assert (address.url, str(address)) == (text, shown)
    assert "ann" not in repr(address)


def test_secrets_are_hidden_in_texts() -> None:
    hide = read_address("postgresql://addison:pass@host/db?sslpassword=other").hide
    assert hide("user addison with pass or other at host") == "user *** with *** or *** at host"


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ann:p/ss@host/db",
        "postgresql://ann:p@ss@host/db",
        "postgresql://host/db?colour=red",
        "postgresql://host/db?sslmode",
        "postgresql://host/a=b",
        "sqlite:///ann:pass@host",
        "sqlite:///a.db?mode=rw",
        "ann:pass@host",
        "a\nb",
    ],
)
def test_an_ambiguous_address_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(StoreError, match="cannot be read; write a path") as refused:
        read_address(text)
    assert text not in str(refused.value)
    assert "p@ss" not in str(refused.value)


def test_relative_paths_start_at_the_base_folder(tmp_path: Path) -> None:
    address = read_address("sqlite:///a%20b.db?mode=ro", base=tmp_path)
    assert (address.file, address.read_only) == (tmp_path / "a b.db", True)
    with pytest.raises(InvalidForm, match=r"the store cannot be read; write sqlite:///path"):
        read_address("a.db", base=tmp_path, label="the store", error=InvalidForm)
    with pytest.raises(InvalidForm):
        read_address("postgresql://host", base=tmp_path, error=InvalidForm)
