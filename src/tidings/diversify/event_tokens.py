"""Events as 64-bit hashes that are the same in every process: the input of the kernels.

The hash of an attribute=value token is XXH64 of the value as text, in UTF-8. Its seed is XXH64 of
the attribute's name (seed 0) plus the number of the value's family. Numbers and times are printed
as Python prints floats, booleans as `True` and `False`, ranges as both bounds and the mode,
separated by blanks.

Two tokens count as equal if their hashes are. A window of a million different tokens holds a false
pair with a probability of about 3e-8.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s, UInt64s
from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.kernels.xxh64 import PackedAttributes, hash_values
from tidings.diversify.protocol import Distance
from tidings.model.records import Event
from tidings.model.values import Family, Key, Range

NUL: Final = "\0"
"""The separator of texts that do not contain it: cheaper to join than bytes."""
NEVER_IN_UTF8: Final = 0xFF
"""The separator of all others."""
FAMILIES: Final[dict[Family, int]] = {"string": 0, "number": 1, "boolean": 2, "time": 3}
_STRING, _NUMBER = FAMILIES["string"], FAMILIES["number"]
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
    chunks = [_cached_hashes(event, "_marks") for event in events]
    pairs = np.frombuffer(b"".join(chunks), np.uint64).reshape(-1, 2)
    starts = offsets([len(chunk) // 16 for chunk in chunks])
    weight_of = getattr(distance, "weights", {})
    weights = (
        [weight_of.get(name, 1.0) for event in events for name in event.tokens] if weight_of else []
    )
    return HashRows(starts, pairs[:, 0].copy(), pairs[:, 1].copy(), np.array(weights, np.float64))


def token_rows(events: Sequence[Event]) -> tuple[Int64s, UInt64s]:
    """Return where the tokens of each event start, and the hashes of all tokens."""
    chunks = [_cached_hashes(event, "_values") for event in events]
    joined = bytearray().join(chunks)  # writable, as the signatures of the kernels require
    return offsets([len(chunk) // 8 for chunk in chunks]), np.frombuffer(joined, np.uint64)


def _cached_hashes(event: Event, name: str) -> bytes:
    """Return hashes that are cached on the event, as a cached property is."""
    cache: dict[str, Any] = vars(event)
    hashes: bytes | None = cache.get(name)
    if hashes is None:
        cache["_values"], cache["_marks"] = _hashes(event)
        hashes = cache[name]
    return hashes


def _hashes(event: Event) -> tuple[bytes, bytes]:
    """Return the hashes of an event's tokens, and the pairs of its attributes, by one kernel."""
    attributes = event.attributes
    packed = _pack_strings(attributes) or _pack_scalars(attributes) or _pack_values(event)
    count = len(attributes)
    tokens = np.empty(int(packed.sizes.sum()) if len(packed.sizes) else count, np.uint64)
    pairs = np.empty((count, 2), np.uint64)
    hash_values((*packed,), tokens, pairs)
    return tokens.tobytes(), pairs.tobytes()


def _pack_strings(attributes: Mapping[str, Any]) -> PackedAttributes | None:
    """Pack attributes that are all single strings, as most are; return None for others."""
    try:
        names, texts = NUL.join(attributes), NUL.join(attributes.values())
    except TypeError:
        return None
    if not names.count(NUL) == texts.count(NUL) == len(attributes) - 1:
        return None
    return PackedAttributes(names.encode(), texts.encode(), b"", _ONE_VALUE_EACH, 0)


def _pack_scalars(attributes: Mapping[str, Any]) -> PackedAttributes | None:
    """Pack attributes that are all single strings and numbers; return None for others.

    This takes a quarter of the time of `_pack_values`, which makes sets of values.
    """
    kinds, texts = bytearray(), list[str]()
    for value in attributes.values():
        kind = type(value)
        if kind is str:
            kinds.append(_STRING)
            texts.append(value)
        elif kind is float or kind is int:
            kinds.append(_NUMBER)
            texts.append(repr(float(value) + 0.0))
        else:
            return None
    names, joined = NUL.join(attributes), NUL.join(texts)
    if not names.count(NUL) == joined.count(NUL) == len(texts) - 1:
        return None
    return PackedAttributes(names.encode(), joined.encode(), bytes(kinds), _ONE_VALUE_EACH, 0)


def _pack_values(event: Event) -> PackedAttributes:
    """Pack attributes of any values."""
    tokens = [token for values in event.tokens.values() for token in values]
    separator = bytes([NEVER_IN_UTF8])
    return PackedAttributes(
        names=separator.join(name.encode() for name in event.tokens),
        texts=separator.join(_text(key).encode() for _, key in tokens),
        families=bytes([FAMILIES[family] for family, _ in tokens]),
        sizes=np.array([len(values) for values in event.tokens.values()], np.int64),
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
