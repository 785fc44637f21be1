"""Events as 64-bit hashes, the same in every process: what the kernels compare.

Two tokens are taken as equal if their hashes are. A window of a million different tokens holds a
false pair with a probability of about 3e-8.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.protocol import Distance, Floats, Ints
from tidings.model import Event
from tidings.values import Range, Token

Hashes = npt.NDArray[np.uint64]

_REMEMBERED: Final = 1 << 17


class Rows(NamedTuple):
    """Events as rows of hashes, one behind the other, not sorted.

    Row i is `keys[starts[i]:starts[i + 1]]`. For the overlap distance a key is an attribute and its
    mark the attribute with its set of values; for Jaccard both are a token, and one array.
    `weights` is empty where all are 1.
    """

    starts: Ints
    keys: Hashes
    marks: Hashes
    weights: Floats


def known(distance: Distance) -> bool:
    """Tell whether kernels know the distance: `overlap` and `jaccard`, and nothing derived."""
    return type(distance) in (Overlap, Jaccard)


def hashed(events: Sequence[Event], distance: Distance) -> Rows:
    """Give what `distance` compares of each event; quick for an event seen before."""
    if isinstance(distance, Jaccard):
        starts, keys = token_rows(events)
        return Rows(starts, keys, keys, np.empty(0))
    chunks = [_kept(event, "_marks", _marks) for event in events]
    pairs = np.frombuffer(b"".join(chunks), np.uint64).reshape(-1, 2)
    starts = starting([len(each) // 16 for each in chunks])
    weights = getattr(distance, "weights", {})
    each = [weights.get(name, 1.0) for event in events for name in event.tokens] if weights else []
    return Rows(starts, pairs[:, 0].copy(), pairs[:, 1].copy(), np.array(each, np.float64))


def token_rows(events: Sequence[Event]) -> tuple[Ints, Hashes]:
    """Give the hashes of the attribute=value tokens of each event, and where each starts."""
    chunks = [_kept(event, "_values", _values) for event in events]
    whole = bytearray().join(chunks)  # an array over it may be written to, as kernels want them
    return starting([len(each) // 8 for each in chunks]), np.frombuffer(whole, np.uint64)


def token_hashes(event: Event) -> Hashes:
    """Give the hashes of the attribute=value tokens of one event, not to be written to."""
    return np.frombuffer(_kept(event, "_values", _values), np.uint64)


def _kept(event: Event, name: str, hashes: Callable[[Event], bytes]) -> bytes:
    """Give the hashes of an event, which it keeps, as it does a cached property."""
    kept: dict[str, Any] = vars(event)
    found: bytes | None = kept.get(name)
    if found is None:
        found = kept[name] = hashes(event)
    return found


def _marks(event: Event) -> bytes:
    return b"".join(map(marked, event.tokens, event.tokens.values()))


def _values(event: Event) -> bytes:
    seen, tokens = _SEEN, event.tokens
    return b"".join(
        [
            seen[name][value]
            if value.__class__ is str
            else b"".join(map(seen[name].__getitem__, tokens[name]))
            for name, value in event.attributes.items()
        ]
    )


def starting(lengths: Sequence[int] | Ints) -> Ints:
    """Give where each of some pieces starts, and where the last ends."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


@lru_cache(_REMEMBERED)
def marked(name: str, values: frozenset[Token]) -> bytes:
    """Give the hashes of an attribute and of it with its values: 16 bytes, remembered."""
    own = _digest(name.encode())
    return own + _digest(own + b"".join(sorted(token_hash(name, each) for each in values)))


class Seen(dict[str, "Own"]):
    """The hashes of tokens, by attribute; what is missing is hashed, and much forgets all."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most, self._left = most, most

    def __missing__(self, name: str) -> "Own":
        self[name] = found = Own(name, self)
        return found

    def grow(self) -> None:
        """Count one more token."""
        self._left -= 1
        if self._left < 0:
            self.clear()
            self._left = self._most


class Own(dict[Token | str, bytes]):
    """The hashes of the tokens of one attribute; a text stands for its token, found sooner.

    What the tokens of texts begin with is hashed once: that halves what a new text costs.
    """

    def __init__(self, name: str, seen: Seen) -> None:
        super().__init__()
        self._name, self._seen = name, seen
        self._begun = blake2b(f"({name!r}, ('string', ".encode(), digest_size=8)

    def __missing__(self, token: Token | str) -> bytes:
        self._seen.grow()
        if isinstance(token, str):
            whole = self._begun.copy()
            whole.update(f"{token!r}))".encode())
            found = whole.digest()
        else:
            found = token_hash(self._name, token)
        self[token] = found
        return found


_SEEN: Final = Seen(_REMEMBERED)


def token_hash(name: str, token: Token) -> bytes:
    """Hash an attribute=value token; equal ranges hash alike however their bounds were given."""
    family, value = token
    whole: Any = token
    if isinstance(value, Range):
        whole = (family, (*value.span, value.mode))
    return _digest(repr((name, whole)).encode())


def _digest(text: bytes) -> bytes:
    return blake2b(text, digest_size=8).digest()
