"""Where the workers get what they match with: versions in a folder, or objects that travel."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from pyspark import TaskContext

from tidings.index_files.overlay_matcher import OverlayMatcher, in_memory_matcher
from tidings.index_files.subscriber_bundle import SubscriberBundle, any_counts_published
from tidings.index_files.version_cache import FolderPolicies, serve
from tidings.index_files.versions import IndexFolder
from tidings.policy import Policy

_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"


class Matchers(Protocol):
    """What serves the events of a task."""

    @property
    def parts(self) -> int:
        """Into how many parts subscribers are split."""

    @property
    def follows(self) -> bool:
        """Whether subscribers may come and go while events are matched."""

    def counting(self) -> bool:
        """Tell whether events need their numbers: some window counts all that is published."""

    def serve(self, part: int) -> OverlayMatcher:
        """Give what answers for a part."""


class Batch(NamedTuple):
    """A micro-batch of a streaming query."""

    query: str
    number: int


def batch_of_task() -> Batch | None:
    """Give the micro-batch that this task works for; none outside of streams."""
    task = TaskContext.get()
    query = task.getLocalProperty(_QUERY) if task else None
    number = task.getLocalProperty(_BATCH) if task else None
    return Batch(query, int(number)) if query and number else None


@dataclass(frozen=True)
class Versions:
    """A folder of sealed files: at one version, or at the one that each batch is pinned to."""

    folder: IndexFolder
    version: int | None = None

    @cached_property
    def parts(self) -> int:
        """Into how many parts subscribers are split."""
        return len(self.folder.manifest(self.version or self.folder.newest()).parts)

    @property
    def follows(self) -> bool:
        """Whether the version is that of each batch."""
        return self.version is None

    def counting(self) -> bool:
        """Tell whether somebody counts, or did when the last base was made."""
        return self.folder.manifest(self.now()).counts_published

    def serve(self, part: int) -> OverlayMatcher:
        """Give the part from what this process has read already, or from its files."""
        return serve(self.folder, self.now(), part)

    def now(self) -> int:
        """Give the version for this task."""
        if self.version is not None:
            return self.version
        batch = batch_of_task()
        return self.folder.pin(*batch) if batch else self.folder.newest()


@dataclass(frozen=True)
class Objects:
    """Members as they are: those whose policies cannot be written."""

    members: Sequence[SubscriberBundle] = field(hash=False)
    parts: int = 1
    follows: ClassVar[bool] = False

    def counting(self) -> bool:
        """Tell whether somebody counts."""
        return any_counts_published(self.members)

    def serve(self, part: int) -> OverlayMatcher:
        """Give an index of them, which is built for the first who asks in a task."""
        return self._served

    @cached_property
    def _served(self) -> OverlayMatcher:
        return in_memory_matcher(self.members)


class PinnedRoster:
    """The subscribers of a folder at the version that the batch of this task is pinned to."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._found: FolderPolicies | None = None
        self._batch: Any = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return (PinnedRoster, (self._versions,))

    @property
    def version(self) -> int:
        """The version of the batch."""
        return self._roster.version

    def policy(self, name: str) -> Policy | None:
        """Give the policy of a subscriber; None if there is no such subscriber."""
        return self._roster.policy(name)

    def changed_since(self, version: int) -> set[str] | None:
        """Give who changed after a version; None if that is not known any more."""
        return self._roster.changed_since(version)

    @property
    def _roster(self) -> FolderPolicies:
        batch = batch_of_task()
        if self._found is None or batch != self._batch:
            self._found = FolderPolicies(self._versions.folder, self._versions.now())
            self._batch = batch
        return self._found
