"""An immutable part of the access index, but for tombstones: records, posting lists and blocks."""

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, Final

import numpy as np

from tidings.compiled.array_file import MOST, Reader, Writer
from tidings.compiled.array_types import Bools, Float64s, Int32s, Int64s
from tidings.compiled.arrays import offsets, run_indexes
from tidings.compiled.simd import LANES
from tidings.index.access.description import SegmentDescription
from tidings.index.access.encoding import EncodedSubscriptions
from tidings.index.access.kernels.match import WIDTH, SegmentView
from tidings.index.access.kernels.partial_match import PARTIAL_WIDTH
from tidings.index.access.kernels.postings import UNKNOWN, Postings, locate_checks, sort_checks
from tidings.index.access.kernels.records import (
    HEAD,
    NEVER,
    CheckColumns,
    CheckWeights,
    Records,
    check_words,
    count_records,
    read_records,
    write_records,
)
from tidings.index.access.kernels.validate import (
    CheckedParts,
    CheckMap,
    IndexSizes,
    access_postings_valid,
    heads_valid,
    keys_valid,
    partial_postings_valid,
    records_valid,
    trees_valid,
)
from tidings.index.access.postings import (
    Chances,
    SlotGrid,
    build_postings,
    chances_of,
    post_checks,
)
from tidings.index.access.scan_blocks import (
    NO_BLOCKS,
    RecordLayout,
    build_blocks,
    lane_mask,
    least_chances,
    read_blocks,
    unselective_rows,
    write_blocks,
)
from tidings.index.access.vocabulary import Vocabulary

MOST_SCORE: Final = 1e100
"""No score or weight of the model is larger, so that no sum of them overflows."""
NO_WEIGHTS: Final = CheckWeights(np.empty(0, np.uint16), np.empty(0), np.empty(0, np.int32))
"""Of the types that the weights of a memtable have."""
NARROW: Final = {"uint8": np.uint8, "uint16": np.uint16, "int32": np.int32}
"""The dtypes of predicate numbers: the narrowest that holds them."""


