"""Events as hashes, and the distances between them in the forms that kernels read.

hash_events     attribute=value tokens as 64-bit hashes, the same in every process
matrix_of       the distances of all pairs; or lists that give its rows
EventHashes     a table whose slots are reused, for windows that move on
"""

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, combinations, compress, pairwise, repeat
from operator import attrgetter
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Float64s, Int64s, UInt64s
from tidings.compiled.arrays import grown, offsets, run_indexes
from tidings.compiled.simd import WORDS
from tidings.diversify.distance import Jaccard, Overlap, checked_distance
from tidings.diversify.kernels.distances import (
    DistanceSource,
    SortedRows,
    distances_to,
    listed_matrix,
    weighted_matrix,
    write_masks,
)
from tidings.diversify.kernels.hashing import PackedAttributes, hash_values
from tidings.diversify.kernels.token_rows import (
    InvertedLists,
    list_rows,
    mask_rows,
    number_hashes,
    sort_rows,
)
from tidings.diversify.memory_limits import check_dense
from tidings.diversify.protocol import Distance
from tidings.errors import InvalidPolicy, TidingsError
from tidings.model.records import Event
from tidings.model.values import Family, Key, Range, Token, tokens

# Events as 64-bit hashes that are the same in every process: the input of the kernels.
#
# The hash of an attribute=value token is XXH64 of the value as text, in UTF-8. Its seed is XXH64 of
# the attribute's name (seed 0) plus the number of the value's family. Numbers and times are printed
# as Python prints floats, booleans as `True` and `False`, ranges as both bounds and the mode,
# separated by blanks.
#
# Two tokens count as equal if their hashes are. A window of a million different tokens holds a
# false pair with a probability of about 3e-8.


NUL: Final = "\0"
"""The separator of texts that do not contain it: cheaper to join than bytes."""
NEVER_IN_UTF8: Final = 0xFF
"""The separator of all others."""
FAMILIES: Final[dict[Family, int]] = {"string": 0, "number": 1, "boolean": 2, "time": 3}
_STRING, _NUMBER = FAMILIES["string"], FAMILIES["number"]
_KINDS: Final[dict[type, int]] = {str: _STRING, float: _NUMBER, int: _NUMBER}
_NOT_A_TEXT: Final = np.int64(0x1E37_79B9_7F4A_7C15)
_MIX: Final = 0x27D4_EB2F_1656_67C5
"""Makes equal values of two attributes differ; an odd number, as XXH64 has them."""
_DOUBLE, _UNSIGNED, _ALL_BITS = Struct("<d"), Struct("<Q"), (1 << 64) - 1
_TOGETHER: Final = 1024
"""Events that are hashed by one call, so that their texts stay in the cache of the processor."""
_ONE_VALUE_EACH: Final = np.empty(0, np.int64)


class HashRows(NamedTuple):
    """Events as consecutive rows of hashes, not sorted.

    Row i is `keys[starts[i]:starts[i + 1]]`. For the overlap distance a key is an attribute and its
    mark the attribute with its set of values; for Jaccard both are a token, and the same array.
    `weights` is empty if all weights are 1.
    """

    starts: Int64s
    keys: UInt64s
    marks: UInt64s
    weights: Float64s


def has_kernel(distance: Distance) -> bool:
    """Return whether kernels implement the distance: `overlap` and `jaccard`, no subclass."""
    return type(distance) in (Overlap, Jaccard)


def hash_events(events: Sequence[Event], distance: Distance) -> HashRows:
    """Return the hashes that `distance` compares; events keep theirs once they are computed."""
    if isinstance(distance, Jaccard):
        starts, keys = token_rows(events)
        return HashRows(starts, keys, keys, np.empty(0))
    chunks = _cached_hashes(events, "_marks")
    pairs = np.frombuffer(b"".join(chunks), np.uint64).reshape(-1, 2)
    starts = offsets([*map(len, chunks)]) // 16
    return HashRows(starts, pairs[:, 0].copy(), pairs[:, 1].copy(), _weights(events, distance))


