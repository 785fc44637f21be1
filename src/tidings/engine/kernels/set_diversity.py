"""Distances between the last deliveries of each subscriber.

Each subscriber has a ring buffer of its last deliveries, as slots of `EventHashes`:

    ring    subscriber 0:  e4 e9 e2        the next delivery overwrites position counts % width
            subscriber 1:  e9  .  .
    counts  7, 1                           deliveries so far

`references` counts the ring positions that hold an event: at 0, its hashes can go.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.exact_sum import PARTS
from tidings.compiled.jit import kernel
from tidings.compiled.simd import prefetch
from tidings.diversify.kernels.distances import SortedRows, row_distance, weighted_distance

AHEAD: Final = 8
"""Deliveries ahead of which a row is requested: of a million rows, most are not in the cache."""


class DeliveryRings(NamedTuple):
    """For each subscriber a ring buffer of events, and the number of its deliveries so far."""

    ring: Int32s
    counts: Int64s


@kernel
def measure_deliveries(
    rows: SortedRows,
    subscribers: Int64s,
    events: Int64s,
    rings: DeliveryRings,
    references: Int64s,
    sums: Float64s,
) -> None:
    """Add the distances of each delivery to the last ones of its subscriber, then append it.

    Deliveries are pairs of a subscriber and an event, in order. `sums` are, by subscriber, the sum
    of the distances and their number.
    """
    ring, counts = rings
    parts, width = np.empty((2, PARTS)), ring.shape[1]
    for delivery in range(len(subscribers)):
        if delivery + AHEAD < len(subscribers):
            later = subscribers[delivery + AHEAD]
            prefetch(ring, later * width)
            prefetch(counts, later)
            prefetch(sums, 2 * later)
        subscriber, event = subscribers[delivery], events[delivery]
        for position in range(min(width, counts[subscriber])):
            other = ring[subscriber, position]
            # Without weights distances are ratios of counts: no exact sum is needed.
            if len(rows.weights) == 0:
                sums[subscriber, 0] += row_distance(rows, event, other)
            else:
                sums[subscriber, 0] += weighted_distance(rows, event, other, parts)
            sums[subscriber, 1] += 1.0
        position = counts[subscriber] % width
        # The ring is full: its oldest event loses a reference.
        if counts[subscriber] >= width:
            references[ring[subscriber, position]] -= 1
        ring[subscriber, position] = event
        references[event] += 1
        counts[subscriber] += 1
