"""Up to which key a table is complete, so that reading goes on after it and misses nothing."""

import time
from dataclasses import dataclass, field
from typing import Final

from tidings.store.append_only_postgres import PREPARED
from tidings.store.append_only_table import AppendOnlyTable

_LOOK_EVERY_S: Final = 0.05


@dataclass(frozen=True)
class HorizonCandidate:
    """A largest key that was seen, and who was writing after that.

    Once these are over, no row with a smaller key can appear any more: it would have taken its key
    before, and who takes one is among the writers until it is over.
    """

    top: int
    writers: frozenset[str]


@dataclass
class CommitHorizon:
    """How far a table is complete, asked again and again.

    A long transaction holds back only what comes after it began to write, if that was asked before.
    """

    table: AppendOnlyTable
    upto: int | None = None
    _next: HorizonCandidate | None = field(default=None, init=False)

    def look(self, patience_s: float) -> int | None:
        """Give the largest key up to which all is there; writers are waited for, for a while.

        None: nothing is known to be complete.
        """
        deadline = time.monotonic() + patience_s
        self._settle()
        if self._next is None:
            top = self.table.top()
            if top is None:
                return self.upto
            self._next = HorizonCandidate(top, self.table.writers() | {PREPARED})
        while not self._settle() and time.monotonic() < deadline:
            time.sleep(_LOOK_EVERY_S)
        return self.upto

    def _settle(self) -> bool:
        """Take the candidate if all who wrote then are over."""
        if self._next is None or self._next.writers & self.table.writers():
            return False
        self.upto, self._next = self._next.top, None
        return True
