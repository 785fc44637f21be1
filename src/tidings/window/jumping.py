"""Jumping windows (TKS Def. 4.3.1): as sliding, but chosen from at every `step` only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tidings.errors import InvalidForm, InvalidPolicy
from tidings.model import validate
from tidings.model.records import Match
from tidings.window import snapshot_fields
from tidings.window.buffer import Axis, Recent, newest_us
from tidings.window.deliver_once import DELIVERED, OnceOnly
from tidings.window.length import check_count, read_lengths
from tidings.window.protocol import Chooser, Moment, Pick
from tidings.window.snapshot_fields import FAR


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
        validate.choice("delivered", self.delivered, DELIVERED)
        validate.flag("wait", self.wait)
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
        axis = Axis(part.length, part.count)
        self._aligned, self._size = axis.kind == self._steps.kind, axis.size
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
            chosen = self._choose(self._end, now)
            due += chosen
            held = self._recent.matches
            self._end = self._next(self._end, now, held, bool(chosen)) if held else None
        return due

    def _next(self, end: int, now: Moment, held: list[Match], chosen: bool) -> int:
        """Return the next step that can deliver something, or else the first after `now`.

        While nothing comes, the held matches change only where the oldest is left behind.
        """
        step = self._steps.size
        if not self._aligned or not self._once.settled(held, chosen):
            return end + step
        leaving = (self._recent.oldest() + self._size - end) // step + 1
        last = now.us if self._steps.kind == "time" else self._steps.end(now, self._recent.seen)
        return end + step * max(1, min(leaving, (last - end) // step + 1))

    def _choose(self, end: int, now: Moment) -> list[Pick]:
        held = self._recent.until(end) if self._aligned else self._recent.at(now)
        at_us = end if self._steps.kind == "time" else newest_us(held) if held else now.us
        due = self._once.deliver(held, at_us)
        if self._aligned:
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
        self._end = end = snapshot_fields.whole(state, "end", -FAR, FAR, missing=True)
        if (end is None) == bool(self._recent.matches):
            raise InvalidForm("field 'end' is there if the window holds matches, and only then")
        # Steps up to now are taken one by one, so they must start where the matches are.
        last, length = self._recent.last_place(self._steps), self._recent.axis
        farthest = last + self._steps.size + (length.size if length else 0)
        if end is not None and not last < end <= farthest:
            raise InvalidForm(f"field 'end' is above {last} and at most {farthest}, not {end}")
