"""Events as 64-bit hashes that are the same in every process: the input of the kernels.

The hash of an attribute=value token is XXH64 of the value as text, in UTF-8. Its seed is XXH64 of
the attribute's name (seed 0) plus the number of the value's family. Numbers and times are printed
as Python prints floats, booleans as `True` and `False`, ranges as both bounds and the mode,
separated by blanks.

Two tokens count as equal if their hashes are. A window of a million different tokens holds a false
pair with a probability of about 3e-8.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s, UInt64s
from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.kernels.xxh64 import PackedAttributes, hash_values
from tidings.diversify.protocol import Distance
from tidings.model.records import Event
from tidings.model.values import Family, Key, Range, tokens

NUL: Final = "\0"
"""The separator of texts that do not contain it: cheaper to join than bytes."""
NEVER_IN_UTF8: Final = 0xFF
"""The separator of all others."""
FAMILIES: Final[dict[Family, int]] = {"string": 0, "number": 1, "boolean": 2, "time": 3}
_STRING, _NUMBER = FAMILIES["string"], FAMILIES["number"]
_TOGETHER: Final = 1024
"""Events that are hashed by one call, so that their texts stay in the cache of the processor."""
_ONE_VALUE_EACH: Final = np.empty(0, np.int64)


class HashRows(NamedTuple):
    """Events as rows of hashes, one behind the other, not sorted.

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
    weight_of = getattr(distance, "weights", {})
    weights = (
        [weight_of.get(name, 1.0) for event in events for name in event.attributes]
        if weight_of
        else []
    )
    return HashRows(starts, pairs[:, 0].copy(), pairs[:, 1].copy(), np.array(weights, np.float64))


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

    One behind the other, the attributes of several events look like those of one.
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
    """Pack attributes of any values, of events one behind the other."""
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


def offsets(lengths: Sequence[int] | Int64s) -> Int64s:
    """Return where each of some pieces starts, and where the last one ends."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts
