"""The protocol of rules: pure state machines behind a window, driven by event time."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from tidings.rules.verdict import Verdict
from tidings.window import Chooser, Pick


class RuleState(Protocol):
    """One rule for one subscriber.

    The caller releases what is due by the time of a pick before it offers the pick.
    """

    verdicts: list[Verdict]

    @property
    def deadline(self) -> int | None:
        """The instant at which held events are due; None if none is held."""

    def offer(self, pick: Pick) -> list[Pick]:
        """Take what is due now; return what passes at once, the pick itself or nothing."""

    def release(self) -> list[Pick]:
        """Return what is due at the deadline, with positions from 1, and hold nothing."""

    def chosen(self, pick: Pick) -> None:
        """Note that the window chose an event, whatever the rules have done with it."""

    def got(self, pick: Pick) -> None:
        """Note that the subscriber received an event."""

    def hand_over(self, now_us: int) -> list[Pick]:
        """Return what is held for other rules to take, with positions from 1, and hold nothing."""

    def begin(self, now_us: int) -> None:
        """Note that the rule was added to a policy that the subscriber had before."""

    def adopt(self, old: Any, now_us: int) -> None:
        """Continue the history of the same rule with other parameters, without what it held."""

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""


class RulePart(Protocol):
    """A part of a policy that opens rules."""

    name: ClassVar[str]

    def open(self, chooser: Chooser) -> RuleState:
        """Open the rule for one subscriber."""
