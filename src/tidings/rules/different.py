"""The rule `different` (semantics §6b): nothing too similar to an event that was received."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from tidings.diversify.distance import Overlap, checked_distance, read_distance
from tidings.errors import InvalidPolicy, shown
from tidings.model import validate
from tidings.model.records import Event
from tidings.model.values import SECOND_US, rounded
from tidings.rules.verdict import TooNear, Verdict
from tidings.window import Chooser, Pick, snapshot_fields
from tidings.window.length import Length, length
from tidings.window.snapshot_fields import FAR


@dataclass(frozen=True)
class Different:
    """Drops an event nearer than `min` to one that the subscriber received `within` a time.

    Events are compared when the window chooses them. An event that a later rule holds has not been
    received yet. A rule that is added to a policy compares events published from then on.
    """

    min: float = 0.2
    within: Any = Length(us=7 * 86_400 * SECOND_US)
    distance: Any = Overlap()
    name: ClassVar[str] = "different"

    @validate.guarded_by(InvalidPolicy)
    def __post_init__(self) -> None:
        object.__setattr__(self, "min", validate.number("min", self.min, InvalidPolicy))
        if not 0 < self.min <= 1:
            raise InvalidPolicy(f"min is above 0 and at most 1, not {shown(self.min)}")
        object.__setattr__(self, "within", length("within", self.within))
        if self.within.us is None:
            raise InvalidPolicy(f"within is a duration such as 7d, not {shown(self.within.count)}")
        read_distance(self)

    def open(self, chooser: Chooser) -> "DifferentState":
        """Open the rule for one subscriber."""
        return DifferentState(self)


class GotEvent(NamedTuple):
    """An event that the subscriber got, and when."""

    us: int
    event: Event


class DifferentState:
    """The events of the last `within`, oldest first."""

    def __init__(self, part: Different) -> None:
        self.part = part
        self.received: deque[GotEvent] = deque()
        self.since_us = -FAR  # only what is published later is compared
        self.verdicts: list[Verdict] = []

    @property
    def deadline(self) -> int | None:
        """None: nothing is held."""
        return None

    def offer(self, pick: Pick) -> list[Pick]:
        """Return the pick, unless it is too near to an event that was received."""
        oldest = pick.at_us - self.part.within.us
        while self.received and self.received[0].us <= oldest:
            self.received.popleft()
        event, distance = pick.match.event, self.part.distance
        if event.published_us <= self.since_us:
            return [pick]
        gaps = [rounded(checked_distance(distance, event, got.event)) for got in self.received]
        # Of equally near ones the reason names the last.
        nearest = min(range(len(gaps)), key=lambda i: (gaps[i], -i), default=None)
        if nearest is None or gaps[nearest] >= self.part.min:
            return [pick]
        other = self.received[nearest]
        reason = TooNear(other.event.id, other.us, gaps[nearest], self.part.min)
        self.verdicts.append(
            Verdict(event.id, "different", "dropped", pick.at_us, reason, other=other.event.id)
        )
        return []

    def release(self) -> list[Pick]:
        """Return nothing: nothing is held."""
        return []

    def chosen(self, pick: Pick) -> None:
        """Do nothing: only received events count."""

    def got(self, pick: Pick) -> None:
        """Remember an event that the subscriber received."""
        if pick.match.event.published_us > self.since_us:
            self.received.append(GotEvent(pick.at_us, pick.match.event))

    def hand_over(self, now_us: int) -> list[Pick]:
        """Return nothing: nothing is held."""
        return []

    def begin(self, now_us: int) -> None:
        """Compare only events published from now on."""
        self.since_us = now_us

    def adopt(self, old: "DifferentState", now_us: int) -> None:
        """Keep the events that the old rule compares with; others it may have forgotten."""
        self.since_us, oldest = old.since_us, now_us - old.part.within.us
        self.received = deque(got for got in old.received if got.us > oldest)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""
        got = [[got.us, got.event.to_dict()] for got in self.received]
        return {"got": got, **({"since": self.since_us} if self.since_us != -FAR else {})}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        got, last = deque[GotEvent](), -FAR
        for us, form in snapshot_fields.items(state, "got", width=2):
            last = snapshot_fields.number("the time of a delivery", us, last, FAR)
            got.append(GotEvent(last, snapshot_fields.read_event(form)))
        self.since_us = snapshot_fields.whole({"since": -FAR, **state}, "since", -FAR, FAR)
        self.received = got
