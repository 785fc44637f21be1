"""A part of the access index that does not change but for deaths: records, posted in lists."""

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_file import MOST, Reader, Writer
from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.index.access.encoding import Encoded, spans
from tidings.index.access.kernels.match import Part
from tidings.index.access.kernels.postings import UNKNOWN, Lists, check_places, sort_checks
from tidings.index.access.kernels.records import (
    HEAD,
    NEVER,
    Flat,
    Rows,
    Weights,
    check_words,
    count_records,
    read_records,
    write_records,
)
from tidings.index.access.kernels.validate import (
    ACCESS,
    EVERY,
    Places,
    Posed,
    Sizes,
    access_valid,
    every_valid,
    heads_valid,
    keys_valid,
    records_valid,
    trees_valid,
)
from tidings.index.access.postings import Grid, chances_of, lists_of, posts_of
from tidings.index.access.vocabulary import Vocabulary

MOST_SCORE: Final = 1e100
"""No score or weight of the model is larger, so that no sum of them overflows."""
NARROW: Final = {"uint8": np.uint8, "uint16": np.uint16, "int32": np.int32}
"""The dtypes that numbers of predicates may have: the narrowest that holds them."""


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

    def write(self, writer: Writer) -> None:
        """Add the arrays of this segment to a file; deaths are not among them."""
        notes = self.rows.notes.copy()
        notes[1::2] = NEVER
        writer.array("scores", self.scores)
        writer.array("words", self.rows.words)
        writer.array("offsets", self.rows.offsets)
        writer.array("notes", notes)
        writer.value("part", self.weights.part.dtype.name)
        for name, each in self.weights._asdict().items():
            writer.array(name, each)
        _write_lists(writer.within("lists"), self.lists)
        writer.value("partial", self._partial is not None)
        if self._partial is not None:
            _write_lists(writer.within("every"), self._partial)

    @classmethod
    def read(cls, reader: Reader, entries: int, slots: int) -> "tuple[Segment, Posed]":
        """Return the segment of a file, in a vocabulary of so many entries and slots.

        With it comes which predicates its records check, for those who keep arrays of them.

        Whatever a kernel will follow is checked: O(n), once.
        """
        made = cls.__new__(cls)
        made.serial, made.dead = -1, 0
        made._lock, made._partial = Lock(), None  # noqa: SLF001
        made.scores = reader.array("scores", np.float64)
        reader.finite("scores", made.scores, MOST_SCORE)
        size = len(made.scores)
        made.rows = Rows(
            reader.array("words", np.int32),
            reader.array("offsets", np.int32, size + 1),
            reader.array("notes", np.int32, 2 * size),
        )
        reader.permutation("notes", made.numbers, size)
        made.weights = _read_weights(reader, size)
        sizes = Sizes(size, entries, slots, len(made.weights.part))
        places = _read_places(reader, made.rows, sizes)
        made.lists = _read_lists(reader.within("lists"), sizes, ACCESS)
        right = access_valid(made.lists, places.begins, sizes)
        reader.require(right, "lists.entries", "leads to no record")
        made._slots = len(made.lists.cells)  # noqa: SLF001
        if reader.value("partial") is True:
            every = _read_every(reader, made.rows, places, sizes, made.lists)
            made._partial = every  # noqa: SLF001
        numbers = np.ascontiguousarray(made.numbers)
        return made, Posed(made.weights.part, numbers, places.firsts)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def numbers(self) -> Int32s:
        """The numbers of the subscriptions, by rank."""
        return self.rows.notes[::2]

    @property
    def died(self) -> Int32s:
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

    def picked(self, ranks: Int64s, _ids: Sequence[str] = ()) -> Encoded:
        """Give back some, in numbers; their order by id is known."""
        return picked(self.rows, self.weights, self.scores, ranks)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        held: list[Any] = [*self.rows, *self.lists, *self.weights, *(self._partial or ())]
        return self.scores.nbytes + sum(getattr(each, "nbytes", 8) for each in held)


def picked(rows: Rows, weights: Weights, scores: Float64s, ranks: Int64s) -> Encoded:
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


def _ranked(given: Encoded, order: Int64s, chance: npt.NDArray[Any]) -> tuple[Encoded, Int64s]:
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


def _written(ranked: Encoded) -> tuple[Rows, Int64s]:
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


def _access(ranked: Encoded, row: Int64s, grid: Grid) -> Lists:
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


def _write_lists(writer: Writer, lists: Lists) -> None:
    for name, each in lists._asdict().items():
        if name != "mask":
            writer.array(name, each)
    writer.value("places", lists.mask + 1)


def _read_weights(reader: Reader, size: int) -> Weights:
    name = reader.value("part")
    reader.require(isinstance(name, str) and name in NARROW, "part", "has an unknown dtype")
    part = reader.array("part", NARROW[name])
    reader.within_bounds("part", part, MOST)
    weight = reader.array("weight", np.float64)
    reader.require(len(weight) in (0, len(part)), "weight", f"has {len(weight)} values")
    reader.finite("weight", weight, MOST_SCORE)
    return Weights(part, weight, reader.numbers("order", size, size))


def _read_places(reader: Reader, rows: Rows, sizes: Sizes) -> Places:
    places = Places(
        np.zeros(len(rows.words), np.bool_),
        np.empty(sizes.checks, np.int32),
        np.empty(sizes.checks, np.int32),
        np.empty(sizes.ranks + 1, np.int32),
    )
    right = records_valid(rows, sizes, places)
    reader.require(right, "words", "are no records in order of rank")
    return places


def _read_lists(reader: Reader, sizes: Sizes, width: int) -> Lists:
    places, slots = reader.count("places"), len(reader.array("cells", np.int32))
    heads = reader.array("heads", np.int32)
    power = places > 0 and places & (places - 1) == 0
    reader.require(power and slots <= sizes.slots, "places", "do not fit")
    reader.require(len(heads) % 3 == 0 and len(heads) // 3 > places, "heads", "are too few")
    found = Lists(
        heads,
        reader.array("entries", np.int32),
        places - 1,
        reader.array("cells", np.int32, slots),
        reader.array("nodes", np.int32, slots),
        reader.array("edges_from", np.int32, slots),
        reader.array("edges", np.int64),
    )
    reader.require(len(found.entries) % width == 0, "entries", "are no whole postings")
    reader.require(trees_valid(found), "nodes", "are not where they must be")
    right = heads_valid(found, width, sizes.entries)
    reader.require(right, "heads", "lead outside of the postings")
    reader.require(keys_valid(found), "heads", "cannot be found by their keys")
    return found


def _read_every(reader: Reader, rows: Rows, places: Places, sizes: Sizes, access: Lists) -> Lists:
    """Return the lists of every check; room for what they lead to is made by the other lists."""
    found = _read_lists(reader.within("every"), sizes, EVERY)
    same = np.array_equal(found.cells, access.cells)
    reader.require(same, "every.cells", "differ from lists.cells")
    seen = np.zeros(sizes.checks, np.bool_)
    right = every_valid(found, rows.words, places, seen)
    reader.require(right, "every.entries", "are not the checks of the records")
    return found
