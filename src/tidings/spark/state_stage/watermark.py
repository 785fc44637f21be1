"""Event time of a bucket: ticks, the watermark that follows them, and the next deadline.

A tick says that the stream has reached a time and a sequence number. Every bucket gets the ticks of
every batch, so time passes also where nothing matches. The watermark stays `lateness` behind the
newest tick; ticks that it has not reached yet are kept, because windows that count published events
need the sequence number that held at each time.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.formats.binary import Frame, reading
from tidings.window import Moment, snapshot_fields
from tidings.window.snapshot_fields import FAR

FRAME: Final = Frame(b"tidings-clock", 1, "the clock of a bucket")


class Tick(NamedTuple):
    """A point that the stream has reached: a time and the sequence number by then."""

    us: int
    sequence: int


class PendingTicks:
    """Ticks that the watermark has not reached, in order of time.

    `sequence` is the number that the ticks before them have reached. A tick is redundant if an
    earlier or equal one has at least its sequence number; redundant ticks are dropped.
    """

    def __init__(self, ticks: Iterable[Tick] = (), sequence: int = 0) -> None:
        self.sequence = sequence
        self._us, self._sequence = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.add(ticks)

    @property
    def ticks(self) -> list[Tick]:
        """The pending ticks."""
        pairs = zip(self._us.tolist(), self._sequence.tolist(), strict=True)
        return [Tick(*pair) for pair in pairs]

    def add(self, ticks: Iterable[Tick]) -> None:
        """Add ticks in any order."""
        ordered = sorted({*self.ticks, *ticks})
        us = np.array([tick.us for tick in ordered], np.int64)
        sequence = np.array([tick.sequence for tick in ordered], np.int64)
        reached = np.maximum.accumulate(np.concatenate([[self.sequence], sequence]))
        advances = sequence > reached[:-1]
        self._us, self._sequence = us[advances], sequence[advances]

    def sequence_at(self, us: Int64s, sequence: Int64s) -> Int64s:
        """Return the stream's sequence number at each of some events in order of publication.

        It is the largest number among the events so far and the ticks before them.
        """
        earlier_ticks = np.searchsorted(self._us, us, side="left")
        reached = np.concatenate([[self.sequence], self._sequence])[earlier_ticks]
        return np.maximum.accumulate(np.maximum(reached, sequence))

    def pass_until(self, watermark_us: int, sequence: int) -> None:
        """Drop ticks that the watermark has reached; `sequence` is the largest of the events."""
        passed = self._us <= watermark_us
        self.sequence = max(self.sequence, sequence, *self._sequence[passed].tolist())
        pending = self._sequence > self.sequence
        self._us, self._sequence = self._us[pending], self._sequence[pending]


@dataclass(frozen=True)
class BucketClock:
    """Watermark, sequence number and pending ticks of a bucket, and its next deadline.

    It is stored beside the state of the bucket. As long as neither `due_us` nor `due_sequence` is
    reached, ticks change nothing but the clock, and the state need not be loaded.
    """

    watermark_us: int | None = None
    sequence: int = 0
    ticks: tuple[Tick, ...] = ()
    due_us: int = 0
    due_sequence: int = 0

    def after(self, ticks: Iterable[Tick], lateness_us: int) -> "BucketClock | None":
        """Return the clock after some ticks, or None if a deadline is reached by then."""
        new, pending = tuple(ticks), PendingTicks(self.ticks, self.sequence)
        times = [tick.us - lateness_us for tick in new]
        if self.watermark_us is not None:
            times.append(self.watermark_us)
        watermark_us = max(times)
        pending.add(new)
        pending.pass_until(watermark_us, 0)
        if watermark_us >= self.due_us or pending.sequence >= self.due_sequence:
            return None
        return replace(
            self,
            watermark_us=watermark_us,
            sequence=pending.sequence,
            ticks=tuple(pending.ticks),
        )

    def last_ticks(self, ticks: Iterable[Tick], lateness_us: int) -> list[Tick]:
        """Return the tick that moves the watermark to the newest time, if there is one.

        Everything is released then, and events of that time in a later batch are not late.
        """
        times = [tick.us for tick in ticks]
        if self.watermark_us is not None:
            times.append(self.watermark_us + lateness_us)
        return [Tick(max(times) + lateness_us, 0)] if times else []

    def with_deadline(self, window_end: Moment, waiting_us: Iterable[int]) -> "BucketClock":
        """Return the clock due at the first end of a window or the first waiting match."""
        due_us = min([window_end.us, *waiting_us])
        return replace(self, due_us=due_us, due_sequence=window_end.sequence)

    def pack(self) -> bytes:
        """Return the clock as bytes, with a checksum."""
        return FRAME.pack(asdict(self), {})

    @classmethod
    def unpack(cls, state: bytes) -> "BucketClock":
        """Read packed bytes; damaged bytes and those of another release are refused.

        The first checkpoints hold bare JSON text without a checksum, which is still read.
        """
        with reading(FRAME.name):
            form = json.loads(state) if state[:1] == b"{" else FRAME.unpack(state)[0]
            return cls(**_checked(form))


def _checked(form: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a clock, each within its range."""
    snapshot_fields.whole(form, "watermark_us", -FAR, FAR, missing=True)
    for name in ("due_us", "due_sequence"):
        snapshot_fields.whole(form, name, -FAR, FAR)
    snapshot_fields.whole(form, "sequence")
    ticks = snapshot_fields.items(form, "ticks", width=2)
    for us, sequence in ticks:
        snapshot_fields.number("the time of a tick", us, -FAR, FAR)
        snapshot_fields.number("the number of a tick", sequence)
    return form | {"ticks": tuple(Tick(*pair) for pair in ticks)}
