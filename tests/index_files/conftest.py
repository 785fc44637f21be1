"""A store for folders to follow."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.store import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "store.db") as made:
        yield made
