"""Who has which policy, as the state stage asks: by name, and in which version."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from tidings.index_files.subscriber_bundle import fingerprint
from tidings.policy import Policy, Subscriber


class Roster(Protocol):
    """The policies of all subscribers, at one version of them."""

    @property
    def version(self) -> int:
        """What changes whenever some policy may have."""

    def policy(self, name: str) -> Policy | None:
        """Give the policy of a subscriber; none if it is gone."""

    def changed_since(self, version: int) -> AbstractSet[str] | None:
        """Give who may have another policy than at a version; None: whoever."""


@dataclass(frozen=True)
class Listed:
    """Subscribers in a dict, as a roster."""

    subscribers: Mapping[str, Subscriber]
    version: int

    def policy(self, name: str) -> Policy | None:
        """Give the policy of a subscriber; none if it is not there."""
        found = self.subscribers.get(name)
        return found.policy if found else None

    def changed_since(self, version: int) -> None:
        """Say that anybody may have changed."""
        return


def roster(given: Roster | Mapping[str, Subscriber]) -> Roster:
    """Give a roster as it is, and one for a dict, with a version that its policies decide."""
    if not isinstance(given, Mapping):
        return given
    return Listed(given, fingerprint(each for _, each in sorted(given.items())))
