"""The ways of keeping feeds, by name."""

from typing import Final

from tidings.feeds.plain import PlainFeeds
from tidings.feeds.protocol import Feeds
from tidings.feeds.table import TableFeeds

FEEDS: Final[dict[str, type[Feeds]]] = {
    "plain": PlainFeeds,
    "table": TableFeeds,
}
