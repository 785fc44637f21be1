"""Which events have come already: hashes of ids with their times, for a bounded while."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Int64s, UInt64s
from tidings.formats.binary import check

_NAME: Final = "the list of ids that a bucket has seen"
MOST: Final = 1 << 15
"""How many ids are remembered at most, besides those that are not before the watermark."""


class Seen:
    """Ids as 128-bit hashes in order, and times: 24 bytes an id.

    Among 2^15 of them, a new id is taken for an old one with a chance of 2^-113.
    """

    def __init__(self, remember_us: int, most: int = MOST) -> None:
        self._remember_us, self._most = remember_us, most
        self.low, self.high = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        self.us = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.us)

    def known(self, hashes: UInt64s) -> npt.NDArray[np.bool_]:
        """Tell which ids have come already; O(log n) each."""
        if not len(self):
            return np.zeros(len(hashes), np.bool_)
        places = np.minimum(np.searchsorted(self.low, hashes[:, 0]), len(self) - 1)
        same = (self.low[places] == hashes[:, 0]) & (self.high[places] == hashes[:, 1])
        return np.asarray(same)

    def add(self, hashes: UInt64s, us: Int64s) -> None:
        """Remember new ids, each once."""
        low = np.concatenate([self.low, hashes[:, 0]])
        order = np.argsort(low, kind="stable")
        self.low = low[order]
        self.high = np.concatenate([self.high, hashes[:, 1]])[order]
        self.us = np.concatenate([self.us, us])[order]

    def forget(self, watermark_us: int) -> None:
        """Forget what is too old, and the oldest where there are too many.

        What is not before the watermark may still come again in time, and stays.
        """
        kept = self.us >= watermark_us - self._remember_us
        old = self.us[kept & (self.us < watermark_us)]
        if len(old) > self._most:
            first = np.partition(old, len(old) - self._most)[len(old) - self._most]
            kept &= self.us >= first
        if not kept.all():
            self.low, self.high, self.us = self.low[kept], self.high[kept], self.us[kept]

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Give the state as columns."""
        return {"low": self.low, "high": self.high, "us": self.us}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from columns."""
        low, high, us = (state[name] for name in ("low", "high", "us"))
        for column, kind in ((low, np.uint64), (high, np.uint64), (us, np.int64)):
            fits = isinstance(column, np.ndarray) and column.dtype == kind
            check(fits and column.shape == (len(low),), _NAME, "a column is missing")
        check((low[1:] >= low[:-1]).all(), _NAME, "they are not in order")
        self.low, self.high, self.us = low.copy(), high.copy(), us.copy()


def hashed(ids: Sequence[str]) -> UInt64s:
    """Give the hashes of ids, the same in every process."""
    digests = b"".join([blake2b(each.encode(), digest_size=16).digest() for each in ids])
    return np.frombuffer(digests, "<u8").reshape(-1, 2).astype(np.uint64)
