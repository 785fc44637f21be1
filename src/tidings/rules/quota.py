"""The rule `quota` (semantics §6b): at most n in a period, and the best ones."""

from bisect import insort
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from tidings.errors import InvalidForm, InvalidPolicy, shown
from tidings.model import validate
from tidings.model.calendar import Calendar, EqualPeriods, Period, days, hours, read_zone, weeks
from tidings.model.values import LATEST_US, rounded
from tidings.rules.held import best_rank_first, is_urgent, pick_form, read_pick, read_rank, released
from tidings.rules.verdict import BetterExpected, Displaced, Fate, QuotaSpent, Verdict
from tidings.window import Chooser, Pick, snapshot_fields
from tidings.window.length import length
from tidings.window.snapshot_fields import FAR

REMEMBERED: Final = 200
"""The number of chosen ranks from which the rule expects what is still to come."""
PERIOD_ENDED: Final = "the period ended, and it was among the best that were held"
_CALENDARS: Final = {"hour": hours, "day": days, "week": weeks}
_PICKS: Final = ("best", "first")


@dataclass(frozen=True)
class Quota:
    """At most `n` pass in a period: an hour, day or week of the `zone`, or a duration.

    With `pick="first"` they pass as they come. With "best", an event passes at once if it is
    expected to be among the best that are left to pass; else it is held, and at the end of the
    period the best held ones fill what is left. A rank of at least `urgent` is never held while
    something is left.
    """

    n: int
    per: Any = "day"
    zone: str = "UTC"
    pick: str = "best"
    urgent: float | None = None
    name: ClassVar[str] = "quota"

    @validate.guarded_by(InvalidPolicy)
    def __post_init__(self) -> None:
        object.__setattr__(self, "n", validate.count("n", self.n))
        object.__setattr__(self, "zone", read_zone("zone", self.zone))
        object.__setattr__(self, "pick", validate.choice("pick", self.pick, _PICKS))
        if validate.is_a(self.per, str):
            object.__setattr__(self, "per", validate.plain_text(self.per))
        if not (type(self.per) is str and self.per in _CALENDARS):
            object.__setattr__(self, "per", _duration(self.per))
        read_urgent(self)

    @property
    def calendar(self) -> Calendar:
        """The periods of this quota; those of a duration are aligned to the epoch."""
        if isinstance(self.per, str):
            return _CALENDARS[self.per](self.zone)
        return EqualPeriods(self.per.us)

    def open(self, chooser: Chooser) -> "QuotaState":
        """Open the rule for one subscriber."""
        return QuotaState(self)


def _duration(value: Any) -> Any:
    try:
        per = length("per", value)
    except InvalidPolicy:
        per = None
    if per is None or per.us is None:
        raise InvalidPolicy(f"per is hour, day, week or a duration such as 12h, not {shown(value)}")
    return per


def read_urgent(part: Any) -> None:
    """Check the parameter `urgent` of a rule: a rank, or None."""
    if part.urgent is not None:
        object.__setattr__(part, "urgent", validate.number("urgent", part.urgent, InvalidPolicy))


