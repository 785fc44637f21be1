"""What tests of streams over stores leave behind is ended."""

from collections.abc import Iterator

import pytest

from tidings.spark.match_stage.store_followers import followed


@pytest.fixture
def unfollowed() -> Iterator[None]:
    """End the publishers that a test began; its stores are closed after it."""
    yield
    for known in followed()._known.values():
        known.publisher.close()
    followed.cache_clear()
