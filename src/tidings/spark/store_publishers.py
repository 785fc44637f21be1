"""Publishers of the stores that are passed as subscriptions, shared within a process."""

import atexit
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from threading import Lock
from typing import Final, NamedTuple

from tidings.errors import prefix_errors
from tidings.index_files.publisher import Publisher
from tidings.index_files.read_source import Defaults
from tidings.index_files.versions import IndexFolder, file_name
from tidings.policy import DEFAULT_POLICY, Policy
from tidings.store import Store

FOLDER: Final = "spark.tidings.index"
"""Setting that names a folder for index files, which all machines of a cluster can read."""


@dataclass(frozen=True)
class PublishSettings:
    """How a store is published: parts, parent folder, for a stream or not, and default policy.

    Without a parent folder, the index files are in a temporary folder of this process.
    """

    parts: int
    parent: str | None
    streaming: bool
    default_policy: Policy | None = DEFAULT_POLICY

    @property
    def durable(self) -> bool:
        """Whether the index files outlive this process, and with them the pins of queries."""
        return self.streaming and self.parent is not None


class _Entry(NamedTuple):
    store: Store
    publisher: Publisher


class StorePublishers:
    """The publishers of this process, shared by calls and closed when the process ends."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._entries: dict[tuple[str, PublishSettings], _Entry] = {}

    def __contains__(self, key: tuple[str, PublishSettings]) -> bool:
        return key in self._entries

    def folder(self, store: Store, settings: PublishSettings) -> IndexFolder:
        """Publish the contents of a store; for a stream, follow its changes as well.

        A store that is opened again replaces its predecessor, which may be closed.
        """
        key = store.history.store_id(), settings
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is None or entry.store is not store:
                path = entry.publisher.folder.path if entry else _folder_path(*key)
                if entry:
                    entry.publisher.close()
                entry = _Entry(store, _publisher(path, store, settings))
            self._entries[key] = entry
            entry.publisher.publish()
            if settings.streaming:
                entry.publisher.follow()
            return entry.publisher.folder


@cache
def store_publishers() -> StorePublishers:
    """Return the publishers of this process."""
    return StorePublishers()


def temporary_folder(parent: str | None) -> Path:
    """Create a folder that is removed when this process ends, in a parent that may be new."""
    with prefix_errors(f"{FOLDER} = {parent}: index files cannot be written there: ", OSError):
        if parent is not None:
            Path(parent).mkdir(parents=True, exist_ok=True)
        path = Path(mkdtemp(prefix="tidings-index-", dir=parent))
    atexit.register(rmtree, path, ignore_errors=True)
    return path


def _folder_path(store: str, settings: PublishSettings) -> Path:
    """Return a folder that a later process finds again by its name, or a temporary one."""
    if settings.parent is None or not settings.durable:
        return temporary_folder(settings.parent)
    return Path(settings.parent) / f"tidings-store-{file_name(store)}-{settings.parts}"


def _publisher(path: Path, store: Store, settings: PublishSettings) -> Publisher:
    defaults = Defaults(others=settings.default_policy)
    publisher = Publisher(path, store.history, settings.parts, defaults=defaults)
    # Exit handlers run in reverse order: this one before the folder is removed.
    atexit.register(publisher.close)
    return publisher
