"""Jumping windows (TKS Def. 4.3.1): sliding windows with a choice at every `step` only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tidings.errors import InvalidForm, InvalidPolicy, shown
from tidings.model import validate
from tidings.model.records import Match
from tidings.window import snapshot_fields
from tidings.window.buffer import Axis, MatchBuffer, newest_us
from tidings.window.deliver_once import DELIVERED, OnceOnly
from tidings.window.length import check_count, read_lengths
from tidings.window.protocol import Chooser, Moment, Pick
from tidings.window.snapshot_fields import FAR


@dataclass(frozen=True)
class Jumping:
    """The last `length` at every `step`; step = 1 is sliding, step = length is periodic by count.

    A step counts the same events as the length. A window whose length is a duration may step by a
    count of matches, or by a duration aligned to the epoch: it then holds [end - length, end).
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
            raise InvalidPolicy("a step that is a duration needs a length that is a duration")
        pairs = ((self.step.count, self.length.count), (self.step.us, self.length.us))
        if any(step and size and step > size for step, size in pairs):
            step, size = (shown(span.to_form()).strip("'") for span in (self.step, self.length))
            raise InvalidPolicy(f"step {step} is above length {size}: events would be skipped")

    def open(self, chooser: Chooser) -> "JumpingWindow":
        """Open an empty window."""
        return JumpingWindow(self, chooser)


class JumpingWindow:
    """The matches of later windows, and the end of the next one."""

    def __init__(self, part: Jumping, chooser: Chooser) -> None:
        self._buffer = MatchBuffer(part.length, part.count)
        self._steps = Axis(part.step, part.count)
        self._once = OnceOnly(part, chooser)
        axis = Axis(part.length, part.count)
        self._aligned, self._size = axis.kind == self._steps.kind, axis.size
        self._end: int | None = None

    def offer(self, match: Match, now: Moment) -> list[Pick]:
        """Take the steps before the match, add it, and take the step that it completes."""
        due = self.advance(Moment(now.us, now.sequence - 1))
        entry = self._buffer.add(match)
        if self._end is None:
            step = self._steps.size
            self._end = (self._steps.coordinate(entry) // step + 1) * step
        return due + self.advance(now)

    def advance(self, now: Moment) -> list[Pick]:
        """Choose at every step that the stream has passed since the window last held a match."""
        due: list[Pick] = []
        while self._end is not None and self._steps.passed(self._end, now, self._buffer.seen):
            chosen = self._choose(self._end, now)
            due += chosen
            held = self._buffer.matches
            self._end = self._next(self._end, now, held, bool(chosen)) if held else None
        return due

    def _next(self, end: int, now: Moment, held: list[Match], chosen: bool) -> int:
        """Return the next step that can deliver anything, or else the first after `now`.

        Without arrivals, the held matches change only at the step at which the oldest expires.
        """
        step = self._steps.size
        if not self._aligned or not self._once.settled(held, chosen):
            return end + step
        until_expiry = (self._buffer.oldest() + self._size - end) // step + 1
        last = now.us if self._steps.kind == "time" else self._steps.end(now, self._buffer.seen)
        return end + step * max(1, min(until_expiry, (last - end) // step + 1))

    def _choose(self, end: int, now: Moment) -> list[Pick]:
        held = self._buffer.ending_at(end) if self._aligned else self._buffer.within(now)
        at_us = end if self._steps.kind == "time" else newest_us(held) if held else now.us
        due = self._once.deliver(held, at_us)
        if self._aligned:
            self._buffer.expire_until(end)
        else:
            self._buffer.expire(now)
        self._once.forget(self._buffer.matches)
        return due

    def current(self, now: Moment) -> list[Pick]:
        """Choose from the matches in the window now."""
        return self._once.current(self._buffer.within(now), now.us)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return self._buffer.snapshot() | self._once.snapshot() | {"end": self._end}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        self._buffer.restore(state)
        self._once.restore(state)
        self._end = end = snapshot_fields.whole(state, "end", -FAR, FAR, missing=True)
        if (end is None) == bool(self._buffer.matches):
            raise InvalidForm(
                "field 'end' must be set if the window holds matches, and null otherwise"
            )
        # Steps are taken one by one: an end far before the matches would take forever.
        last, length = self._buffer.last_coordinate(self._steps), self._buffer.axis
        farthest = last + self._steps.size + (length.size if length else 0)
        if end is not None and not last < end <= farthest:
            raise InvalidForm(f"field 'end' must be above {last} and at most {farthest}, not {end}")
