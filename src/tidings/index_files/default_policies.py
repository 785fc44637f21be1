"""What a publisher adds to its source: policies of who is no subscriber there, and limits."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Final

from tidings.model.limits import TRUSTED, Limits
from tidings.policy import Policy

_MARK_BYTES: Final = 8


@dataclass(frozen=True)
class Defaults:
    """Policies by the names of owners, and that of all others; None: these have none.

    Records of the source that are above the `limits` are refused.
    """

    named: Mapping[str, Policy] = field(default_factory=dict, hash=False)
    others: Policy | None = None
    limits: Limits = TRUSTED

    def policy(self, name: str) -> Policy | None:
        """Give the policy of an owner; None: there is none."""
        return self.named.get(name, self.others)

    def mark(self, source: str) -> int:
        """Return a number that differs for another source, other policies or other limits."""
        named = {name: each.to_dict() for name, each in self.named.items()}
        others = self.others.to_dict() if self.others else None
        limits = [] if self.limits == TRUSTED else [asdict(self.limits)]
        text = json.dumps([source, named, others, *limits], sort_keys=True)
        return int.from_bytes(blake2b(text.encode(), digest_size=_MARK_BYTES).digest())
