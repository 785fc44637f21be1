"""The implementations of feeds, by name."""

from typing import Final

from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.plain import PlainFeeds
from tidings.feed.protocol import Feeds

FEEDS: Final[dict[str, type[Feeds]]] = {
    "plain": PlainFeeds,
    "table": TableFeeds,
}
