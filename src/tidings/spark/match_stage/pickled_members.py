"""Subscribers whose policies hold functions: they travel as Spark sends the functions of a user.

No file of ours can hold a function. So members are pickled by Spark's own pickler into the objects
that Spark sends to its workers anyway, and nowhere else. The bytes are compressed and unpickled
once a process, not once a task.

Spark sends what is above a megabyte (`spark.broadcast.UDFCompressionThreshold`) by a broadcast. The
match stage gets it so. The state stage asks for its processor also where no broadcast comes; so the
policies that it needs must stay below that limit, and are refused in words if they do not.
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any, ClassVar, Final

from pyspark import cloudpickle

from tidings.errors import InvalidPolicy
from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.index_files.subscriber_bundle import SubscriberBundle, fingerprint
from tidings.policy import Policy
from tidings.spark.match_stage.matcher_source import Objects

MOST: Final = 8
"""So many of these a process keeps in mind."""
THRESHOLD: Final = "spark.broadcast.UDFCompressionThreshold"
"""The setting of Spark above which what is sent goes by a broadcast."""
LIMIT: Final = 1 << 20
_BESIDE: Final = 1 << 16  # for all else that the processor of the state stage holds
_SIZE: Final = re.compile(r"([0-9]{1,12})\s*([kmg]?)b?", re.IGNORECASE)
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True)
class Pickled:
    """An object as Spark pickles it, compressed; equal objects have the same key."""

    key: bytes
    data: bytes = field(repr=False, compare=False)

    @classmethod
    def of(cls, value: object) -> "Pickled":
        """Pickle an object, with functions and all."""
        data = zlib.compress(cloudpickle.dumps(value), level=1)  # type: ignore[no-untyped-call]
        return cls(blake2b(data, digest_size=16).digest(), data)

    def value(self) -> Any:
        """Return the object, which is made once a process."""
        return _value(self)


@lru_cache(2 * MOST)
def _value(pickled: Pickled) -> Any:
    return cloudpickle.loads(zlib.decompress(pickled.data))


@dataclass(frozen=True)
class Carried:
    """Members that travel with the functions of their policies."""

    members: Pickled
    policies: Pickled
    version: int
    limit: int = LIMIT
    parts: int = 1
    follows: ClassVar[bool] = False

    def counting(self) -> bool:
        """Tell whether somebody counts."""
        return _objects(self.members).counting()

    def serve(self, part: int) -> OverlayMatcher:
        """Give an index of them, which is built for the first who asks in a process."""
        return _objects(self.members).serve(part)

    def roster(self) -> "CarriedRoster":
        """Return who has which policy, if that is small enough for the state stage."""
        size = len(self.policies.data) + _BESIDE
        if size > self.limit:
            raise InvalidPolicy(
                f"the policies that hold functions take {size:,} bytes, and Spark sends at most "
                f"{self.limit:,} to its state stage; share policies between subscribers, use parts "
                f"that have names in the place of functions, or start Spark with a larger "
                f"{THRESHOLD}"
            )
        return CarriedRoster(self.policies, self.version)


@dataclass(frozen=True)
class CarriedRoster:
    """The policies of such members; `version` is decided by them."""

    policies: Pickled
    version: int

    def policy(self, name: str) -> Policy | None:
        """Give the policy of a subscriber; None if there is no such subscriber."""
        known: Mapping[str, Policy] = self.policies.value()
        return known.get(name)

    def changed_since(self, version: int) -> AbstractSet[str] | None:
        """Give who may have another policy than at a version; None: whoever."""
        return None


def carry(given: Sequence[SubscriberBundle], threshold: str | None = None) -> Carried:
    """Return members that travel, with what Spark was told its threshold is."""
    people = [each.subscriber for each in given if each.subscriber]
    policies = {each.id: each.policy for each in people}
    version = fingerprint(sorted(people, key=lambda each: each.id))
    return Carried(Pickled.of(list(given)), Pickled.of(policies), version, _bytes(threshold))


def _bytes(size: str | None) -> int:
    """Return a size as Spark writes it in bytes; its default where there is none."""
    found = _SIZE.fullmatch(size or "")
    return int(found[1]) * _UNITS[found[2].lower()] if found else LIMIT


@lru_cache(MOST)
def _objects(members: Pickled) -> Objects:
    return Objects(members.value())
