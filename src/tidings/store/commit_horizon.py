"""The commit horizon of a table: the key up to which all rows are visible, so none is missed."""

import time
from dataclasses import dataclass, field
from typing import Final

from tidings.store.append_only_table import AppendOnlyTable
from tidings.store.dialect import PREPARED

_POLL_EVERY_S: Final = 0.05


@dataclass(frozen=True)
class HorizonCandidate:
    """A largest key that was seen, and the transactions that were writing after that.

    Once these have ended, no row with a smaller key can appear: its transaction would have taken
    the key before, and a transaction is among the writers from then until it ends.
    """

    top: int
    writers: frozenset[str]


@dataclass
class CommitHorizon:
    """The horizon of one table, polled repeatedly.

    A long transaction holds back only rows that come after it began to write, provided that the
    horizon was polled before it.
    """

    table: AppendOnlyTable
    upto: int | None = None
    _next: HorizonCandidate | None = field(default=None, init=False)

    def look(self, patience_s: float) -> int | None:
        """Return the horizon, waiting for writers for up to `patience_s`; None if not known yet."""
        deadline = time.monotonic() + patience_s
        self._advance()
        if self._next is None:
            top = self.table.top()
            if top is None:
                return self.upto
            # A writer of now may be PREPARED later, under that name.
            self._next = HorizonCandidate(top, self.table.writers() | {PREPARED})
        while not self._advance() and time.monotonic() < deadline:
            time.sleep(_POLL_EVERY_S)
        return self.upto

    def _advance(self) -> bool:
        """Move to the candidate if all of its writers have ended."""
        if self._next is None or self._next.writers & self.table.writers():
            return False
        self.upto, self._next = self._next.top, None
        return True
