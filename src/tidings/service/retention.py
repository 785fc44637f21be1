"""Retention: records older than a service keeps are deleted periodically."""

import logging
import time
from dataclasses import dataclass, field
from typing import Final

from tidings.model.values import SECOND_US
from tidings.store import Store

_LOG: Final = logging.getLogger(__name__)
_EVERY_S: Final = 600.0


@dataclass
class Retention:
    """Deletes old notifications, publications and channel failures of a store.

    The ids of what was delivered or published are remembered, so that nothing is repeated.
    """

    store: Store
    keep_us: int | None
    _done_at: float = field(default=float("-inf"), init=False)

    def apply_if_due(self) -> None:
        """Delete what is too old, every ten minutes."""
        if self.keep_us is None or time.monotonic() - self._done_at < _EVERY_S:
            return
        self._done_at = time.monotonic()
        before = time.time() - self.keep_us / SECOND_US
        notifications = self.store.notifications.prune(before)
        publications = self.store.publications.prune(before)
        self.store.channels.prune(int(before * SECOND_US))
        self.store.digests.prune(int(before * SECOND_US))
        self.store.marks.prune()
        if notifications or publications:
            _LOG.info("deleted %d notifications, %d publications", notifications, publications)