class QuotaState:
    """The number that passed in the open period, and the events held until its end.

    Of the held events only as many are kept as can still pass: the best.
    """

    def __init__(self, part: Quota) -> None:
        self._part = part
        self._calendar = part.calendar
        self.period = Period(-FAR, -FAR)
        self.passed = 0
        self.count = 0
        self.count_before = 0
        self.ranks: deque[float] = deque(maxlen=REMEMBERED)
        self.waiting: list[Pick] = []  # best first
        self.verdicts: list[Verdict] = []

    @property
    def deadline(self) -> int | None:
        """The end of the period, if something is held in it."""
        return self.period.end if self.waiting else None

    def offer(self, pick: Pick) -> list[Pick]:
        """Return the pick if it passes at once; hold it if it may pass later."""
        self.enter(pick.at_us)
        left = max(0, self._part.n - self.passed)
        if not left:
            self._judge(pick, "dropped", QuotaSpent(self._part.n, self.period.end))
            return []
        reason = self._reason_to_hold(pick, left)
        if reason is None:
            self.passed += 1
            self._keep(left - 1, pick)
            return [pick]
        insort(self.waiting, pick, key=best_rank_first)
        self._keep(left, pick)
        if any(held is pick for held in self.waiting):
            self._judge(pick, "held", reason, until_us=self.period.end)
        return []

    def _reason_to_hold(self, pick: Pick, left: int) -> BetterExpected | None:
        """Return why a pick is held; None if it is first, urgent, or expected among the best."""
        if self._part.pick == "first" or is_urgent(pick, self._part.urgent):
            return None
        above = sum(held.rank > pick.rank for held in self.waiting)
        expected = self._expected_above(pick)
        if rounded(above + expected) < left:
            return None
        return BetterExpected(above, expected, left)

    def _expected_above(self, pick: Pick) -> float:
        """Return how many better ones the rest of the period is expected to bring."""
        if not self.count_before or not self.ranks:
            return 0.0
        start, end = self.period
        share_left = (end - pick.at_us) / (end - start)
        share_above = sum(rank > pick.rank for rank in self.ranks) / len(self.ranks)
        return self.count_before * share_left * share_above

    def _keep(self, count: int, newest: Pick) -> None:
        """Drop all held events but the best ones."""
        while len(self.waiting) > count:
            worst = self.waiting.pop()
            other = newest.match.event.id if worst is not newest else None
            self._judge(worst, "dropped", Displaced(count, other), other=other, at_us=newest.at_us)

    def release(self) -> list[Pick]:
        """Return the best held events, as many as the quota still allows."""
        due = self.hand_over(self.period.end)
        self.passed += len(due)
        for pick in due:
            self._judge(pick, "released", PERIOD_ENDED)
        return due

    def chosen(self, pick: Pick) -> None:
        """Count a choice of the window, and remember its rank."""
        self.enter(pick.at_us)
        self.count += 1
        self.ranks.append(pick.rank)

    def enter(self, us: int) -> None:
        """Begin the period of an instant, if it is a new one."""
        if us < self.period.end:
            return
        period = self._calendar.period(us)
        self.count_before = self.count if period.start == self.period.end else 0
        self.period, self.passed, self.count = period, 0, 0

    def got(self, pick: Pick) -> None:
        """Do nothing: passed events have been counted."""

    def hand_over(self, now_us: int) -> list[Pick]:
        """Return the held events, best first."""
        due, self.waiting = released(self.waiting, now_us), []
        return due

    @staticmethod
    def in_order(picks: Sequence[Pick]) -> list[Pick]:
        """Return held events best first."""
        return sorted(picks, key=best_rank_first)

    def begin(self, now_us: int) -> None:
        """Do nothing: events chosen or passed before do not count."""

    def adopt(self, old: "QuotaState", now_us: int) -> None:
        """Keep the ranks; what passed in the open period counts in the new one.

        So does what the window chose in that period, and in the one before it.
        """
        self.ranks = old.ranks.copy()
        if old.period.end == -FAR:  # nothing has been chosen yet
            return
        old.enter(now_us)
        self.period = self._calendar.period(now_us)
        self.passed, self.count = old.passed, old.count
        self.count_before = old.count_before

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {
            "start": self.period.start,
            "passed": self.passed,
            "chosen": [self.count_before, self.count],
            "ranks": list(self.ranks),
            "held": [pick_form(pick) for pick in self.waiting],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        start = snapshot_fields.whole(state, "start", -FAR, LATEST_US)
        period = Period(start, start) if start == -FAR else self._calendar.period(start)
        passed = snapshot_fields.whole(state, "passed")
        chosen = snapshot_fields.items(state, "chosen")
        if len(chosen) != 2:  # the choices of the period before, and of this one
            raise InvalidForm("field 'chosen' must have two numbers")
        ranks = [read_rank(rank) for rank in snapshot_fields.items(state, "ranks")]
        held = [read_pick(form) for form in snapshot_fields.items(state, "held", width=5)]
        self.period, self.passed = period, passed
        self.count_before, self.count = (
            snapshot_fields.number("a number of choices", number) for number in chosen
        )
        self.ranks = deque(ranks[-REMEMBERED:], REMEMBERED)
        self.waiting = self.in_order(held)[: max(0, self._part.n - passed)]

    def _judge(self, pick: Pick, fate: Fate, reason: object, **more: Any) -> None:
        at_us = more.pop("at_us", pick.at_us)
        self.verdicts.append(Verdict(pick.match.event.id, "quota", fate, at_us, reason, **more))
