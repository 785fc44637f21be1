"""Policies of subscribers by name, as the state stage looks them up.

`FolderPolicies` reads them from index files, `ListedPolicies` holds them in a dict. The dict may
hold functions of the user, which no file of ours can store: it travels the way Spark sends such
functions to its workers, pickled by Spark's own pickler.
"""

import zlib
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any, ClassVar, Final, Protocol

from pyspark import cloudpickle

from tidings.index_files.manifest import RefusedRecord
from tidings.index_files.subscriber_bundle import fingerprint
from tidings.policy import Policy, Subscriber

_CACHED: Final = 16
"""Number of pickled objects that a process keeps unpickled."""


class Policies(Protocol):
    """The policies of all subscribers at one version."""

    @property
    def version(self) -> int:
        """Number that changes whenever some policy may have changed."""

    @property
    def refused(self) -> Sequence[RefusedRecord]:
        """The records of the source that this version leaves out."""

    def policy(self, name: str) -> Policy | None:
        """Return the policy of a subscriber, or None if there is no such subscriber."""

    def policies_of(self, names: Sequence[str]) -> list[Policy | None]:
        """Return the policies of some subscribers, as `policy` does."""

    @property
    def some_paused(self) -> bool:
        """Whether any subscriber is paused."""

    def is_paused(self, name: str) -> bool:
        """Return whether a subscriber is paused."""

    def changed_since(self, version: int) -> AbstractSet[str] | None:
        """Return the subscribers whose policies may have changed since, or None for all."""


class PolicySource(Protocol):
    """Resolves the policies that hold for the micro-batch of the running task."""

    def policies(self) -> Policies:
        """Return the policies of this task's batch."""


@dataclass(frozen=True)
class Pickled:
    """An object pickled by Spark's pickler and compressed; equal bytes have equal keys."""

    key: bytes
    data: bytes = field(repr=False, compare=False)

    @classmethod
    def of(cls, value: object) -> "Pickled":
        """Pickle an object, including the functions that it holds."""
        data = zlib.compress(cloudpickle.dumps(value), level=1)  # type: ignore[no-untyped-call]
        return cls(blake2b(data, digest_size=16).digest(), data)

    def value(self) -> Any:
        """Return the object, which is unpickled once per process, not once per task."""
        return _unpickled(self)


@lru_cache(_CACHED)
def _unpickled(pickled: Pickled) -> Any:
    return cloudpickle.loads(zlib.decompress(pickled.data))


@dataclass(frozen=True)
class ListedPolicies:
    """Policies in a dict; their version is a fingerprint of them all.

    >>> ListedPolicies.of({"ann": Subscriber("ann", Policy(k=3))}).policy("ann").k
    3
    """

    by_name: Mapping[str, Policy] = field(hash=False)
    version: int
    paused: frozenset[str] = frozenset()
    refused: ClassVar[Sequence[RefusedRecord]] = ()

    @classmethod
    def of(cls, subscribers: Mapping[str, Subscriber]) -> "ListedPolicies":
        """Return the policies of subscribers."""
        version = fingerprint(subscriber for _, subscriber in sorted(subscribers.items()))
        paused = frozenset(name for name, subscriber in subscribers.items() if subscriber.paused)
        return cls(
            {name: subscriber.policy for name, subscriber in subscribers.items()}, version, paused
        )

    def policies(self) -> "ListedPolicies":
        """Return itself: the policies are the same for every batch."""
        return self

    def policy(self, name: str) -> Policy | None:
        """Return the policy of a subscriber, or None if there is no such subscriber."""
        return self.by_name.get(name)

    def policies_of(self, names: Sequence[str]) -> list[Policy | None]:
        """Return the policies of some subscribers, as `policy` does."""
        return [*map(self.by_name.get, names)]

    @property
    def some_paused(self) -> bool:
        """Whether any subscriber is paused."""
        return bool(self.paused)

    def is_paused(self, name: str) -> bool:
        """Return whether a subscriber is paused."""
        return name in self.paused

    def changed_since(self, version: int) -> AbstractSet[str] | None:
        """Return None: nothing is known about earlier versions."""
        return None

    @cached_property
    def pickled(self) -> Pickled:
        """The dict as it is sent to workers."""
        return Pickled.of(self.by_name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _listed, (self.pickled, self.version, self.paused)


def _listed(pickled: Pickled, version: int, paused: frozenset[str]) -> ListedPolicies:
    return ListedPolicies(pickled.value(), version, paused)
