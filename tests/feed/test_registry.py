"""The implementations of feeds by name, each of which begins empty."""

import pytest

from tidings.errors import TidingsError
from tidings.feed.registry import FEEDS
from tidings.policy import Policy, Subscriber
from tidings.window import Moment


@pytest.mark.parametrize("name", FEEDS)
def test_feeds_begin_empty_and_know_their_subscribers(name: str) -> None:
    feeds = FEEDS[name]()
    assert feeds.name == name
    assert (len(feeds), "ada" in feeds, dict(feeds.set_aside)) == (0, False, {})
    assert feeds.advance(Moment(10, 0)) == []
    assert feeds.offer_many([]) == []
    feeds.enrol(Subscriber("ada", Policy()))
    assert (len(feeds), "ada" in feeds) == (1, True)
    assert feeds.current("ada", Moment(10, 0)) == []
    feeds.drop("ada")
    assert (len(feeds), "ada" in feeds) == (0, False)


@pytest.mark.parametrize("name", FEEDS)
def test_feeds_of_another_kind_are_refused(name: str) -> None:
    feeds = FEEDS[name]()
    for other, kind in FEEDS.items():
        state = kind().snapshot()
        if other == name:
            feeds.restore(state)
        else:
            with pytest.raises(TidingsError, match=f"of {other} feeds, and these are {name}"):
                feeds.restore(state)
