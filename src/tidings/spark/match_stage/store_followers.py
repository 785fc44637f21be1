"""Stores in the place of subscriptions: who publishes them in this process, and where to."""

import atexit
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from threading import Lock
from typing import NamedTuple

from tidings.index_files.file_names import file_name
from tidings.index_files.publisher import Publisher
from tidings.index_files.versions import IndexFolder
from tidings.store import Store


@dataclass(frozen=True)
class Wish:
    """How a store is to be published: in how many parts, below which folder, for a stream or not.

    Without a folder, it is a temporary one of this process.
    """

    parts: int
    below: str | None
    streaming: bool

    @property
    def lasting(self) -> bool:
        """Tell whether the index files outlive this process, and with them the pins of queries."""
        return self.streaming and self.below is not None


class _Known(NamedTuple):
    store: Store
    publisher: Publisher


class Followed:
    """The publishers of this process, one for each store and wish, which calls share.

    They are closed when the process ends.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[tuple[str, Wish], _Known] = {}

    def __contains__(self, key: tuple[str, Wish]) -> bool:
        return key in self._known

    def folder(self, store: Store, wish: Wish) -> IndexFolder:
        """Publish what a store has; for a stream also what it will have, while this process lives.

        A store that is opened anew takes the place of the one that was: that may be closed.
        """
        key = store.history.store_id(), wish
        with self._lock:
            known = self._known.pop(key, None)
            if known is None or known.store is not store:
                path = known.publisher.folder.path if known else _place(*key)
                if known:
                    known.publisher.close()
                known = _Known(store, _publisher(path, store, wish))
            self._known[key] = known
            known.publisher.publish()
            if wish.streaming:
                known.publisher.follow()
            return known.publisher.folder


@cache
def followed() -> Followed:
    """Give the publishers of this process."""
    return Followed()


def temporary_folder(below: str | None) -> Path:
    """Make a folder that is removed when this process ends."""
    path = Path(mkdtemp(prefix="tidings-index-", dir=below))
    atexit.register(rmtree, path, ignore_errors=True)
    return path


def _place(store: str, wish: Wish) -> Path:
    """Give a folder by a name that a process after this one finds again, or a temporary one."""
    if wish.below is None or not wish.lasting:
        return temporary_folder(wish.below)
    return Path(wish.below) / f"tidings-store-{file_name(store)}-{wish.parts}"


def _publisher(path: Path, store: Store, wish: Wish) -> Publisher:
    publisher = Publisher(path, store.history, wish.parts)
    atexit.register(publisher.close)  # before its folder is removed: the last is done first
    return publisher
