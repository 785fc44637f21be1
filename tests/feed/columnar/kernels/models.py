"""Windows of one subscriber as lists of matches, which judge the kernels.

A match is the slot and the score of an event of `windows.py`. Nothing is pruned or remembered from
choice to choice, and every step is taken one by one.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tests.feed.columnar.kernels.batches import LAST, Offered, Sent, best_first
from tests.feed.columnar.kernels.windows import ID_ORDER, SEQUENCE, US

from tidings.window.protocol import Moment

Scored = tuple[int, float]
Choose = Callable[[list[Scored], int], list[int]]
"""Return the slots of at most k matches, in order of choice."""
SetRank = Callable[[list[Scored]], float]

ROWS = 2


def best(matches: list[Scored], k: int) -> list[int]:
    """Choose by score alone."""
    return [slot for slot, _ in sorted(matches, key=lambda match: best_first(*match))[:k]]


def place_of(axis: str, slot: int, number: int) -> int:
    """Return the place of a match on an axis; `number` counts the matches up to it."""
    return {"time": int(US[slot]), "published": int(SEQUENCE[slot]) - 1}.get(axis, number - 1)


class Model:
    """The matches of a window with their numbers among all seen, and the deliveries so far."""

    def __init__(self, choose: Choose, k: int, wait: bool) -> None:
        self.choose, self.k, self.wait = choose, k, wait
        self.matches = list[tuple[int, float, int]]()
        self.done = set[int]()
        self.seen = self.sent = 0

    def add(self, slot: int, score: float) -> None:
        self.seen += 1
        self.matches.append((slot, score, self.seen))

    def keep_from(self, axis: str, start: int) -> None:
        """Drop the matches before a place."""
        self.matches = [
            match for match in self.matches if place_of(axis, match[0], match[2]) >= start
        ]

    def scored(self) -> list[Scored]:
        return [(slot, score) for slot, score, _ in self.matches]

    def times(self) -> list[int]:
        return [int(US[slot]) for slot, _, _ in self.matches]

    def offer(self, order: int, row: int, slot: int, score: float) -> list[Sent]:
        raise NotImplementedError

    def advance(self, order: int, row: int, now: Moment) -> list[Sent]:
        return []

    def deliver(
        self, caused: tuple[int, int], chosen: Sequence[int], extent: tuple[int, int, int, int]
    ) -> list[Sent]:
        """Deliver the chosen slots that are not done, in their positions."""
        sent = list[Sent]()
        start, stop, width, decided = extent
        for position, slot in enumerate(chosen, start=1):
            if slot not in self.done:
                self.sent += 1
                row = (*caused, slot, slot + 1000, position, start, stop, width)
                sent.append(Sent(*row, self.sent, decided))
        self.done |= {*chosen}
        return sent


class Slides(Model):
    """A sliding or continuous window, with a choice after every match."""

    def __init__(self, *common: Any, axis: str, length: int, **kind: bool) -> None:
        super().__init__(*common)
        self.axis, self.length = axis, length
        self.leave, self.continuous = kind.get("leave", False), kind.get("continuous", False)

    def offer(self, order: int, row: int, slot: int, score: float) -> list[Sent]:
        self.add(slot, score)
        self.keep_from(self.axis, place_of(self.axis, slot, self.seen) + 1 - self.length)
        candidates = [one for one in self.scored() if not (self.leave and one[0] in self.done)]
        if not candidates or (self.wait and len(candidates) < self.k):
            return []
        us, times = int(US[slot]), self.times()
        chosen = self.choose(candidates, self.k)
        sent = self.deliver((order, row), chosen, (min(times), us, len(times), us))
        if self.continuous:
            self.done |= {one for one, _ in candidates}
        return sent


class Ends(Model):
    """A window with an end that is set by a match, and passed by time or by other matches."""

    def __init__(self, *common: Any, axis: str, step: int, origin: int = 0) -> None:
        super().__init__(*common)
        self.axis, self.step, self.origin = axis, step, origin
        self.end: int | None = None

    def due(self, now: Moment) -> bool:
        passed = {"time": now.us, "published": now.sequence}.get(self.axis, self.seen)
        return self.end is not None and self.end <= passed

    def offer(self, order: int, row: int, slot: int, score: float) -> list[Sent]:
        us, sequence = int(US[slot]), int(SEQUENCE[slot])
        sent = self.advance(order, row, Moment(us, sequence - 1))
        self.add(slot, score)
        if self.end is None:
            place = place_of(self.axis, slot, self.seen)
            self.end = self.origin + ((place - self.origin) // self.step + 1) * self.step
        return sent + self.advance(order, row, Moment(us, sequence))


class Periods(Ends):
    """A period: its matches are chosen from once, when it ends."""

    def advance(self, order: int, row: int, now: Moment) -> list[Sent]:
        if not self.due(now):
            return []
        end, self.end = self.end or 0, None
        if self.wait and len(self.matches) < self.k:
            return []
        times = self.times()
        start, stop = min(times), max(times)
        if self.axis == "time":
            start, stop = end - self.step, end
        chosen = self.choose(self.scored(), self.k)
        self.matches = []
        return self.deliver((order, row), chosen, (start, stop, len(times), stop))


class Jumps(Ends):
    """A jumping window of a length on one axis, with steps on the same or another."""

    def __init__(self, *common: Any, across: str, length: int, leave: bool, **ends: Any) -> None:
        super().__init__(*common, **ends)
        self.across, self.length, self.leave = across, length, leave

    def advance(self, order: int, row: int, now: Moment) -> list[Sent]:
        sent = list[Sent]()
        while self.due(now):
            end = self.end or 0
            stop = end if self.across == self.axis else now.us + 1
            self.keep_from(self.across, stop - self.length)
            if not self.matches:
                self.end = None
                break
            self.end = end + self.step
            sent += self.take_step(order, row, end)
        return sent

    def take_step(self, order: int, row: int, end: int) -> list[Sent]:
        candidates = [one for one in self.scored() if not (self.leave and one[0] in self.done)]
        if not candidates or (self.wait and len(candidates) < self.k):
            return []
        times = self.times()
        decided = end if self.axis == "time" else max(times)
        extent = (min(times), decided, len(times), decided)
        return self.deliver((order, row), self.choose(candidates, self.k), extent)


class Histories(Model):
    """A history: a match takes a free place, or that of a member without which the set gains."""

    def __init__(
        self, *common: Any, axis: str, length: int, strict: bool, divrank: SetRank
    ) -> None:
        super().__init__(*common)
        self.axis, self.length, self.strict, self.divrank = axis, length, strict, divrank

    def offer(self, order: int, row: int, slot: int, score: float) -> list[Sent]:
        current = self.seen + 1
        self.keep_from(self.axis, place_of(self.axis, slot, current) + 1 - self.length)
        members = self.scored()
        self.add(slot, score)
        if len(members) >= self.k:
            dropped = self.dropped(members, (slot, score))
            self.matches = [match for match in self.matches if match[0] != dropped]
            if dropped == slot:
                return []
        if self.wait and len(self.matches) < self.k:
            return []
        us, times = int(US[slot]), self.times()
        listed = best(self.scored(), len(times))
        return self.deliver((order, row), listed, (min(times), us, len(times), us))

    def dropped(self, members: list[Scored], new: Scored) -> int:
        """Return the slot that leaves: the best swap, of equal ones the oldest, or the new one."""

        def order(member: Scored) -> tuple[float, int, int]:
            rest = [one for one in [*members, new] if one != member]
            return (-self.divrank(rest), int(US[member[0]]), -int(ID_ORDER[member[0]]))

        member = min(members, key=order)
        swapped, current = -order(member)[0], self.divrank(members)
        gains = swapped > current or (swapped == current and not self.strict)
        return member[0] if gains else new[0]


def deliveries(
    make: Callable[[], Model], batch: Sequence[Offered], end: bool = False
) -> list[Sent]:
    """Return the deliveries of a batch to some rows, and those that are due after all events."""
    models = [make() for _ in range(ROWS)]
    sent = [
        one
        for order, (row, slot, score) in enumerate(batch)
        for one in models[row].offer(order, row, slot, score)
    ]
    if end:
        sent += [one for row in range(ROWS) for one in models[row].advance(-1, row, LAST)]
    return sent
