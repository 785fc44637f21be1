"""Who has which policy, as the state stage asks: by name, and in which version."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from tidings.feeds.policies import kept
from tidings.policy import Policy, Subscriber


class Roster(Protocol):
    """The policies of all subscribers, at one version of them."""

    @property
    def version(self) -> int | str:
        """What changes whenever some policy may have."""

    def policy(self, name: str) -> Policy | None:
        """Give the policy of a subscriber; none if it is gone."""


@dataclass(frozen=True)
class Listed:
    """Subscribers in a dict, as a roster."""

    subscribers: Mapping[str, Subscriber]
    version: str

    def policy(self, name: str) -> Policy | None:
        """Give the policy of a subscriber; none if it is not there."""
        found = self.subscribers.get(name)
        return found.policy if found else None


def roster(given: Roster | Mapping[str, Subscriber]) -> Roster:
    """Give a roster as it is, and one for a dict, with a version that its policies decide."""
    if not isinstance(given, Mapping):
        return given
    forms: dict[int, str] = {}
    mark = blake2b(digest_size=16)
    for name, subscriber in sorted(given.items()):
        policy = subscriber.policy
        if id(policy) not in forms:
            forms[id(policy)] = json.dumps(kept(policy), sort_keys=True)
        mark.update(f"{json.dumps(name)}{forms[id(policy)]}".encode())
    return Listed(given, mark.hexdigest())
