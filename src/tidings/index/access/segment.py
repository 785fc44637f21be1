"""A part of the access index that does not change but for deaths: records, posted in lists."""

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.index.access.encoded import Encoded, spans
from tidings.index.access.lists import Grid, chances_of, lists_of, posts_of
from tidings.index.access.vocabulary import Vocabulary
from tidings.kernels.access import (
    HEAD,
    NEVER,
    Flat,
    Floats,
    Ints,
    Rows,
    Shorts,
    Weights,
    check_words,
    count_records,
    read_records,
    write_records,
)
from tidings.kernels.access_find import Part
from tidings.kernels.access_lists import UNKNOWN, Lists, check_places, sort_checks


class Segment:
    """Subscriptions in order of rank: the greater own score, then the smaller id.

    A removed subscription is stamped with the version from which on it is passed over. Without
    `sort` the checks stay as written, and the first one gives access: for measurements.
    """

    def __init__(self, given: Encoded, vocabulary: Vocabulary, *, sort: bool = True) -> None:
        place = np.empty(len(given), np.int32)
        place[given.by_id] = np.arange(len(given), dtype=np.int32)
        order = np.lexsort((place, -given.scores))
        self.scores = given.scores[order]
        self.serial = -1
        self.dead = 0
        self._lock = Lock()
        self._partial: Lists | None = None
        grid = Grid(given, vocabulary.slots)
        chance = chances_of(given, grid, vocabulary) if sort else np.zeros(len(given.entry))
        ranked, checks = _ranked(given, order, chance)
        grid.take(checks)
        self.rows, row = _written(ranked)
        self.lists = _access(ranked, row, grid)
        self.weights = Weights(ranked.part, ranked.weight, place[order])
        self._slots = len(grid.cells)

    def __getstate__(self) -> dict[str, Any]:
        return {name: each for name, each in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def numbers(self) -> Shorts:
        """The numbers of the subscriptions, by rank."""
        return self.rows.notes[::2]

    @property
    def died(self) -> Shorts:
        """From which version on they are dead, by rank."""
        return self.rows.notes[1::2]

    @property
    def posts_all(self) -> bool:
        """Tell whether every predicate is posted already."""
        return self._partial is not None

    @property
    def size(self) -> int:
        """How many words the records have."""
        return len(self.rows.words)

    def part(self, version: int) -> Part:
        """Give what kernels need to find by access predicates, as of a version."""
        return Part(self.rows, self.lists, self.weights, self.size, version)

    def partial(self, version: int) -> Part:
        """Give what they need to find by every predicate; the lists are made when first asked."""
        with self._lock:
            if self._partial is None:
                everybody = self.picked(np.arange(len(self)))
                self._partial = _every(everybody, self.rows, self._slots)
            return Part(self.rows, self._partial, self.weights, self.size, version)

    def kill(self, ranks: Any, version: int) -> None:
        """Pass over some from a version on."""
        self.rows.notes[2 * np.asarray(ranks) + 1] = version
        self.dead += np.size(ranks)

    def encoded(self, version: int) -> Encoded:
        """Give back, in numbers, who lives at a version."""
        return self.picked(np.flatnonzero(self.died > version))

    def picked(self, ranks: Ints, _ids: Sequence[str] = ()) -> Encoded:
        """Give back some, in numbers; their order by id is known."""
        return picked(self.rows, self.weights, self.scores, ranks)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        held: list[Any] = [*self.rows, *self.lists, *self.weights, *(self._partial or ())]
        return self.scores.nbytes + sum(getattr(each, "nbytes", 8) for each in held)


def picked(rows: Rows, weights: Weights, scores: Floats, ranks: Ints) -> Encoded:
    """Read the records of some ranks back into columns."""
    count, checks, members = count_records(rows, ranks)
    flat = Flat(
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(checks, np.int32),
        np.empty(checks, np.int32),
        np.empty(checks, np.int64),
        np.empty(checks, np.int64),
        np.empty(checks, np.bool_),
        np.empty(members, np.int32),
    )
    sizes = np.empty(count, np.int64)
    read_records(rows, ranks, flat, sizes)
    places = spans(flat.start, flat.start + sizes)
    return Encoded(
        rows.notes[2 * ranks],
        scores[ranks],
        np.argsort(weights.order[ranks]).astype(np.int32),
        (flat.rank2 >> 1).astype(np.int32),
        sizes.astype(np.int32),
        flat.entry,
        flat.slot,
        flat.low,
        flat.high,
        flat.differs,
        weights.part[places],
        weights.weight[places] if len(weights.weight) else weights.weight,
        flat.members,
    )


def _ranked(given: Encoded, order: Ints, chance: npt.NDArray[Any]) -> tuple[Encoded, Ints]:
    """Give the same with subscriptions by rank and checks by chance; and where each check was."""
    rank_of = np.empty(len(order), np.int32)
    rank_of[order] = np.arange(len(order), dtype=np.int32)
    rank = rank_of[given.owner]
    rows = np.argsort(rank, kind="stable")
    size = given.size[rows].astype(np.int64)
    first = (np.cumsum(given.size) - given.size)[rows]
    checks = sort_checks(first, size, chance)
    part = given.part[checks]
    most = int(part.max(initial=0))
    narrow = np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.int32
    ranked = replace(
        given,
        numbers=given.numbers[order],
        scores=given.scores[order],
        owner=rank[rows],
        size=given.size[rows],
        entry=given.entry[checks],
        slot=given.slot[checks],
        low=given.low[checks],
        high=given.high[checks],
        differs=given.differs[checks],
        part=part.astype(narrow),
        weight=given.weight[checks] if len(given.weight) else given.weight,
    )
    return ranked, checks


def _written(ranked: Encoded) -> tuple[Rows, Ints]:
    """Write the records; give also where each begins."""
    count = len(ranked.numbers)
    first = np.concatenate([[0], np.cumsum(ranked.size)]).astype(np.int64)
    rows = np.bincount(ranked.owner, minlength=count)
    access = first[:-1]
    several = (rows[ranked.owner] > 1) | ((ranked.entry[access] < 0) & (ranked.slot[access] == -1))
    flat = Flat(
        first,
        2 * ranked.owner.astype(np.int64) + several,
        ranked.entry,
        ranked.slot,
        ranked.low,
        ranked.high,
        ranked.differs,
        ranked.members,
    )
    before = np.concatenate([[0], np.cumsum(check_words(flat))])
    ends = before[first[1:]] + HEAD * np.arange(1, len(first))
    words = np.empty(int(ends[-1]) if len(ends) else 0, np.int32)
    write_records(flat, ends, words)
    begin = np.concatenate([[0], ends])
    offsets = begin[np.concatenate([[0], np.cumsum(rows)])].astype(np.int32)
    notes = np.stack([ranked.numbers, np.full(count, NEVER, np.int32)], axis=1).ravel()
    return Rows(words, offsets, notes), begin[:-1]


def _access(ranked: Encoded, row: Ints, grid: Grid) -> Lists:
    """Post every row under its first check, with what the second one wants."""
    first = np.cumsum(ranked.size, dtype=np.int64) - ranked.size
    posts = posts_of(ranked, first)
    owner = np.repeat(np.arange(len(row)), ranked.size)[posts.check]
    then = np.minimum(first + 1, len(ranked.entry) - 1)
    entry, slot = ranked.entry[then].astype(np.int64), ranked.slot[then].astype(np.int64)
    check = np.where(entry >= 0, entry, np.where(slot >= 0, ~(slot + 1), UNKNOWN))
    check = np.where(ranked.size > 1, check, UNKNOWN)
    entries = np.stack([row[owner], check[owner], grid.span[posts.check]], axis=1)
    return lists_of(posts, entries, grid)


def _every(given: Encoded, rows: Rows, slots: int) -> Lists:
    """Post every check; an `in` is told by its cells, which are not 0."""
    grid = Grid(given, slots)
    row, place = np.empty(len(given.entry), np.int64), np.empty(len(given.entry), np.int64)
    check_places(rows.words, len(rows.words), row, place)
    posts = posts_of(given, np.arange(len(given.entry)))
    span = np.where(posts.single, grid.span[posts.check], 1)
    entries = np.stack([row[posts.check], place[posts.check], posts.check, span], axis=1)
    return lists_of(posts, entries, grid)
