"""When may a person be disturbed? Rules behind windows: pure state machines (semantics §6b)."""

from typing import Final

from tidings.model import named_parts
from tidings.rules.chain import RuleChain, in_order
from tidings.rules.different import Different
from tidings.rules.protocol import RulePart, RuleState
from tidings.rules.quiet import Quiet
from tidings.rules.quota import Quota
from tidings.rules.verdict import Verdict

__all__ = ["RULES", "RuleChain", "RulePart", "RuleState", "Verdict", "in_order"]

RULES: Final[dict[str, type[RulePart]]] = named_parts.registry(
    {"different": Different, "quota": Quota, "quiet": Quiet}
)
