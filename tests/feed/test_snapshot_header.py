"""Snapshots of other versions, of other feeds, or damaged ones are refused."""

import pytest

from tidings.errors import TidingsError
from tidings.feed import FEEDS
from tidings.feed.snapshot_header import FRAME
from tidings.policy import Policy, Subscriber


@pytest.mark.parametrize("kind", FEEDS)
def test_a_foreign_snapshot_is_refused_and_changes_nothing(kind: str) -> None:
    feeds = FEEDS[kind]()
    feeds.enrol(Subscriber("u", Policy(window={"name": "sliding", "length": 3})))
    state = feeds.snapshot()
    start, version = len(FRAME.mark), FRAME.version
    newer = state[:start] + bytes([version + 1]) + state[start + 1 :]
    other = next(name for name in FEEDS if name != kind)
    for wrong, reason in [
        (newer, f"has version {version + 1}, but this release reads {version}"),
        (b"{}", "not a snapshot of feeds"),
        (b"", "not a snapshot of feeds"),
        (FEEDS[other]().snapshot(), f"is of {other} feeds, and these are {kind}"),
        (state + b"x", f"has {len(state) + 1} bytes, not {len(state)}"),
    ]:
        with pytest.raises(TidingsError, match=reason):
            feeds.restore(wrong)
        assert "u" in feeds
        assert feeds.snapshot() == state
