"""Subscribers whose policies hold functions, in a file: Spark's own way to workers has a limit.

Spark sends what is above a megabyte by a broadcast, and the state stage asks for some of it where
no broadcast comes. So the objects are pickled to a file, with functions and all, and each process
reads them once.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final

from pyspark import cloudpickle

from tidings.policy import Policy
from tidings.sealed.member import Member
from tidings.sealed.served import Served
from tidings.spark.matchers import Objects
from tidings.spark.roster import Roster, roster

MOST: Final = 8
"""So many of these files a process keeps in mind."""


@dataclass(frozen=True)
class Filed:
    """Members in a file, which must be seen by all machines; it travels as its path."""

    path: Path
    parts: int = 1
    follows: ClassVar[bool] = False

    def counting(self) -> bool:
        """Tell whether somebody counts."""
        return _objects(self.path).counting()

    def serve(self, part: int) -> Served:
        """Give an index of them, which is built for the first who asks in a process."""
        return _objects(self.path).serve(part)


@dataclass(frozen=True)
class FiledRoster:
    """The policies of the members in a file."""

    path: Path

    @property
    def version(self) -> int:
        """What their policies decide."""
        return _roster(self.path).version

    def policy(self, name: str) -> Policy | None:
        """Give the policy of a subscriber; None if there is no such subscriber."""
        return _roster(self.path).policy(name)

    def changed_since(self, version: int) -> AbstractSet[str] | None:
        """Give who may have another policy than at a version; None: whoever."""
        return _roster(self.path).changed_since(version)


def file_members(folder: Path, given: Sequence[Member]) -> Filed:
    """Write members to a file in a folder."""
    path = folder.resolve() / "members.pickle"
    path.write_bytes(cloudpickle.dumps(list(given)))  # type: ignore[no-untyped-call]
    return Filed(path)


@lru_cache(MOST)
def _objects(path: Path) -> Objects:
    return Objects(cloudpickle.loads(path.read_bytes()))


@lru_cache(MOST)
def _roster(path: Path) -> Roster:
    people = (each.subscriber for each in _objects(path).members)
    return roster({each.id: each for each in people if each})
