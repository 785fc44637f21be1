"""The bytes of a snapshot: what was written comes back, and what is not ours is refused."""

import numpy as np
import pytest

from tidings.errors import TidingsError
from tidings.feeds import FEEDS
from tidings.feeds.frame import MAGIC, VERSION, pack, unpack
from tidings.policy import Policy, Subscriber


def test_what_is_packed_comes_back() -> None:
    arrays = {
        "a": np.arange(6, dtype=np.int32).reshape(2, 3),
        "b": np.array([0.1, -np.inf]),
        "c": np.zeros((0, 4), np.int64),
    }
    header, found = unpack("table", pack("table", {"x": ["é", 1]}, arrays))
    assert header == {"x": ["é", 1]}
    assert list(found) == list(arrays)
    for name, each in arrays.items():
        assert found[name].dtype == each.dtype
        assert np.array_equal(found[name], each)


@pytest.mark.parametrize("kind", FEEDS)
def test_a_snapshot_that_is_not_ours_is_refused_and_changes_nothing(kind: str) -> None:
    feeds = FEEDS[kind]()
    feeds.enrol(Subscriber("u", Policy(window={"name": "sliding", "length": 3})))
    state = feeds.snapshot()
    newer = state[: len(MAGIC)] + bytes([VERSION + 1]) + state[len(MAGIC) + 1 :]
    other = next(name for name in FEEDS if name != kind)
    for wrong, reason in [
        (newer, f"has version {VERSION + 1}, and this is version {VERSION}"),
        (b"{}", "no snapshot of feeds"),
        (b"", "no snapshot of feeds"),
        (FEEDS[other]().snapshot(), f"is of {other} feeds, and these are {kind}"),
        (state + b"x", f"should have {len(state)} bytes, and has {len(state) + 1}"),
    ]:
        with pytest.raises(TidingsError, match=reason):
            feeds.restore(wrong)
        assert "u" in feeds
        assert feeds.snapshot() == state