def hash_in_process(events: Sequence[Event], distance: Distance) -> HashRows:
    """Return hashes that are equal where those of `hash_events` are, in this process only.

    Numbers are not printed, and the hashes of texts are those that Python keeps with them.
    """
    if isinstance(distance, Jaccard):
        return hash_events(events, distance)
    attributes = [event.attributes for event in events]
    starts = offsets([*map(len, attributes)])
    keys = np.fromiter(map(hash, chain.from_iterable(attributes)), np.int64, int(starts[-1]))
    values = [*chain.from_iterable(values_by_name.values() for values_by_name in attributes)]
    kinds = np.fromiter(map(_KINDS.get, map(type, values), repeat(-1)), np.int8, len(values))
    marks = np.empty(len(values), np.int64)
    for family, read in ((_STRING, _hashed_texts), (_NUMBER, _number_bits), (-1, _hashed_others)):
        of_family = kinds == family
        if of_family.any():
            marks[of_family] = read([*compress(values, of_family.tolist())])
    marks ^= keys * np.int64(_MIX)
    unsigned = keys.view(np.uint64), marks.view(np.uint64)
    return HashRows(starts, *unsigned, _weights(events, distance))


def _hashed_texts(texts: Sequence[str]) -> Int64s:
    return np.fromiter(map(hash, texts), np.int64, len(texts))


def _number_bits(numbers: Sequence[float]) -> Int64s:
    """Return the bits of numbers, with -0.0 as 0.0, changed so that 0 differs from an empty text.

    Python's hashes of -1 and -2 are equal.
    """
    bits = (np.asarray(numbers, np.float64) + 0.0).view(np.int64)
    return bits ^ _NOT_A_TEXT


def _mark_of(key: int, value: Any) -> int:
    """Return the mark of an attribute and its value, the same as by `hash_in_process`."""
    family = _KINDS.get(type(value), -1)
    if family == _STRING:
        mark = hash(value)
    elif family == _NUMBER:
        [bits] = _UNSIGNED.unpack(_DOUBLE.pack(value + 0.0))
        mark = bits ^ int(_NOT_A_TEXT)
    else:
        mark = _hash_of_set(tokens(value))
    return int(mark ^ key * _MIX) & _ALL_BITS


def _hashed_others(values: Sequence[Any]) -> list[int]:
    """Return the hashes of lists, times, booleans and ranges."""
    return [_hash_of_set(tokens(value)) for value in values]


def _hash_of_set(different: Collection[Token]) -> int:
    """Return the hash of a set of tokens; a set of one is that value."""
    if len(different) == 1:
        [(family, key)] = different
        if family == "string":
            return hash(key)
        if family == "number" and isinstance(key, float):
            [bits] = _number_bits([key]).tolist()
            return int(bits)
    return hash(frozenset((family, _text(key)) for family, key in different))


def _weights(events: Sequence[Event], distance: Distance) -> Float64s:
    """Return the weights of all attributes; none if all are 1."""
    weight_of = getattr(distance, "weights", {})
    names = (name for event in events for name in event.attributes) if weight_of else ()
    return np.array([weight_of.get(name, 1.0) for name in names], np.float64)


def token_rows(events: Sequence[Event]) -> tuple[Int64s, UInt64s]:
    """Return where the tokens of each event start, and the hashes of all tokens."""
    chunks = _cached_hashes(events, "_values")
    joined = bytearray().join(chunks)  # writable, as the signatures of the kernels require
    return offsets([*map(len, chunks)]) // 8, np.frombuffer(joined, np.uint64)


def _cached_hashes(events: Sequence[Event], name: str) -> list[bytes]:
    """Return hashes that are cached on the events, as a cached property is."""
    cached = attrgetter(name)
    try:
        return [*map(cached, events)]
    except AttributeError:  # as of new events; asking each of them first would take longer
        missing = [event for event in events if "_marks" not in vars(event)]
        for start in range(0, len(missing), _TOGETHER):
            _hash_together(missing[start : start + _TOGETHER])
        return [*map(cached, events)]


