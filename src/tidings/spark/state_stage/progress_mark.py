"""How far a bucket has come, and when something is due: what ticks alone need to know of it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tidings.errors import StateError, TidingsError, shown
from tidings.formats.binary import WAY_OUT
from tidings.spark.state_stage.clock_marks import Tick, Ticks
from tidings.window import Moment, snapshot_fields
from tidings.window.snapshot_fields import FAR


@dataclass(frozen=True)
class Pulse:
    """A watermark, the largest number by then, ticks that wait; and what is due next, and when.

    Until `due_us` is reached, and the number that `due_sequence` says, time brings nothing about.
    """

    watermark_us: int | None = None
    sequence: int = 0
    ticks: tuple[Tick, ...] = ()
    due_us: int = 0
    due_sequence: int = 0

    def after(self, ticks: Iterable[Tick], lateness_us: int) -> "Pulse | None":
        """Give the pulse after some ticks; none if something is due by then."""
        found, waiting = tuple(ticks), Ticks(self.ticks, self.sequence)
        marks = [tick.us - lateness_us for tick in found]
        if self.watermark_us is not None:
            marks.append(self.watermark_us)
        waiting.add(found)
        waiting.pass_until(max(marks), 0)
        if max(marks) >= self.due_us or waiting.sequence >= self.due_sequence:
            return None
        said = {"watermark_us": max(marks), "sequence": waiting.sequence}
        return replace(self, **said, ticks=tuple(waiting.held))

    def next_due(self, ends: Moment, waiting_us: Iterable[int]) -> "Pulse":
        """Give the pulse with what is due: ends of windows, or matches that wait."""
        due_us = min([ends.us, *waiting_us])
        return replace(self, due_us=due_us, due_sequence=ends.sequence)

    def pack(self) -> bytes:
        """Give it as bytes."""
        return json.dumps(vars(self)).encode()

    @classmethod
    def unpack(cls, state: bytes) -> "Pulse":
        """Read it again; what is damaged, or of another release, is refused."""
        try:
            form = json.loads(state)
            snapshot_fields.whole(form, "watermark_us", -FAR, FAR, missing=True)
            for name in ("due_us", "due_sequence"):
                snapshot_fields.whole(form, name, -FAR, FAR)
            snapshot_fields.whole(form, "sequence")
            ticks = snapshot_fields.items(form, "ticks", width=2)
            for us, sequence in ticks:
                snapshot_fields.number("the time of a tick", us, -FAR, FAR)
                snapshot_fields.number("the number of a tick", sequence)
            return cls(**form | {"ticks": tuple(Tick(*each) for each in ticks)})
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise StateError(
                "the pulse of a bucket is damaged, or of another version of Tidings: "
                f"{shown(error) if not isinstance(error, TidingsError) else error}; {WAY_OUT}"
            ) from None
