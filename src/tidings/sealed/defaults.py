"""What a publisher adds to its source: policies of owners who are no subscribers there."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from tidings.policy import Policy

_MARK_BYTES: Final = 8


@dataclass(frozen=True)
class Defaults:
    """Policies by the names of owners, and that of all others; None: these have none."""

    named: Mapping[str, Policy] = field(default_factory=dict, hash=False)
    others: Policy | None = None

    def policy(self, name: str) -> Policy | None:
        """Give the policy of an owner; None: there is none."""
        return self.named.get(name, self.others)

    def mark(self, source: str) -> int:
        """Give a number that is another one for another source, and if any policy here is."""
        named = {name: each.to_dict() for name, each in self.named.items()}
        others = self.others.to_dict() if self.others else None
        text = json.dumps([source, named, others], sort_keys=True)
        return int.from_bytes(blake2b(text.encode(), digest_size=_MARK_BYTES).digest())
