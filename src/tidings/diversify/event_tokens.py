"""Events as 64-bit hashes, the same in every process: what the kernels compare.

The hash of an attribute=value token is XXH64 of the value as text, in UTF-8. Its seed is XXH64 of
the attribute's name (seed 0) plus the number of the family. Numbers and times are printed as Python
prints floats, booleans as `True` and `False`, ranges as both bounds and the mode, with blanks.

Two tokens are taken as equal if their hashes are. A window of a million different tokens holds a
false pair with a probability of about 3e-8.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s, UInt64s
from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.kernels.xxh64 import Packed, hash_values
from tidings.diversify.protocol import Distance
from tidings.model.records import Event
from tidings.model.values import Family, Key, Range

SEPARATOR: Final = "\0"
NEVER: Final = 0xFF
"""A byte that UTF-8 never holds."""
FAMILIES: Final[dict[Family, int]] = {"string": 0, "number": 1, "boolean": 2, "time": 3}
_ALL_ONE: Final = np.empty(0, np.int64)


class Rows(NamedTuple):
    """Events as rows of hashes, one behind the other, not sorted.

    Row i is `keys[starts[i]:starts[i + 1]]`. For the overlap distance a key is an attribute and its
    mark the attribute with its set of values; for Jaccard both are a token, and one array.
    `weights` is empty where all are 1.
    """

    starts: Int64s
    keys: UInt64s
    marks: UInt64s
    weights: Float64s


def known(distance: Distance) -> bool:
    """Tell whether kernels know the distance: `overlap` and `jaccard`, and nothing derived."""
    return type(distance) in (Overlap, Jaccard)


def hashed(events: Sequence[Event], distance: Distance) -> Rows:
    """Give what `distance` compares of each event; quick for an event seen before."""
    if isinstance(distance, Jaccard):
        starts, keys = token_rows(events)
        return Rows(starts, keys, keys, np.empty(0))
    chunks = [_kept(event, "_marks") for event in events]
    pairs = np.frombuffer(b"".join(chunks), np.uint64).reshape(-1, 2)
    starts = starting([len(each) // 16 for each in chunks])
    weights = getattr(distance, "weights", {})
    each = [weights.get(name, 1.0) for event in events for name in event.tokens] if weights else []
    return Rows(starts, pairs[:, 0].copy(), pairs[:, 1].copy(), np.array(each, np.float64))


def token_rows(events: Sequence[Event]) -> tuple[Int64s, UInt64s]:
    """Give the hashes of the attribute=value tokens of each event, and where each starts."""
    chunks = [_kept(event, "_values") for event in events]
    whole = bytearray().join(chunks)  # an array over it may be written to, as kernels want them
    return starting([len(each) // 8 for each in chunks]), np.frombuffer(whole, np.uint64)


def token_hashes(event: Event) -> UInt64s:
    """Give the hashes of the attribute=value tokens of one event, not to be written to."""
    return np.frombuffer(_kept(event, "_values"), np.uint64)


def _kept(event: Event, name: str) -> bytes:
    """Give hashes that an event keeps, as it does a cached property."""
    kept: dict[str, Any] = vars(event)
    found: bytes | None = kept.get(name)
    if found is None:
        kept["_values"], kept["_marks"] = _hashes(event)
        found = kept[name]
    return found


def _hashes(event: Event) -> tuple[bytes, bytes]:
    """Give the hashes of an event's tokens, and the pairs of its attributes.

    All in one kernel: a token that was never seen costs no more than one that was.
    """
    packed = _texts(event.attributes) or _packed(event)
    sizes, attributes = packed[3], len(event.attributes)
    tokens = np.empty(int(sizes.sum()) if len(sizes) else attributes, np.uint64)
    pairs = np.empty((attributes, 2), np.uint64)
    hash_values(packed, tokens, pairs)
    return tokens.tobytes(), pairs.tobytes()


def _texts(attributes: Mapping[str, Any]) -> Packed | None:
    """Pack attributes that all are one text, as most are; None for others."""
    try:
        names, texts = SEPARATOR.join(attributes), SEPARATOR.join(attributes.values())
    except TypeError:
        return None
    if not names.count(SEPARATOR) == texts.count(SEPARATOR) == len(attributes) - 1:
        return None
    return names.encode(), texts.encode(), b"", _ALL_ONE, 0


def _packed(event: Event) -> Packed:
    """Pack attributes of any values."""
    sizes = [len(values) for values in event.tokens.values()]
    tokens = [each for values in event.tokens.values() for each in values]
    names = [name.encode() for name in event.tokens]
    texts = [_text(key).encode() for _, key in tokens]
    families = bytes([FAMILIES[family] for family, _ in tokens])
    parted = bytes([NEVER])
    return parted.join(names), parted.join(texts), families, np.array(sizes, np.int64), NEVER


def _text(key: Key) -> str:
    if isinstance(key, Range):
        low, high = key.span
        return f"{low!r} {high!r} {key.mode}"
    return key if isinstance(key, str) else repr(key)


def starting(lengths: Sequence[int] | Int64s) -> Int64s:
    """Give where each of some pieces starts, and where the last ends."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts
