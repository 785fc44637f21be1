"""ILSH (TKS 5.2.6): a sliding window whose votes are kept up to date as events come and go."""

from collections.abc import Sequence
from typing import Final

from tidings.diversify import Candidate
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.feed import FEEDS
from tidings.model.records import Match
from tidings.policy import Policy, Subscriber
from tidings.window import Moment

_READER: Final = "reader"


class LshWindow:
    """The window of one subscriber in columnar feeds, of which k are chosen after every arrival."""

    def __init__(self, length: int, part: MaxDivRelLsh, k: int) -> None:
        policy = Policy(k=k, window={"name": "sliding", "length": length}, diversify=part)
        self._feeds, self._now = FEEDS["table"](), Moment(0, 0)
        self._feeds.enrol(Subscriber(_READER, policy))

    def offer(self, arrivals: Sequence[Candidate]) -> None:
        """Add new events, in order of publication, one after the other."""
        offers = []
        for arrival in arrivals:
            self._now = Moment(arrival.event.published_us, self._now.sequence + 1)
            offers.append((Match(_READER, arrival.event, arrival.rank, ("s",)), self._now))
        self._feeds.offer_many(offers)

    def chosen(self) -> list[str]:
        """Return the ids of the present choice, in order."""
        return [delivery.event for delivery in self._feeds.current(_READER, self._now)]
