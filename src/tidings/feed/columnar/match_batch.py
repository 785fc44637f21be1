"""Matches as arrays, so that thousands of one event need no object each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.feed.protocol import Offer
from tidings.model.records import Event


@dataclass(frozen=True)
class Rows:
    """Matches in order of publication.

    Of each: the subscriber's number, the event's slot, the score, and the number of publications by
    then; `matched[starts[i]:starts[i + 1]]` are the numbers of the subscriptions that matched.
    """

    subscriber: Int32s
    event: Int32s
    score: Float64s
    sequence: Int64s
    starts: Int64s
    matched: Int32s

    def __len__(self) -> int:
        return len(self.subscriber)


def read_offers(
    offers: Sequence[Offer],
    subscriber: Callable[[str], int],
    slot: Callable[[Event], int],
    subscription: Callable[[str], int],
) -> Rows:
    """Give matches as arrays."""
    matched = [[subscription(each) for each in match.matched] for match, _ in offers]
    sizes = np.array([len(each) for each in matched], np.int64)
    return Rows(
        np.array([subscriber(match.subscriber) for match, _ in offers], np.int32),
        np.array([slot(match.event) for match, _ in offers], np.int32),
        np.array([match.score for match, _ in offers], np.float64),
        np.array([now.sequence for _, now in offers], np.int64),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
        np.array([number for each in matched for number in each], np.int32),
    )
