"""Sources of the matchers that workers use: versions of an index folder, or pickled subscribers.

Index files hold everything except functions. Subscribers whose policies hold functions of the user
are pickled by Spark's own pickler into the objects that Spark sends to its workers in any case.

Spark sends objects above a megabyte (`spark.broadcast.UDFCompressionThreshold`) as a broadcast. The
match stage gets them so. The state stage unpickles its processor also where no broadcast arrives,
so the policies that it needs must stay below that threshold and are refused otherwise.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, Final, NamedTuple, Protocol

from pyspark import TaskContext

from tidings.errors import InvalidPolicy
from tidings.index_files.overlay_matcher import OverlayMatcher, in_memory_matcher
from tidings.index_files.subscriber_bundle import SubscriberBundle, any_counts_published
from tidings.index_files.version_cache import FolderPolicies, serve
from tidings.index_files.versions import IndexFolder
from tidings.spark.state_stage.policies import ListedPolicies, Pickled, PolicySource

THRESHOLD: Final = "spark.broadcast.UDFCompressionThreshold"
"""Spark setting: objects above this size are sent as a broadcast."""
DEFAULT_THRESHOLD: Final = 1 << 20
_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"
_CACHED: Final = 8
_OVERHEAD: Final = 1 << 16  # for the rest of the state stage's processor
_SIZE: Final = re.compile(r"([0-9]{1,12})\s*([kmg]?)b?", re.IGNORECASE)
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class MatcherSource(Protocol):
    """Provides the matcher of each part of the subscribers, on any worker."""

    @property
    def parts(self) -> int:
        """Number of parts into which the subscribers are split."""

    @property
    def follows(self) -> bool:
        """Whether subscribers may change while events are matched."""

    def counts_published(self) -> bool:
        """Return whether some window counts published events, which then need sequence numbers."""

    def matcher(self, part: int) -> OverlayMatcher:
        """Return the matcher of a part."""

    def policy_source(self) -> PolicySource:
        """Return the source of policies for the state stage."""


class MicroBatch(NamedTuple):
    """A micro-batch of a streaming query."""

    query: str
    number: int


def batch_of_task() -> MicroBatch | None:
    """Return the micro-batch of the running task, or None outside of streams."""
    task = TaskContext.get()
    query = task.getLocalProperty(_QUERY) if task else None
    number = task.getLocalProperty(_BATCH) if task else None
    return MicroBatch(query, int(number)) if query and number else None


@dataclass(frozen=True)
class FolderSource:
    """A folder of index files: at one version, or at the version that each batch is pinned to."""

    folder: IndexFolder
    version: int | None = None

    @cached_property
    def parts(self) -> int:
        return len(self.folder.manifest(self.version or self.folder.newest()).parts)

    @property
    def follows(self) -> bool:
        """Whether each batch has its own version."""
        return self.version is None

    def counts_published(self) -> bool:
        """Return whether some window counts published events, or did when its base was made."""
        return self.folder.manifest(self.task_version()).counts_published

    def matcher(self, part: int) -> OverlayMatcher:
        """Return the matcher of a part, which this process keeps for later batches."""
        return serve(self.folder, self.task_version(), part)

    def policy_source(self) -> PolicySource:
        """Return itself."""
        return self

    def policies(self) -> FolderPolicies:
        """Return the policies at the version of this task; it costs a read of the pin."""
        return FolderPolicies(self.folder, self.task_version())

    def task_version(self) -> int:
        """Return the version for the running task, pinning it for the batch if it is the first."""
        if self.version is not None:
            return self.version
        batch = batch_of_task()
        return self.folder.pin(*batch) if batch else self.folder.newest()


@dataclass(frozen=True)
class PickledSource:
    """Subscribers that travel with the functions of their policies, all in one part."""

    members: Pickled
    listed: ListedPolicies
    threshold: int = DEFAULT_THRESHOLD
    parts: ClassVar[int] = 1
    follows: ClassVar[bool] = False

    @classmethod
    def of(
        cls, members: Sequence[SubscriberBundle], threshold: str | None = None
    ) -> "PickledSource":
        """Pickle members; `threshold` is the value of Spark's setting, if it is set."""
        subscribers = {member.name: member.subscriber for member in members if member.subscriber}
        return cls(
            Pickled.of(list(members)), ListedPolicies.of(subscribers), _parse_size(threshold)
        )

    def counts_published(self) -> bool:
        """Return whether some window counts published events."""
        return any_counts_published(self.members.value())

    def matcher(self, part: int) -> OverlayMatcher:
        """Return a matcher of all members, which is built once per process."""
        return _matcher(self.members)

    def policy_source(self) -> PolicySource:
        """Return the policies, if they are small enough for the state stage."""
        size = len(self.listed.pickled.data) + _OVERHEAD
        if size > self.threshold:
            raise InvalidPolicy(
                f"the policies that hold functions take {size:,} bytes, but Spark sends at most "
                f"{self.threshold:,} to its state stage; share policies between subscribers, use "
                f"registered parts instead of functions, or start Spark with a larger {THRESHOLD}"
            )
        return self.listed


def _parse_size(size: str | None) -> int:
    """Return a size as Spark writes it in bytes, or Spark's default."""
    match = _SIZE.fullmatch(size or "")
    return int(match[1]) * _UNITS[match[2].lower()] if match else DEFAULT_THRESHOLD


@lru_cache(_CACHED)
def _matcher(members: Pickled) -> OverlayMatcher:
    return in_memory_matcher(members.value())
