"""Windows as rows of places in pools: a row twice as wide where a window has outgrown its own."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidings.feeds.cohort import longer, taken
from tidings.feeds.traits import Traits
from tidings.kernels.window_diverse import Codes, Shelf, code_all, measure

Ints = npt.NDArray[np.int64]

NARROW: Final = 8
WIDEST: Final = 256
"""A window of more places does not keep its distances: they are taken anew for each choice."""
COLUMNS: Final = (np.int32, np.int32, np.float64, np.int64)


class Shelves:
    """Pools of windows of 8, 16, 32... places, up to the most that a window can need.

    A place takes 24 bytes. Where distances are kept, each pair of places takes 2 bytes twice: a
    code of one of at most 65,536 different distances; if there are more, 4 bytes twice.
    """

    def __init__(self, most: int, traits: Traits, kept: bool) -> None:
        self._most, self._traits, self._kept = most, traits, kept
        self.pools: list[Shelf] = []
        self._free: list[list[int]] = []
        self._code: type[Any] = np.uint16
        self.codes: Codes = _codes(256)

    @property
    def nbytes(self) -> int:
        """The bytes that the pools hold."""
        return sum(each.nbytes for pool in self.pools for each in pool)

    def width(self, grade: int) -> int:
        """Give how many places a window of a grade has; none below the first."""
        return min(self._most, NARROW << grade) if grade >= 0 else 0

    def grade(self, places: int) -> int:
        """Give the first grade with so many places."""
        grade = 0
        while self.width(grade) < places:
            grade += 1
        return grade

    def keeps(self, grade: int) -> bool:
        """Tell whether windows of a grade keep their distances."""
        return self._kept and self.width(grade) <= WIDEST

    def grades(self, places: Ints) -> npt.NDArray[np.int64]:
        """Give the first grades with so many places; -1 for none."""
        sizes, inverse = np.unique(places, return_inverse=True)
        found = [self.grade(size) if size else -1 for size in sizes.tolist()]
        return np.array(found, np.int64)[inverse]

    def take(self, grade: int) -> int:
        """Give a free row of a grade."""
        self._find_rows(grade, 1)
        return self._free[grade].pop()

    def take_many(self, grade: int, count: int) -> npt.NDArray[np.int32]:
        """Give free rows of a grade."""
        self._find_rows(grade, count)
        return taken(self._free[grade], count)

    def _find_rows(self, grade: int, wanted: int) -> None:
        while len(self.pools) <= grade:
            self.pools.append(self._pool(len(self.pools)))
            self._free.append([])
        if len(self._free[grade]) < wanted:
            pool = self.pools[grade]
            old = len(pool[0])
            size = old + max(wanted, 4, old // 8)
            self.pools[grade] = tuple(longer(each, size) for each in pool)  # type: ignore[assignment]
            self._free[grade] += range(size - 1, old - 1, -1)

    def give_back(self, grade: int, seat: int) -> None:
        """Take a row back, which is empty then; a pool without windows takes no room."""
        self.pools[grade][3][seat] = 0
        self._free[grade].append(seat)
        if len(self._free[grade]) == len(self.pools[grade][3]):
            self.pools[grade], self._free[grade] = self._pool(grade), []

    def move(self, grade: int, seat: int, to: int) -> int:
        """Move a window to a row of another grade, in order of arrival; give its seat there."""
        seat_there = self.take(to)
        if grade >= 0:
            source, target = self.pools[grade], self.pools[to]
            born = source[3][seat]
            order = np.argsort(born, kind="stable")[np.count_nonzero(born == 0) :]
            columns: list[tuple[Any, Any]] = list(zip(source[:4], target[:4], strict=True))
            for before, after in columns:
                after[seat_there, : len(order)] = before[seat, order]
            if self.keeps(to):
                square = source[4][seat][np.ix_(order, order)]
                target[4][seat_there, : len(order), : len(order)] = square
            self.give_back(grade, seat)
        return seat_there

    def measure(self, grade: int, seat: int, place: int) -> None:
        """Take and keep the distances of a match to the others of its window."""
        if self.keeps(grade):
            self._make_room(self.width(grade))
            measure(self.pools[grade], seat, place, self._traits.measures, self.codes)

    def _pool(self, grade: int) -> Shelf:
        width = self.width(grade)
        side = width if self.keeps(grade) else 0
        columns = [np.zeros((0, width), kind) for kind in COLUMNS]
        return (*columns, np.zeros((0, side, side), self._code))  # type: ignore[return-value]

    def _make_room(self, more: int) -> None:
        """See that so many new distances can have codes."""
        _, values, count = self.codes
        wanted = int(count[0]) + more
        if wanted > len(values):
            self.codes = _codes(2 * wanted)
            code_all(self.codes, values[: count[0]])
        if wanted > 1 << 16 and self._code is np.uint16:
            self._code = np.int32
            self.pools = [(*pool[:4], pool[4].astype(np.int32)) for pool in self.pools]


def _codes(size: int) -> Codes:
    table = np.full(2 * size + 1, -1, np.int64)
    return (table, np.zeros(size, np.float64), np.zeros(1, np.int64))
