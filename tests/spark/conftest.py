"""Fixtures of the Spark tests."""

from collections.abc import Iterator

import pytest

from tidings.spark.inputs import store_publishers


@pytest.fixture
def unfollowed() -> Iterator[None]:
    """Close the publishers that a test started; its stores are closed after it."""
    yield
    for entry in store_publishers()._entries.values():
        entry.publisher.close()
    store_publishers.cache_clear()
