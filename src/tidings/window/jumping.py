"""Jumping windows (TKS Def. 4.3.1): as sliding, but chosen from at every `step` only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tidings import checks
from tidings.errors import InvalidPolicy
from tidings.model import Match
from tidings.window.length import check_count, read_lengths
from tidings.window.once import DELIVERED, OnceOnly
from tidings.window.protocol import Chooser, Moment, Pick
from tidings.window.recent import Axis, Recent, newest_us


@dataclass(frozen=True)
class Jumping:
    """The last `length` at every `step`: step = length is periodic by count, step = 1 is sliding.

    A step counts the same events as the length. A window of a duration may step by a count of
    matches, or by a duration aligned to the epoch: it then holds [end - length, end).
    """

    length: Any
    step: Any
    count: str = "matching"
    delivered: str = "keep"
    wait: bool = False
    name: ClassVar[str] = "jumping"

    def __post_init__(self) -> None:
        read_lengths(self, "length", "step")
        check_count(self.count, self.length)
        checks.choice("delivered", self.delivered, DELIVERED)
        checks.flag("wait", self.wait)
        if self.step.us is not None and self.length.us is None:
            raise InvalidPolicy("a step of a duration goes with a length of a duration")
        pairs = ((self.step.count, self.length.count), (self.step.us, self.length.us))
        if any(step and size and step > size for step, size in pairs):
            step, size = self.step.to_form(), self.length.to_form()
            raise InvalidPolicy(f"step {step} is above length {size}: events would be jumped over")

    def open(self, chooser: Chooser) -> "JumpingWindow":
        """Open an empty window."""
        return JumpingWindow(self, chooser)


class JumpingWindow:
    """The matches of the windows still to come, and the end of the next one."""

    def __init__(self, part: Jumping, chooser: Chooser) -> None:
        self._recent = Recent(part.length, part.count)
        self._steps = Axis(part.step, part.count)
        self._once = OnceOnly(part, chooser)
        self._end: int | None = None

    def offer(self, match: Match, now: Moment) -> list[Pick]:
        """Take the steps before the match, add it, and take the step that it completes."""
        due = self.advance(Moment(now.us, now.sequence - 1))
        entry = self._recent.add(match)
        if self._end is None:
            step = self._steps.size
            self._end = (self._steps.place(entry) // step + 1) * step
        return due + self.advance(now)

    def advance(self, now: Moment) -> list[Pick]:
        """Choose at every step that the stream has passed since the window last held something."""
        due: list[Pick] = []
        while self._end is not None and self._steps.passed(self._end, now, self._recent.seen):
            due += self._choose(self._end, now)
            self._end = self._end + self._steps.size if self._recent.matches else None
        return due

    def _choose(self, end: int, now: Moment) -> list[Pick]:
        aligned = self._recent.axis is not None and self._recent.axis.kind == self._steps.kind
        held = self._recent.until(end) if aligned else self._recent.at(now)
        at_us = end if self._steps.kind == "time" else newest_us(held) if held else now.us
        due = self._once.deliver(held, at_us)
        if aligned:
            self._recent.expire_until(end)
        else:
            self._recent.expire(now)
        self._once.forget(self._recent.matches)
        return due

    def current(self, now: Moment) -> list[Pick]:
        """Choose from what the window holds now."""
        return self._once.current(self._recent.at(now), now.us)

    def snapshot(self) -> dict[str, Any]:
        """Give the state as JSON."""
        return self._recent.snapshot() | self._once.snapshot() | {"end": self._end}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self._recent.restore(state)
        self._once.restore(state)
        self._end = state["end"]