def _hash_together(events: Sequence[Event]) -> None:
    """Hash the tokens of some events, and their attributes, by one call of the kernel.

    Laid out one after the other, the attributes of several events look like those of one.
    """
    counts = [len(event.attributes) for event in events]
    packed = _pack_strings(events[0].attributes) if len(events) == 1 else None
    packed = packed or _pack_values(events)
    pairs = np.empty((sum(counts), 2), np.uint64)
    hashes = np.empty(int(packed.sizes.sum()) if len(packed.sizes) else len(pairs), np.uint64)
    hash_values((*packed,), hashes, pairs)
    values, marks = hashes.tobytes(), pairs.tobytes()
    if len(events) == 1:
        vars(events[0]).update(_values=values, _marks=marks)
        return
    bounds = offsets(counts)
    value_bounds = pairwise((8 * offsets(packed.sizes)[bounds]).tolist())
    mark_bounds = pairwise((16 * bounds).tolist())
    for event, value, mark in zip(events, value_bounds, mark_bounds, strict=True):
        vars(event).update(_values=values[slice(*value)], _marks=marks[slice(*mark)])


def _pack_strings(attributes: Mapping[str, Any]) -> PackedAttributes | None:
    """Pack attributes that are all single strings, as most are; return None for others."""
    try:
        names, texts = NUL.join(attributes), NUL.join(attributes.values())
    except TypeError:
        return None
    if not names.count(NUL) == texts.count(NUL) == len(attributes) - 1:
        return None
    return PackedAttributes(names.encode(), texts.encode(), b"", _ONE_VALUE_EACH, 0)


def _pack_values(events: Iterable[Event]) -> PackedAttributes:
    """Pack the attributes of events, one event after the other, whatever their values are."""
    names, texts, families, sizes = list[str](), list[str](), bytearray(), array("q")
    for event in events:
        names += event.attributes
        for value in event.attributes.values():
            kind, size = type(value), 1
            if kind is str:
                families.append(_STRING)
                texts.append(value)
            elif kind is float or kind is int:
                families.append(_NUMBER)
                texts.append(repr(float(value) + 0.0))
            else:
                different = tokens(value)
                size = len(different)
                families.extend([FAMILIES[family] for family, _ in different])
                texts += [_text(key) for _, key in different]
            sizes.append(size)
    counts = np.array(sizes, np.int64)
    joined_names, joined = NUL.join(names), NUL.join(texts)
    if (joined_names.count(NUL), joined.count(NUL)) == (len(names) - 1, len(texts) - 1):
        return PackedAttributes(
            joined_names.encode(), joined.encode(), bytes(families), counts, separator=0
        )
    separator = bytes([NEVER_IN_UTF8])
    return PackedAttributes(
        names=separator.join(name.encode() for name in names),
        texts=separator.join(text.encode() for text in texts),
        families=bytes(families),
        sizes=counts,
        separator=NEVER_IN_UTF8,
    )


def _text(key: Key) -> str:
    if isinstance(key, Range):
        low, high = key.span
        return f"{low!r} {high!r} {key.mode}"
    return key if isinstance(key, str) else repr(key)


# Distances of candidates in the forms that kernels read: a matrix, or lists that give its rows.

_NONE: Final = np.empty(0, np.int64)
_NO_LISTS: Final = InvertedLists(
    starts=_NONE,
    numbers=np.empty(0, np.int32),
    heads=_NONE,
    positions=np.empty(0, np.int32),
    rows=np.empty(0, np.uint32),
    sizes=_NONE,
    masks=np.empty((0, 0), np.int64),
)
_NO_MATRIX: Final = np.empty((0, 0))


class Submatrix(NamedTuple):
    """Some rows and columns of a larger matrix of distances, without a copy."""

    matrix: Float64s
    members: Int64s


DistanceMatrix = Float64s | Submatrix


