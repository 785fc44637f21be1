"""The input of rank methods."""

import numpy as np

from tidings.index.access.kernels.validate import CheckedParts
from tidings.rank.bulk.protocol import IndexExtent


def test_an_extent_knows_the_largest_predicate_of_each_subscription() -> None:
    part, numbers = np.array([0, 3, 1], np.uint8), np.array([1, 0], np.int32)
    extent = IndexExtent.of(5, CheckedParts(part, numbers, np.array([0, 2, 3], np.int32)))
    assert (extent.subscriptions, extent.owners) == (2, 5)
    assert extent.largest_parts.tolist() == [1, 3]
