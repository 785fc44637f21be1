"""Distances between what each of many people got last."""

from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Int64s
from tidings.compiled.exact_sum import PARTS
from tidings.compiled.jit import kernel
from tidings.diversify.kernels.distances import Rows, merged, weighed

Rings = tuple[npt.NDArray[np.int32], Int64s]
"""A row for each person: the last rows it got, in turn; and how many it ever got."""


@kernel
def follow(rows: Rows, got: tuple[Int64s, Int64s], rings: Rings, held: Int64s, sums: Any) -> None:
    """Add up the distances of each row that a person got to the last ones, and let it follow them.

    `got` are persons and rows, in order; `held` counts in how many places of rings a row stands;
    `sums` are those of the distances and how many they are.
    """
    ring, sizes = rings
    parts, width = np.empty((2, PARTS)), ring.shape[1]
    for each in range(len(got[0])):
        person, row = got[0][each], got[1][each]
        for place in range(min(width, sizes[person])):
            if len(rows[4]) == 0:
                sums[0] += merged(rows, row, ring[person, place])
            else:
                sums[0] += weighed(rows, row, ring[person, place], parts)
            sums[1] += 1.0
        place = sizes[person] % width
        if sizes[person] >= width:
            held[ring[person, place]] -= 1
        ring[person, place] = row
        held[row] += 1
        sizes[person] += 1