def as_submatrix(matrix: DistanceMatrix) -> Submatrix:
    """Return a matrix as a submatrix of all its rows."""
    if isinstance(matrix, Submatrix):
        return matrix
    whole = np.ascontiguousarray(matrix, np.float64)
    return Submatrix(whole, np.arange(len(whole)))


def from_matrix(matrix: DistanceMatrix) -> DistanceSource:
    """Return the source of distances that reads a matrix; they lie between 0 and 1."""
    whole, members = as_submatrix(matrix)
    return DistanceSource(whole, members, _NO_LISTS)


def from_events(events: Sequence[Event], distance: Distance) -> DistanceSource:
    """Return the source of distances between events; without weights, no matrix is written."""
    rows = hash_events(events, distance)
    if len(rows.weights):
        check_dense("a distance with weights", len(events))
        return from_matrix(_weighted_matrix(rows))
    return DistanceSource(_NO_MATRIX, _NONE, inverted_lists(rows))


def distances(events: Sequence[Event], distance: Distance) -> Float64s:
    """Return the n x n distances of events; a user-defined distance is called pair by pair."""
    if not has_kernel(distance):
        return _called_matrix(events, distance)
    return matrix_of(hash_events(events, distance))


def matrix_of(rows: HashRows) -> Float64s:
    """Return the distance of every pair of rows."""
    if len(rows.weights):
        return _weighted_matrix(rows)
    count = len(rows.starts) - 1
    matrix = np.empty((count, count))
    listed_matrix((*inverted_lists(rows),), matrix)
    return matrix


def _called_matrix(events: Sequence[Event], distance: Distance) -> Float64s:
    matrix = np.zeros((len(events), len(events)))
    for i, j in combinations(range(len(events)), 2):
        matrix[i, j] = matrix[j, i] = checked_distance(distance, events[i], events[j])
    return matrix


def _weighted_matrix(rows: HashRows) -> Float64s:
    sort_rows(*rows)
    starts, keys, marks, weights = rows
    count = len(starts) - 1
    matrix = np.empty((count, count))
    masks = np.zeros((count, 0), np.int64)
    spans = (starts[:-1].copy(), starts[1:].copy())
    weighted_matrix(SortedRows(*spans, keys, marks, weights, masks), matrix)
    return matrix


def inverted_lists(rows: HashRows) -> InvertedLists:
    """Build the lists of rows that hold each mark, and the keys of each row as bits."""
    starts, keys, marks, _ = rows
    numbers, positions = (np.empty(len(marks), np.int32) for _ in range(2))
    holders = np.empty(len(marks), np.uint32)
    heads = np.empty(number_hashes(marks, numbers) + 1, np.int64)
    list_rows(starts, numbers, heads, positions, holders)
    key_numbers = np.empty(0 if keys is marks else len(keys), np.int32)
    words = 0 if keys is marks else (number_hashes(keys, key_numbers) + 63) // 64
    masks = np.zeros((len(starts) - 1, words), np.int64)
    if words:
        mask_rows(starts, key_numbers, masks)
    return InvertedLists(starts, numbers, heads, positions, holders, np.diff(starts), masks)


# A table of events as hashes, whose slots are reused: distances of windows that move on.

_FEW_KEYS: Final = 64
"""Up to this number of attributes, as one event has, sorting them first takes longer."""
_MOST_WORDS: Final = 8
"""Up to 512 attributes have masks: 64 bytes an event, and less time than a merge takes."""