class Segment:
    """Subscriptions in order of rank: the greater own score, then the smaller id.

    A removed subscription gets a tombstone: the version from which it is skipped. With `sort`
    off, checks stay as written and the first one is the access predicate: for measurements.
    """

    def __init__(
        self, encoded: EncodedSubscriptions, vocabulary: Vocabulary, *, sort: bool = True
    ) -> None:
        place = np.empty(len(encoded), np.int32)
        place[encoded.by_id] = np.arange(len(encoded), dtype=np.int32)
        order = np.lexsort((place, -encoded.scores))
        self.scores = encoded.scores[order]
        self.serial = -1
        self.dead = 0
        self._lock = Lock()
        self._partial: Postings | None = None
        self._places: Int32s | None = None
        self._chances: tuple[float | None, float | None]
        grid = SlotGrid(encoded, vocabulary.slots)
        none = np.zeros(len(encoded.term))
        chance = chances_of(encoded, grid, vocabulary) if sort else Chances(none, none)
        ranked, checks = _ranked(encoded, order, chance.guessed)
        grid.reorder(checks)
        layout = _write_records(ranked)
        self.records = layout.records
        at_most = chance.at_most[checks]
        least = least_chances(ranked.size, at_most)
        wide = unselective_rows(least)
        extent = vocabulary.slots, vocabulary.terms
        self.blocks = build_blocks(ranked, layout, wide, at_most, extent)
        posted = ~wide if len(self.blocks.rows) else np.ones(len(wide), np.bool_)
        self.postings = _access_postings(ranked, layout.starts, posted, grid)
        self._rows = len(least)
        self._chances = _average(least[posted]), _average(least[~posted])
        self.weights = CheckWeights(ranked.part, ranked.weight, place[order])
        self._slots = len(grid.cells)

    def write(self, writer: Writer) -> None:
        """Write the arrays of this segment to a file, without tombstones."""
        ranks = self.records.ranks.copy()
        ranks[1::2] = NEVER
        writer.array("scores", self.scores)
        writer.array("words", self.records.words)
        writer.array("offsets", self.records.offsets)
        writer.array("notes", ranks)
        writer.value("part", self.weights.part.dtype.name)
        for name, column in self.weights._asdict().items():
            writer.array(name, column)
        _write_postings(writer.within("lists"), self.postings)
        write_blocks(writer.within("blocks"), self.blocks)
        writer.value("partial", self._partial is not None)
        if self._partial is not None:
            _write_postings(writer.within("every"), self._partial)

    @classmethod
    def read(cls, reader: Reader, terms: int, slots: int) -> "tuple[Segment, CheckedParts]":
        """Return the segment of a file, in a vocabulary with this many terms and slots.

        Also return which predicates its records check, for stages that keep arrays of them.
        Whatever a kernel will follow is validated: O(n), once.
        """
        segment = cls.__new__(cls)
        segment.serial, segment.dead = -1, 0
        segment._lock, segment._partial = Lock(), None  # noqa: SLF001
        segment._places, segment._chances = None, (None, None)  # noqa: SLF001
        segment.scores = reader.array("scores", np.float64)
        reader.finite("scores", segment.scores, MOST_SCORE)
        size = len(segment.scores)
        segment.records = Records(
            reader.array("words", np.int32),
            reader.array("offsets", np.int32, size + 1),
            reader.array("notes", np.int32, 2 * size),
        )
        reader.permutation("notes", segment.numbers, size)
        segment.weights = _read_weights(reader, size)
        sizes = IndexSizes(size, terms, slots, len(segment.weights.part))
        checks = _map_checks(reader, segment.records, sizes)
        segment._rows = int(np.count_nonzero(checks.begins))  # noqa: SLF001
        segment.postings = _read_postings(reader.within("lists"), sizes, WIDTH)
        right = access_postings_valid(segment.postings, checks.begins, sizes)
        reader.require(right, "lists.entries", "leads to no record")
        segment._slots = len(segment.postings.cells)  # noqa: SLF001
        segment.blocks = read_blocks(reader.within("blocks"), segment.records, checks, sizes)
        if reader.value("partial") is True:
            partial = _read_partial(reader, segment.records, checks, sizes, segment.postings)
            segment._partial = partial  # noqa: SLF001
        numbers = np.ascontiguousarray(segment.numbers)
        return segment, CheckedParts(segment.weights.part, numbers, checks.firsts)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def numbers(self) -> Int32s:
        """The numbers of the subscriptions, by rank."""
        return self.records.ranks[::2]

    @property
    def tombstones(self) -> Int32s:
        """The versions from which subscriptions are dead, by rank."""
        return self.records.ranks[1::2]

    @property
    def has_partial(self) -> bool:
        """Whether the postings of every check are built already."""
        return self._partial is not None

    @property
    def size(self) -> int:
        """How many words the records have."""
        return len(self.records.words)

    def view(self, version: int) -> SegmentView:
        """Return the arrays for matching by access predicates, as of a version.

        They are of the same types for every segment, unlike the weights, which matching ignores.
        """
        parts = self.records, self.postings, self.blocks, NO_WEIGHTS
        return SegmentView(*parts, self.size, version)

    def partial_view(self, version: int) -> SegmentView:
        """Return the arrays for partial matching, by every check; built on first use."""
        with self._lock:
            if self._partial is None:
                encoded = self.picked(np.arange(len(self)))
                self._partial = _partial_postings(encoded, self.records, self._slots)
            parts = self.records, self._partial, NO_BLOCKS, self.weights
            return SegmentView(*parts, self.size, version)

    def bury(self, ranks: int | Int32s | Int64s, version: int) -> None:
        """Set tombstones: skip some ranks from a version onwards."""
        self.records.ranks[2 * ranks + 1] = version
        self.dead += 1 if isinstance(ranks, int) else len(ranks)
        self._test(ranks)

    def adopt(self, tombstones: Int32s) -> None:
        """Set all tombstones, by rank."""
        self.records.ranks[1::2] = tombstones
        dead = np.flatnonzero(tombstones < NEVER)
        self.dead = len(dead)
        self._test(dead)

    def _test(self, ranks: Any) -> None:
        """Let scans of the blocks test the records of some ranks, for their tombstones."""
        if not len(self.blocks.rows):
            return
        if self._places is None:
            # A subscription in several rows is always tested: one place is enough.
            places = np.full(len(self), -1, np.int32)
            places[self.records.words[self.blocks.rows] >> 1] = np.arange(len(self.blocks.rows))
            self._places = places
        for place in self._places[np.atleast_1d(ranks)].tolist():
            if place >= 0:
                self.blocks.tested[place // LANES] |= lane_mask(place % LANES)

    def encoded(self, version: int) -> EncodedSubscriptions:
        """Return the subscriptions that are alive at a version."""
        return self.picked(np.flatnonzero(self.tombstones > version))

    def picked(self, ranks: Int64s, _ids: Sequence[str] = ()) -> EncodedSubscriptions:
        """Return the subscriptions of some ranks, whose order by id is stored."""
        return picked(self.records, self.weights, self.scores, ranks)

    def describe(self) -> SegmentDescription:
        """Describe where the conjunctions are, and why."""
        blocks = self.blocks
        columns = len(blocks.slots) + len(blocks.terms)
        return SegmentDescription(
            len(self),
            self.dead,
            self._rows - len(blocks.rows),
            len(blocks.rows),
            columns / max(1, len(blocks.tested)),
            *self._chances,
            self.nbytes,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        held: list[Any] = [*self.records, *self.postings, *self.blocks, *self.weights]
        held += self._partial or ()
        return self.scores.nbytes + sum(getattr(column, "nbytes", 8) for column in held)


def _average(chances: Float64s) -> float | None:
    return float(chances.mean()) if len(chances) else None


def picked(
    records: Records, weights: CheckWeights, scores: Float64s, ranks: Int64s
) -> EncodedSubscriptions:
    """Read the records of some ranks back into columns."""
    count, checks, members = count_records(records, ranks)
    columns = CheckColumns(
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(checks, np.int32),
        np.empty(checks, np.int32),
        np.empty(checks, np.int64),
        np.empty(checks, np.int64),
        np.empty(checks, np.int8),
        np.empty(members, np.int32),
    )
    sizes = np.empty(count, np.int64)
    read_records(records, ranks, columns, sizes)
    numbers = run_indexes(columns.start, sizes)
    return EncodedSubscriptions(
        records.ranks[2 * ranks],
        scores[ranks],
        np.argsort(weights.order[ranks]).astype(np.int32),
        (columns.rank2 >> 1).astype(np.int32),
        sizes.astype(np.int32),
        columns.term,
        columns.slot,
        columns.low,
        columns.high,
        columns.kind,
        weights.part[numbers],
        weights.weight[numbers] if len(weights.weight) else weights.weight,
        columns.members,
    )


def _ranked(
    encoded: EncodedSubscriptions, order: Int64s, chance: Float64s
) -> tuple[EncodedSubscriptions, Int64s]:
    """Return subscriptions by rank with checks by chance, and where each check was before."""
    rank_of = np.empty(len(order), np.int32)
    rank_of[order] = np.arange(len(order), dtype=np.int32)
    rank = rank_of[encoded.owner]
    rows = np.argsort(rank, kind="stable")
    size = encoded.size[rows].astype(np.int64)
    first = (np.cumsum(encoded.size) - encoded.size)[rows]
    checks = sort_checks(first, size, chance)
    part = encoded.part[checks]
    most = int(part.max(initial=0))
    narrow = np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.int32
    ranked = replace(
        encoded,
        numbers=encoded.numbers[order],
        scores=encoded.scores[order],
        owner=rank[rows],
        size=encoded.size[rows],
        term=encoded.term[checks],
        slot=encoded.slot[checks],
        low=encoded.low[checks],
        high=encoded.high[checks],
        kind=encoded.kind[checks],
        part=part.astype(narrow),
        weight=encoded.weight[checks] if len(encoded.weight) else encoded.weight,
    )
    return ranked, checks


def _write_records(ranked: EncodedSubscriptions) -> RecordLayout:
    """Write the records."""
    count = len(ranked.numbers)
    first = offsets(ranked.size)
    rows = np.bincount(ranked.owner, minlength=count)
    access = first[:-1]
    # Several rows, or several members of an access `in`, can lead to one subscription twice.
    several = (rows[ranked.owner] > 1) | ((ranked.term[access] < 0) & (ranked.slot[access] == -1))
    columns = CheckColumns(
        first,
        2 * ranked.owner.astype(np.int64) + several,
        ranked.term,
        ranked.slot,
        ranked.low,
        ranked.high,
        ranked.kind,
        ranked.members,
    )
    before = offsets(check_words(columns))
    ends = before[first[1:]] + HEAD * np.arange(1, len(first))
    words = np.empty(int(ends[-1]) if len(ends) else 0, np.int32)
    write_records(columns, ends, words)
    starts = np.concatenate([[0], ends])
    row_starts = starts[offsets(rows)].astype(np.int32)
    ranks = np.stack([ranked.numbers, np.full(count, NEVER, np.int32)], axis=1).ravel()
    return RecordLayout(Records(words, row_starts, ranks), starts[:-1], several)


def _access_postings(
    ranked: EncodedSubscriptions, rows: Int64s, posts: Bools, grid: SlotGrid
) -> Postings:
    """Post some rows under their first checks, together with what the second ones need."""
    first = np.cumsum(ranked.size, dtype=np.int64) - ranked.size
    posted = post_checks(ranked, first[posts])
    row = np.repeat(np.arange(len(rows)), ranked.size)[posted.check]
    second = np.minimum(first + 1, len(ranked.term) - 1)
    term, slot = ranked.term[second].astype(np.int64), ranked.slot[second].astype(np.int64)
    check = np.where(term >= 0, term, np.where(slot >= 0, ~(slot + 1), UNKNOWN))
    check = np.where(ranked.size > 1, check, UNKNOWN)
    entries = np.stack([rows[row], check[row], grid.span[posted.check]], axis=1)
    return build_postings(posted, entries, grid)


def _partial_postings(encoded: EncodedSubscriptions, records: Records, slots: int) -> Postings:
    """Post every check; the cells of an `in` are 1, those of another term 0."""
    grid = SlotGrid(encoded, slots)
    row, place = np.empty(len(encoded.term), np.int64), np.empty(len(encoded.term), np.int64)
    locate_checks(records.words, len(records.words), row, place)
    posted = post_checks(encoded, np.arange(len(encoded.term)))
    check = posted.check
    cells = np.where(posted.single, grid.span[check], 1)
    entries = np.stack([row[check], place[check], check, cells], axis=1)
    return build_postings(posted, entries, grid)


def _write_postings(writer: Writer, postings: Postings) -> None:
    for name, column in postings._asdict().items():
        if name != "mask":
            writer.array(name, column)
    writer.value("places", postings.mask + 1)


def _read_weights(reader: Reader, size: int) -> CheckWeights:
    name = reader.value("part")
    reader.require(isinstance(name, str) and name in NARROW, "part", "has an unknown dtype")
    part = reader.array("part", NARROW[name])
    reader.within_bounds("part", part, MOST)
    weight = reader.array("weight", np.float64)
    reader.require(len(weight) in (0, len(part)), "weight", f"has {len(weight)} values")
    reader.finite("weight", weight, MOST_SCORE)
    return CheckWeights(part, weight, reader.numbers("order", size, size))


def _map_checks(reader: Reader, records: Records, sizes: IndexSizes) -> CheckMap:
    checks = CheckMap(
        np.zeros(len(records.words), np.bool_),
        np.empty(sizes.checks, np.int32),
        np.empty(sizes.checks, np.int32),
        np.empty(sizes.ranks + 1, np.int32),
    )
    right = records_valid(records, sizes, checks)
    reader.require(right, "words", "are not records in order of rank")
    return checks


def _read_postings(reader: Reader, sizes: IndexSizes, width: int) -> Postings:
    places, slots = reader.count("places"), len(reader.array("cells", np.int32))
    heads = reader.array("heads", np.int32)
    power = places > 0 and places & (places - 1) == 0
    reader.require(power and slots <= sizes.slots, "places", "do not fit")
    reader.require(len(heads) % 3 == 0 and len(heads) // 3 > places, "heads", "are too few")
    postings = Postings(
        heads,
        reader.array("entries", np.int32),
        places - 1,
        reader.array("cells", np.int32, slots),
        reader.array("nodes", np.int32, slots),
        reader.array("edges_from", np.int32, slots),
        reader.array("edges", np.int64),
    )
    reader.require(len(postings.entries) % width == 0, "entries", "are not whole postings")
    reader.require(trees_valid(postings), "nodes", "are not where they must be")
    right = heads_valid(postings, width, sizes.terms)
    reader.require(right, "heads", "lead outside of the postings")
    reader.require(keys_valid(postings), "heads", "cannot be found by their keys")
    return postings


def _read_partial(
    reader: Reader, records: Records, checks: CheckMap, sizes: IndexSizes, access: Postings
) -> Postings:
    """Return the postings of every check.

    Their grid must be that of the access postings, since scratch buffers are sized by the latter.
    """
    postings = _read_postings(reader.within("every"), sizes, PARTIAL_WIDTH)
    same = np.array_equal(postings.cells, access.cells)
    reader.require(same, "every.cells", "differ from lists.cells")
    seen = np.zeros(sizes.checks, np.bool_)
    right = partial_postings_valid(postings, records.words, checks, seen)
    reader.require(right, "every.entries", "are not the checks of the records")
    return postings
