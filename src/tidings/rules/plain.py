"""Rules by definition: each decision reads the whole history. They judge the state machines."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from tidings.model.calendar import Period
from tidings.model.values import rounded
from tidings.rules.protocol import RulePart
from tidings.window import Chooser, Pick

Paused = Callable[[int], bool]
"""Return whether the subscriber is paused at an instant."""
_ORDER: Final = ("different", "quota", "quiet")
_LAST_RANKS: Final = 200


def plain_rules(
    rules: Sequence[RulePart],
    chooser: Chooser,
    picks: Sequence[Pick],
    now_us: int,
    is_paused: Paused = lambda _: False,
) -> list[Pick]:
    """Return what a subscriber gets by `now_us` of the picks of a window, in order of time."""
    judge = _Judge(rules, chooser, is_paused)
    for pick in picks:
        judge.release_until(pick.at_us)
        judge.enter(0, pick)
        judge.chosen.append(pick)
    judge.release_until(now_us)
    return judge.due


class _Judge:
    """The history of one subscriber: what was chosen, held and passed by each rule, and got."""

    def __init__(self, rules: Sequence[RulePart], chooser: Chooser, is_paused: Paused) -> None:
        self._rules: list[Any] = [rule for name in _ORDER for rule in rules if rule.name == name]
        self._chooser, self._is_paused = chooser, is_paused
        self.chosen: list[Pick] = []
        self.due: list[Pick] = []
        self._got: list[Pick] = []
        self._held: list[list[Pick]] = [[] for _ in self._rules]
        self._passed: list[list[Period]] = [[] for _ in self._rules]

    def enter(self, place: int, pick: Pick) -> None:
        """Pass a pick through the rules from a place on."""
        if place == len(self._rules):
            self.due.append(pick)
            if not self._is_paused(pick.at_us):
                self._got.append(pick)
            return
        rule = self._rules[place]
        if rule.name == "different":
            if not self._is_near(rule, pick):
                self.enter(place + 1, pick)
        elif rule.name == "quiet":
            if _is_urgent(rule, pick) or rule.spans.span(pick.at_us) is None:
                self.enter(place + 1, pick)
            else:
                self._held[place].append(pick)
        elif self._passes(place, pick):
            self._passed[place].append(rule.calendar.period(pick.at_us))
            self.enter(place + 1, pick)
        elif rule.pick == "best":
            self._held[place].append(pick)

    def _is_near(self, rule: Any, pick: Pick) -> bool:
        """Return whether a pick is too near to an event that was got not long ago."""
        return any(
            got.at_us > pick.at_us - rule.within.us
            and rounded(rule.distance.between(got.match.event, pick.match.event)) < rule.min
            for got in self._got
        )

    def _passes(self, place: int, pick: Pick) -> bool:
        """Return whether a quota lets a pick pass at once."""
        rule = self._rules[place]
        period = rule.calendar.period(pick.at_us)
        left = rule.n - self._passed[place].count(period)
        if left <= 0 or rule.pick == "first" or _is_urgent(rule, pick):
            return bool(left > 0)
        above = sum(held.rank > pick.rank for held in self._held[place])
        before = rule.calendar.period(period.start - 1)
        chosen_before = sum(before.start <= each.at_us < before.end for each in self.chosen)
        ranks = [each.rank for each in self.chosen[-_LAST_RANKS:]]
        share = sum(rank > pick.rank for rank in ranks) / len(ranks) if ranks else 0.0
        expected = chosen_before * ((period.end - pick.at_us) / (period.end - period.start)) * share
        return bool(rounded(above + expected) < left)

    def release_until(self, us: int) -> None:
        """Release what is due by an instant; of equal instants, what the last rule holds first."""
        while True:
            ends = [
                (self._end(place, pick), -place)
                for place, held in enumerate(self._held)
                for pick in held
            ]
            if not ends or min(ends)[0] > us:
                return
            end, negative = min(ends)
            self._release(-negative, end)

    def _end(self, place: int, pick: Pick) -> int:
        """Return the instant at which a held pick is due."""
        rule = self._rules[place]
        periods = rule.calendar.period if rule.name == "quota" else rule.spans.span
        end: int = periods(pick.at_us).end
        return end

    def _release(self, place: int, end: int) -> None:
        rule, held = self._rules[place], self._held[place]
        self._held[place] = []
        if rule.name == "quiet":
            by_event = {pick.match.event.id: pick for pick in held}
            chosen = self._chooser.choose([pick.match for pick in held], end)
            best = [replace(by_event[match.event.id], rank=rank) for match, rank in chosen]
        else:
            period = rule.calendar.period(end - 1)
            left = rule.n - self._passed[place].count(period)
            best = sorted(held, key=_best_first)[:left]
            self._passed[place] += [period] * len(best)
        for position, pick in enumerate(best, start=1):
            self.enter(place + 1, replace(pick, position=position, at_us=end))


def _is_urgent(rule: Any, pick: Pick) -> bool:
    return rule.urgent is not None and bool(pick.rank >= rule.urgent)


def _best_first(pick: Pick) -> tuple[float, int, str]:
    return -pick.rank, -pick.match.event.published_us, pick.match.event.id
