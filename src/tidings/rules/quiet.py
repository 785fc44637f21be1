"""The rule `quiet` (semantics §6b): nothing at night, and the best of it in the morning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import time
from typing import Any, ClassVar, Final

from tidings.errors import InvalidForm, InvalidPolicy
from tidings.model import validate
from tidings.model.calendar import DailySpans, read_time, read_zone, time_text
from tidings.rules.held import is_urgent, pick_form, read_pick, released
from tidings.rules.quota import read_urgent
from tidings.rules.verdict import Fate, Outranked, Verdict
from tidings.window import Chooser, Pick, snapshot_fields
from tidings.window.snapshot_fields import FAR

HOURS_QUIET: Final = "the hours are quiet"
HOURS_ENDED: Final = "the quiet hours ended, and it was among the best of them"


@dataclass(frozen=True)
class Quiet:
    """Holds what is due between two local times of a `zone`, which may be past midnight.

    At the end, the policy's k best of it are delivered together: by its diversifier and the ranks
    of that time. A rank of at least `urgent` passes at once.
    """

    start: str = "22:00"
    end: str = "07:00"
    zone: str = "UTC"
    urgent: float | None = None
    name: ClassVar[str] = "quiet"

    @validate.guarded_by(InvalidPolicy)
    def __post_init__(self) -> None:
        start, end = read_time("start", self.start), read_time("end", self.end)
        if start == end:
            raise InvalidPolicy(f"start and end are different times, not both {time_text(start)}")
        object.__setattr__(self, "start", time_text(start))
        object.__setattr__(self, "end", time_text(end))
        object.__setattr__(self, "zone", read_zone("zone", self.zone))
        read_urgent(self)

    @property
    def spans(self) -> DailySpans:
        """The quiet spans."""
        return DailySpans(self.zone, time.fromisoformat(self.start), time.fromisoformat(self.end))

    def open(self, chooser: Chooser) -> "QuietState":
        """Open the rule for one subscriber."""
        return QuietState(self, chooser)


class QuietState:
    """The events held until the end of the quiet span.

    If rank alone decides, decay never changes the order, so what k held events outrank is dropped
    at once: it could not be delivered at the end.
    """

    def __init__(self, part: Quiet, chooser: Chooser) -> None:
        self._part = part
        self._spans = part.spans
        self._chooser = chooser
        self.waiting: list[Pick] = []
        self.end: int | None = None
        self.verdicts: list[Verdict] = []

    @property
    def deadline(self) -> int | None:
        """The end of the quiet span, if something is held."""
        return self.end

    def offer(self, pick: Pick) -> list[Pick]:
        """Return the pick, unless it is held."""
        span = self._spans.span(pick.at_us)
        if span is None or is_urgent(pick, self._part.urgent):
            return [pick]
        self.waiting.append(pick)
        self.end = span.end
        self._judge(pick, "held", HOURS_QUIET, pick.at_us, span.end)
        if self._chooser.best_only and len(self.waiting) > self._chooser.k:
            best = self._chooser.ranked([held.match for held in self.waiting], pick.at_us)
            self._keep([match.event.id for match, _ in best[: self._chooser.k]], pick.at_us)
        return []

    def release(self) -> list[Pick]:
        """Return the k best of what was held, with the ranks of the end."""
        assert self.end is not None
        due = self.hand_over(self.end)
        for pick in due:
            self._judge(pick, "released", HOURS_ENDED, pick.at_us)
        return due

    def _keep(self, events: Sequence[str], at_us: int) -> None:
        """Drop all other held events."""
        ids, reason = set(events), Outranked(events)
        for pick in self.waiting:
            if pick.match.event.id not in ids:
                self._judge(pick, "dropped", reason, at_us)
        self.waiting = [pick for pick in self.waiting if pick.match.event.id in ids]

    def chosen(self, pick: Pick) -> None:
        """Do nothing: only what is due counts."""

    def got(self, pick: Pick) -> None:
        """Do nothing: a received event is no longer held."""

    def hand_over(self, now_us: int) -> list[Pick]:
        """Return the k best of what is held, with the ranks of an instant; drop the others."""
        picks = {pick.match.event.id: pick for pick in self.waiting}
        chosen = self._chooser.choose([pick.match for pick in self.waiting], now_us)
        self._keep([match.event.id for match, _ in chosen], now_us)
        self.waiting, self.end = [], None
        best = [replace(picks[match.event.id], rank=rank) for match, rank in chosen]
        return released(best, now_us)

    def begin(self, now_us: int) -> None:
        """Do nothing: the rule remembers only what it holds."""

    def adopt(self, old: "QuietState", now_us: int) -> None:
        """Do nothing: the rule remembers only what it holds."""

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {"end": self.end, "held": [pick_form(pick) for pick in self.waiting]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        end = snapshot_fields.whole(state, "end", -FAR, FAR, missing=True)
        held = [read_pick(form) for form in snapshot_fields.items(state, "held", width=5)]
        if (end is None) == bool(held):
            raise InvalidForm("quiet hours have an end if and only if they hold events")
        self.end, self.waiting = end, held

    def _judge(
        self, pick: Pick, fate: Fate, reason: object, at_us: int, until_us: int | None = None
    ) -> None:
        event = pick.match.event.id
        self.verdicts.append(Verdict(event, "quiet", fate, at_us, reason, until_us))
