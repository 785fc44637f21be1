"""Who wants which events, in arrays."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Float64s, Int32s, Int64s


class Wanted(NamedTuple):
    """Of event e the matches from `starts[e]` to `starts[e + 1]`, in no order.

    Match m is of subscriber `owners[m]` with `ranks[m]`, by the subscriptions
    `matched[matched_starts[m]:matched_starts[m + 1]]`, all of them numbers.
    """

    starts: Int64s
    owners: Int32s
    ranks: Float64s
    matched_starts: Int64s
    matched: Int32s

    def of(self, event: int) -> Iterator[tuple[int, float, list[int]]]:
        """Give the matches of one event: subscriber, rank, subscriptions."""
        for at in range(self.starts[event], self.starts[event + 1]):
            span = slice(self.matched_starts[at], self.matched_starts[at + 1])
            yield int(self.owners[at]), float(self.ranks[at]), self.matched[span].tolist()

    def above(self, least: float) -> "Wanted":
        """Give those whose ranks are above `least`."""
        return self.only(self.ranks > least)

    def only(self, kept: npt.NDArray[np.bool_]) -> "Wanted":
        """Give some of the matches."""
        if kept.all():
            return self
        counts = np.diff(self.matched_starts)
        return Wanted(
            np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])[self.starts],
            self.owners[kept],
            self.ranks[kept],
            np.concatenate([[0], np.cumsum(counts[kept], dtype=np.int64)]),
            self.matched[np.repeat(kept, counts)],
        )


def joined(parts: Sequence[Wanted]) -> Wanted:
    """Put the matches of the same events together."""
    if len(parts) == 1:
        return parts[0]
    events = [np.repeat(np.arange(len(each.starts) - 1), np.diff(each.starts)) for each in parts]
    counts = np.concatenate([np.diff(each.matched_starts) for each in parts])
    order = np.argsort(np.concatenate(events), kind="stable")
    whose = np.repeat(np.argsort(order, kind="stable"), counts)
    return Wanted(
        np.sum([each.starts for each in parts], axis=0),
        np.concatenate([each.owners for each in parts])[order],
        np.concatenate([each.ranks for each in parts])[order],
        np.concatenate([[0], np.cumsum(counts[order], dtype=np.int64)]),
        np.concatenate([each.matched for each in parts])[np.argsort(whose, kind="stable")],
    )
