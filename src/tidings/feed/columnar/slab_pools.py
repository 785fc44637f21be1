"""Pools of slabs: arrays that are cut alike, one slab for each window, list or ring that holds any.

    pool    0  1    2  3  4  5    6  7    8  9 10 11       capacities of the classes: 2 and 4
            a  a    b  b  b  .    .  .    c  c  c  c       slab 6 is free: its class lists it
                    |
            row b has size 3, start 2 and class 1

Kernels take and release slabs (`kernels.layout`). Where a pool is too short for one they stop; then
it is compacted if much of it is free, and lengthened.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import AnyArray, Int64s
from tidings.compiled.arrays import offsets
from tidings.feed.columnar.kernels.compaction import move_cells
from tidings.feed.columnar.kernels.layout import Slabs

_SMALL_POOL: Final = 1 << 12
"""The most cells by which a pool grows to twice its size."""
_LEAST_GAPS: Final = 8
"""The share of a pool, its reciprocal, that is free before slabs are moved together."""


class SlabColumns(NamedTuple):
    """Where the slabs of a pool are noted: the name of an array of rows, and its columns."""

    array: str
    size: int
    start: int
    slab_class: int


class Pool(NamedTuple):
    """A pool of an object: its slabs, the names of the arrays that are cut alike, and the notes.

    The last array is the last to grow, because kernels go by its length.
    """

    slabs: Slabs
    arrays: tuple[str, ...]
    columns: SlabColumns


class SlabMoves(NamedTuple):
    """Where slabs lie, where they go, and their cells, in the order in which they lie."""

    source: Int64s
    target: Int64s
    length: Int64s


def size_classes(most: int, first: int = 2) -> list[int]:
    """Return sizes from `first` to `most`, each a quarter larger than the one before.

    >>> size_classes(12)
    [2, 3, 4, 5, 6, 7, 8, 10, 12]
    """
    sizes = [min(first, most)]
    while sizes[-1] < most:
        sizes.append(min(most, sizes[-1] + max(1, sizes[-1] // 4)))
    return sizes


def new_slabs(sizes: list[int]) -> Slabs:
    """Return an empty pool with these size classes."""
    return Slabs(np.array(sizes, np.int64), np.full(len(sizes), -1), np.zeros(1, np.int64))


def assign_slabs(owner: Any, pool: Pool, rows: Int64s, spare: int = 0) -> None:
    """Note new slabs for rows by their sizes, with `spare` more cells; the arrays stay as they are.

    A size of 0 gets no slab: its class is -1.
    """
    slabs, (array, size, start, slab_class) = pool.slabs, pool.columns
    notes = getattr(owner, array)
    sizes = notes[rows, size].astype(np.int64)
    wanted = np.minimum(sizes + spare, slabs.capacity[-1])
    classes = np.where(sizes > 0, np.searchsorted(slabs.capacity, wanted), -1)
    starts = int(slabs.used[0]) + offsets(np.where(sizes > 0, slabs.capacity[classes], 0))
    notes[rows, start], notes[rows, slab_class] = starts[:-1], classes
    slabs.used[0] = starts[-1]


def reserve_slab(owner: Any, pool: Pool, row: int) -> None:
    """Make room for a slab that is one class larger than that of a row."""
    slabs, classes = pool.slabs, getattr(owner, pool.columns.array)[:, pool.columns.slab_class]
    size_class = min(int(classes[row]) + 1, len(slabs.capacity) - 1)
    capacity = int(slabs.capacity[size_class])
    if slabs.used[0] + capacity > len(getattr(owner, pool.arrays[-1])):
        if has_many_gaps(slabs, classes):
            compact(owner, pool)
        lengthen(owner, pool.arrays, pool_size(int(slabs.used[0]) + capacity))


def has_many_gaps(slabs: Slabs, classes: Int64s) -> bool:
    """Return whether much of a pool is free slabs; `classes` are those of all rows.

    Moving the slabs of a growing pool together takes longer than filling it, and where all of them
    grow, those that they leave are taken by others.
    """
    owned = np.append(slabs.capacity, 0)[classes].sum()  # -1 is the class of a row without one
    return bool(_LEAST_GAPS * (slabs.used[0] - owned) > slabs.used[0])


def compact(owner: Any, pool: Pool, rows: Int64s | None = None, first_cell: int = 0) -> SlabMoves:
    """Move the slabs of some rows, or of all, together; return the moves."""
    slabs, (array, _, start, slab_class) = pool.slabs, pool.columns
    notes = getattr(owner, array)
    if rows is None:
        rows = np.flatnonzero(notes[:, slab_class] >= 0)
    rows = rows[np.argsort(notes[rows, start])]
    lengths = slabs.capacity[notes[rows, slab_class]]
    targets = first_cell + offsets(lengths)
    moves = SlabMoves(notes[rows, start].astype(np.int64), targets[:-1], lengths)
    notes[rows, start] = moves.target
    slabs.used[0], slabs.free[:] = targets[-1], -1
    # Each array once: one may have two names, as `score` and `key` do without decay.
    for cells in {id(cells): cells for cells in _arrays(owner, pool.arrays)}.values():
        move_cells(cells, *moves)
    return moves


def pool_size(least: int) -> int:
    """Return how long to make a pool: an eighth more than it needs, or twice that if it is small.

    A small pool that grew by eighths would be compacted a hundred times on its way.
    """
    return least + max(least // 8, min(least, _SMALL_POOL))


def lengthen(owner: Any, arrays: tuple[str, ...], size: int) -> None:
    """Lengthen arrays of an object to a size, unless they are that long."""
    for name in arrays:
        if size > len(getattr(owner, name)):
            setattr(owner, name, lengthened(getattr(owner, name), size))


def lengthened(pool: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return the pool with zeros behind; in place where the system can do that."""
    pool.resize((size, *pool.shape[1:]), refcheck=False)
    return pool


def _arrays(owner: Any, names: tuple[str, ...]) -> list[AnyArray]:
    return [getattr(owner, name) for name in names]
