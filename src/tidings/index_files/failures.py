"""What fails in threads that nobody waits for: told in the log, and to who asks."""

import logging
from typing import Final

from tidings.errors import TidingsError
from tidings.index_files.versions import Folder

_LOG: Final = logging.getLogger(__name__)


class Failures:
    """The last failure of each kind of work on a folder, until that work succeeds."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._found: dict[str, Exception] = {}

    def note(self, work: str, failure: Exception) -> None:
        """Keep a failure, and log it if it is not the one that this work had before."""
        before, self._found[work] = self._found.get(work), failure
        if repr(before) != repr(failure):
            _LOG.warning("%s: %s failed, and is tried again: %r", self._folder.path, work, failure)

    def forget(self, work: str) -> None:
        """Take note that some work succeeded."""
        self._found.pop(work, None)

    def tell(self) -> None:
        """Raise what fails at present, if something does."""
        for work, failure in self._found.items():
            raise TidingsError(
                f"{self._folder.path} is not up to date: {work}: {failure}"
            ) from failure
