"""Records of subscriptions by number, and of their owners: what their ranks are made of."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_file import Reader, Writer
from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.growable import grown
from tidings.rank.bulk.kernels.rank import (
    MAX,
    MEAN,
    MIN,
    PERSON,
    ROW,
    SUM,
    Book,
    Hits,
    Ranked,
    rank_events,
)
from tidings.rank.matches import Matches

AGGREGATES: Final = {"max": MAX, "mean": MEAN, "min": MIN, "sum": SUM}
MOST_WORTH: Final = 1e101
"""No worth is larger: scores of the model end at 1e100, and rounding may add a little."""
EPOCHS: Final = 2_000_000_000
NOTHING: Final[Float64s] = np.empty(0)


class Layout(NamedTuple):
    """Subscriptions by number: their owners, worths, and the others that each strictly covers."""

    numbers: Int32s
    owners: Int32s
    worths: Float64s
    starts: Int64s
    covered: Int32s

    @classmethod
    def without_covers(
        cls, numbers: Sequence[int], owners: Sequence[int], worths: Sequence[float]
    ) -> "Layout":
        """Lay subscriptions of which all count."""
        return cls(
            np.array(numbers, np.int32),
            np.array(owners, np.int32),
            np.array(worths, np.float64),
            np.zeros(len(numbers) + 1, np.int64),
            np.empty(0, np.int32),
        )


class Ledger:
    """The records of all subscriptions whose owners' ranks are made in the same way."""

    def __init__(self) -> None:
        self._rows = _fresh_rows(64)
        self._covered: Int32s = np.empty(64, np.int32)
        self._people = np.zeros(64, PERSON)
        self._epoch: Int32s = np.zeros(1, np.int32)
        self._used = self._unused = 0

    def lay(self, layout: Layout) -> None:
        """Write all subscriptions of some owners; what these no longer have must be cleared."""
        numbers, sizes = layout.numbers, np.diff(layout.starts)
        self._make_room(int(numbers.max(initial=-1)) + 1, self._used + len(layout.covered))
        self._unused += int(self._rows["size"][numbers].sum())
        for name, column in zip(("owner", "worth", "size"), (*layout[1:3], sizes), strict=True):
            self._rows[name][numbers] = column
        self._rows["first"][numbers] = self._used + layout.starts[:-1]
        self._covered[self._used : self._used + len(layout.covered)] = layout.covered
        self._used += len(layout.covered)
        if 2 * self._unused > self._used:
            self._compact()

    def aggregate(self, owner: int, name: str) -> None:
        """Say how the worths of an owner's most specific subscriptions become a rank."""
        self._people = grown(self._people, owner + 1)
        self._people["aggregate"][owner] = AGGREGATES[name]

    def clear(self, numbers: Sequence[int]) -> None:
        """Forget subscriptions; their numbers may come again."""
        known = np.array([each for each in numbers if each < len(self._rows)], np.int64)
        self._unused += int(self._rows["size"][known].sum())
        self._rows["owner"][known], self._rows["size"][known] = -1, 0

    def rank(self, numbers: Int32s, starts: Int64s, worths: Float64s = NOTHING) -> Matches:
        """Rank events by their subscriptions, which are given event by event."""
        if self._epoch[0] > EPOCHS - len(starts):
            self._rows["stamp"] = self._people["stamp"] = self._epoch[0] = 0
        self._make_room(int(numbers.max(initial=-1)) + 1, 0)
        out = _ranked(len(numbers), len(starts))
        book = Book(self._rows, self._covered, self._people, self._epoch)
        rank_events(book, Hits(numbers, starts, worths), out)
        size = int(out.starts[-1])
        ends = np.cumsum(out.counts[:size], dtype=np.int64)
        matched = out.matched[: ends[-1] if size else 0]
        ends = np.concatenate([[0], ends])
        return Matches(out.starts, out.owners[:size], out.ranks[:size], ends, matched)

    def write(self, writer: Writer, numbers: int, owners: int) -> None:
        """Add the records of so many subscriptions and owners to a file, without stamps."""
        rows, held = _fresh_rows(numbers), self._rows[:numbers]
        for name in ("worth", "owner", "size"):
            rows[name][: len(held)] = held[name]
        sizes = rows["size"].astype(np.int64)
        ends = np.cumsum(sizes)
        first = np.zeros(numbers, np.int64)
        first[: len(held)] = held["first"]
        old = np.repeat(first - (ends - sizes), sizes) + np.arange(sizes.sum())
        rows["first"] = ends - sizes
        people, known = np.zeros(owners, PERSON), self._people[:owners]
        people["aggregate"][: len(known)] = known["aggregate"]
        writer.array("rows", rows)
        writer.array("covered", self._covered[old])
        writer.array("owners", people)

    @classmethod
    def read(cls, reader: Reader, numbers: int, owners: int) -> "Ledger":
        """Return the records of so many subscriptions and owners from a file.

        A stamp of an epoch to come would make kernels follow places that nobody wrote; so all
        stamps must be 0, as must the epoch.
        """
        made = cls()
        rows, people = reader.array("rows", ROW, numbers), reader.array("owners", PERSON, owners)
        covered = reader.numbers("covered", None, numbers)
        reader.within_bounds("rows", rows["owner"], owners, -1)
        reader.finite("rows", rows["worth"], MOST_WORTH)
        sizes = rows["size"].astype(np.int64)
        tiled = not len(sizes) or (
            sizes.min() >= 0 and np.array_equal(rows["first"], np.cumsum(sizes) - sizes)
        )
        right = tiled and int(sizes.sum()) == len(covered)
        reader.require(right, "rows", "do not split the covered ones among them")
        reader.within_bounds("owners", people["aggregate"], len(AGGREGATES))
        unstamped = not (rows["stamp"].any() or people["stamp"].any() or people["place"].any())
        reader.require(unstamped, "rows", "are stamped")
        made._rows, made._covered, made._people = rows, covered, people
        made._used = len(covered)
        return made

    @property
    def owners(self) -> Int32s:
        """The owner of each subscription, or -1."""
        found: Int32s = self._rows["owner"]
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of all records."""
        return self._rows.nbytes + self._covered.nbytes + self._people.nbytes

    def _make_room(self, rows: int, covered: int) -> None:
        if rows > len(self._rows):
            longer = _fresh_rows(max(rows, 2 * len(self._rows)))
            longer[: len(self._rows)] = self._rows
            self._rows = longer
        self._covered = grown(self._covered, covered)

    def _compact(self) -> None:
        """Drop the spans that no row has any more."""
        sizes = self._rows["size"].astype(np.int64)
        ends = np.cumsum(sizes)
        old = np.repeat(self._rows["first"] - (ends - sizes), sizes) + np.arange(ends[-1])
        self._covered = self._covered[old]
        self._rows["first"] = ends - sizes
        self._used, self._unused = len(old), 0


def _fresh_rows(size: int) -> npt.NDArray[Any]:
    rows = np.zeros(size, ROW)
    rows["owner"] = -1
    return rows


def _ranked(hits: int, starts: int) -> Ranked:
    return Ranked(
        np.zeros(starts, np.int64),
        np.empty(hits, np.int32),
        np.empty(hits),
        np.empty(hits),
        *(np.empty(hits, np.int32) for _ in range(3)),
    )