class EventHashes:
    """Events that come and go, and the distances between them.

    An event takes 16 bytes for each attribute (overlap; 24 with weights) or token (Jaccard). Its
    slot is a number from 0. A removed event leaves its slot to the next one, and a gap in the pools
    of hashes, which are compacted when they are full. For the overlap distance, the key of an
    attribute is its number among those in use, so that a row also has a mask of its attributes.
    Hashes `of_process` take less time, and are of no use in other processes.
    """

    def __init__(self, distance: Distance, *, of_process: bool = False) -> None:
        if not has_kernel(distance):
            raise InvalidPolicy(
                f"EventHashes supports the distances overlap and jaccard, not {distance.name}"
            )
        self._distance = distance
        self._hash: Callable[[Sequence[Event], Distance], HashRows] = (
            hash_in_process if of_process else hash_events
        )
        self._starts, self._ends = np.zeros(8, np.int64), np.zeros(8, np.int64)
        self._weighted = bool(getattr(distance, "weights", None))
        self._pools = self._empty_pools(64)
        self._masks = np.zeros((8, 0), np.int64)
        self._numbers = dict[int, int]()
        self._free, self._taken = list(range(7, -1, -1)), set[int]()
        self._used = self._held = 0

    def __len__(self) -> int:
        return len(self._taken)

    @property
    def capacity(self) -> int:
        """The number of slots, free ones included: every slot is below."""
        return len(self._starts)

    def add(self, event: Event) -> int:
        """Add an event and return its slot; O(tokens log tokens)."""
        return self.add_many([event])[0]

    def add_many(self, events: Sequence[Event]) -> list[int]:
        """Add events and return their slots."""
        if len(events) == 1 and self._adds_without_arrays:
            return [self._add_one(events[0])]
        starts, keys, marks, weights = self._hash(events, self._distance)
        self._reserve(len(events), int(starts[-1]))
        keys = self._numbered(keys)
        slots = [self._free.pop() for _ in events]
        self._starts[slots], self._ends[slots] = self._used + starts[:-1], self._used + starts[1:]
        order, total = _sorted_rows(starts, keys), int(starts[-1])
        for pool, column in zip(self._pools, (keys, marks, weights), strict=True):
            if len(column):
                pool[self._used : self._used + total] = column[order]
        self._used += total
        self._held += total
        self._taken.update(slots)
        self._write_masks(slots)
        return slots

    @property
    def _adds_without_arrays(self) -> bool:
        """Whether a single event is added by Python loops, because arrays of it would be tiny."""
        has_masks = 0 < self._masks.shape[1] == self._words
        return has_masks and self._hash is hash_in_process and type(self._distance) is Overlap

    def _add_one(self, event: Event) -> int:
        """Add an event and return its slot, as `add_many` does in several times the time."""
        attributes = event.attributes
        keys = [hash(name) & _ALL_BITS for name in attributes]
        marks = [*map(_mark_of, keys, attributes.values())]
        self._reserve(1, len(attributes))
        numbers = self._numbers_of(keys)
        first, self._used = self._used, self._used + len(attributes)
        pairs = sorted(zip(numbers, marks, strict=True))
        for pool, column in zip(self._pools, zip(*pairs, strict=True), strict=False):
            pool[first : self._used] = column
        slot = self._free.pop()
        self._starts[slot], self._ends[slot] = first, self._used
        self._held += len(attributes)
        self._taken.add(slot)
        if self._words != self._masks.shape[1]:
            self._write_masks([slot])
            return slot
        masks = [0] * self._words
        for number in numbers:
            masks[number // 64] |= 1 << number % 64
        self._masks[slot] = np.array(masks, np.uint64).view(np.int64)
        return slot

    def _numbered(self, keys: UInt64s) -> UInt64s:
        """Return the numbers of attributes, or keys that are tokens as they are."""
        if isinstance(self._distance, Jaccard):
            return keys
        if len(keys) <= _FEW_KEYS:
            return np.array(self._numbers_of(keys.tolist()), np.uint64)
        unique, inverse = np.unique(keys, return_inverse=True)
        return np.array(self._numbers_of(unique.tolist()), np.uint64)[inverse]

    def _numbers_of(self, keys: Iterable[int]) -> list[int]:
        numbers = self._numbers
        return [numbers.setdefault(key, len(numbers)) for key in keys]

    @property
    def _words(self) -> int:
        """The words of a mask; none if there are too many attributes, or weights."""
        words = -(-len(self._numbers) // 64)
        return words if words <= _MOST_WORDS and not self._weighted else 0

    def _write_masks(self, slots: Sequence[int]) -> None:
        """Write the masks of new rows; of all, where the number of words has changed."""
        words = self._words
        if words != self._masks.shape[1]:
            self._masks = np.zeros((self.capacity, words), np.int64)
            slots = sorted(self._taken)
        if words:
            write_masks(self.rows, np.array(slots, np.int64))

    def remove(self, slot: int) -> None:
        """Remove the event of a slot."""
        if slot not in self._taken:
            raise TidingsError(f"slot {slot} is free")
        self._taken.remove(slot)
        self._free.append(slot)
        self._held -= int(self._ends[slot] - self._starts[slot])

    @property
    def rows(self) -> SortedRows:
        """The hashes by slot, as kernels read them; valid until the next `add`."""
        return SortedRows(self._starts, self._ends, *self._pools, self._masks)

    def row(self, slot: int, others: Int64s) -> Float64s:
        """Return the distances of one event to others; some ten nanoseconds each."""
        distances = np.empty(len(others))
        distances_to(self.rows, slot, others, distances)
        return distances

    def matrix(self, slots: Int64s) -> Float64s:
        """Return the distances between all of some events."""
        lengths = self._ends[slots] - self._starts[slots]
        starts = offsets(lengths)
        positions = run_indexes(self._starts[slots], lengths)
        keys, marks, weights = self._pools
        keys_taken = keys[positions]
        marks_taken = keys_taken if marks is keys else marks[positions]
        weights_taken = weights[positions] if self._weighted else weights
        return matrix_of(HashRows(starts, keys_taken, marks_taken, weights_taken))

    def _reserve(self, events: int, tokens: int) -> None:
        """Grow the slots and the pools for `events` and `tokens` more."""
        if len(self._free) < events:
            old, size = self.capacity, self.capacity + max(self.capacity, events)
            self._free[:0] = range(size - 1, old - 1, -1)
            self._starts, self._ends, self._masks = (
                grown(column, size) for column in (self._starts, self._ends, self._masks)
            )
        if self._used + tokens > len(self._pools[0]):
            self._compact(max(64, 2 * (self._held + tokens)))

    def _empty_pools(self, size: int) -> tuple[UInt64s, UInt64s, Float64s]:
        keys = np.empty(size, np.uint64)
        jaccard = isinstance(self._distance, Jaccard)
        marks = keys if jaccard else np.empty(size + WORDS, np.uint64)
        return (keys, marks, np.empty(size if self._weighted else 0))

    def _compact(self, size: int) -> None:
        """Copy the hashes of all events into new pools, without the gaps."""
        slots = np.array(sorted(self._taken), np.int64)
        sizes = self._ends[slots] - self._starts[slots]
        starts, cells = offsets(sizes), run_indexes(self._starts[slots], sizes)
        pools, used = self._empty_pools(size), int(starts[-1])
        for pool, old_pool in zip(pools, self._pools, strict=True):
            if len(old_pool):
                pool[:used] = old_pool[cells]
        self._starts[slots], self._ends[slots] = starts[:-1], starts[1:]
        self._pools, self._used = pools, used
        if self._numbers:
            self._number_again()

    def _number_again(self) -> None:
        """Forget the attributes of events that have left; the others stay in their order."""
        keys = self._pools[0][: self._used]
        used = np.unique(keys)
        keys[:] = np.searchsorted(used, keys)
        hashes = [*self._numbers]  # by number
        self._numbers = {hashes[number]: new for new, number in enumerate(used.tolist())}
        self._masks = np.zeros((self.capacity, 0), np.int64)
        self._write_masks([])


def _sorted_rows(starts: Int64s, keys: npt.NDArray[Any]) -> Int64s:
    """Return the permutation that sorts the keys of each row."""
    if len(starts) == 2:
        return np.argsort(keys)
    return np.lexsort((keys, np.repeat(np.arange(len(starts) - 1), np.diff(starts))))
