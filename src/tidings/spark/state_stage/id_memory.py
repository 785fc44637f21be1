"""Memory of event ids that were seen: hashes with their times, for a bounded period."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import Bools, Int64s, UInt64s
from tidings.formats.binary import check

_NAME: Final = "the memory of event ids of a bucket"
CAPACITY: Final = 1 << 15
"""Most ids that are remembered behind the watermark."""


class IdMemory:
    """Ids as 128-bit hashes sorted by their low half, with times: 24 bytes an id.

    Among 2^15 of them, a new id is taken for an old one with a probability of 2^-113.
    """

    def __init__(self, remember_us: int, capacity: int = CAPACITY) -> None:
        self._remember_us, self._capacity = remember_us, capacity
        self.low, self.high = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        self.us = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.us)

    def contains(self, hashes: UInt64s) -> Bools:
        """Return which ids were seen; O(log n) each."""
        if not len(self):
            return np.zeros(len(hashes), np.bool_)
        positions = np.minimum(np.searchsorted(self.low, hashes[:, 0]), len(self) - 1)
        same = (self.low[positions] == hashes[:, 0]) & (self.high[positions] == hashes[:, 1])
        return np.asarray(same)

    def add(self, hashes: UInt64s, us: Int64s) -> None:
        """Add new ids, each once."""
        low = np.concatenate([self.low, hashes[:, 0]])
        order = np.argsort(low, kind="stable")
        self.low = low[order]
        self.high = np.concatenate([self.high, hashes[:, 1]])[order]
        self.us = np.concatenate([self.us, us])[order]

    def forget(self, watermark_us: int) -> None:
        """Drop ids that are too old, and the oldest of those above the capacity.

        Ids at or after the watermark stay: their events could still be repeated in time.
        """
        remembered = self.us >= watermark_us - self._remember_us
        behind = self.us[remembered & (self.us < watermark_us)]
        excess = len(behind) - self._capacity
        if excess > 0:
            remembered &= self.us >= np.partition(behind, excess)[excess]
        if not remembered.all():
            self.low, self.high = self.low[remembered], self.high[remembered]
            self.us = self.us[remembered]

    def columns(self) -> dict[str, Any]:
        """Return the state as columns."""
        return {"low": self.low, "high": self.high, "us": self.us}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state from columns."""
        low, high, us = (state[name] for name in ("low", "high", "us"))
        for column, kind in ((low, np.uint64), (high, np.uint64), (us, np.int64)):
            fits = isinstance(column, np.ndarray) and column.dtype == kind
            check(fits and column.shape == (len(low),), _NAME, "a column is missing")
        check((low[1:] >= low[:-1]).all(), _NAME, "the ids are not sorted")
        self.low, self.high, self.us = low.copy(), high.copy(), us.copy()


def hash_ids(ids: Sequence[str]) -> UInt64s:
    """Return 128-bit hashes of ids in two columns, the same in every process."""
    digests = b"".join([blake2b(id.encode(), digest_size=16).digest() for id in ids])
    return np.frombuffer(digests, "<u8").reshape(-1, 2).astype(np.uint64)
