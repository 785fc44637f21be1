"""Rules by definition: each decision reads the whole history. They judge the state machines."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from tidings.model.calendar import Period
from tidings.model.values import rounded
from tidings.rules.protocol import RulePart
from tidings.window import Chooser, Pick

Paused = Callable[[int], bool]
"""Return whether the subscriber is paused at an instant."""
_ORDER: Final = ("different", "quota", "quiet")
_LAST_RANKS: Final = 200


class RuleChange(NamedTuple):
    """New rules from an instant onwards, after a number of picks."""

    after: int
    us: int
    rules: Sequence[RulePart]


def plain_rules(
    rules: Sequence[RulePart],
    chooser: Chooser,
    picks: Sequence[Pick],
    now_us: int,
    is_paused: Paused = lambda _: False,
    changes: Sequence[RuleChange] = (),
) -> list[Pick]:
    """Return the picks of a window that a subscriber gets by `now_us`, in order of time."""
    judge = _Judge(rules, chooser, is_paused)
    for number in range(len(picks) + 1):
        for change in changes:
            if change.after == number:
                judge.release_until(change.us)
                judge.change(change.rules, change.us)
        if number < len(picks):
            judge.release_until(picks[number].at_us)
            judge.enter(0, picks[number])
            judge.choose(picks[number])
    judge.release_until(now_us)
    return judge.due


class _Memory:
    """The memory of one rule: periods of passed and chosen events, ranks, received events."""

    def __init__(self, since_us: int | None = None) -> None:
        self.since_us = since_us
        self.held: list[Pick] = []
        self.passed: list[Period] = []
        self.chosen: list[Period] = []
        self.ranks: list[float] = []
        self.got: list[Pick] = []

    def compares(self, pick: Pick) -> bool:
        """Return whether a pick was published after the rule was added."""
        return self.since_us is None or pick.match.event.published_us > self.since_us


class _Judge:
    """The history of one subscriber: what was chosen, held and passed by each rule, and got."""

    def __init__(self, rules: Sequence[RulePart], chooser: Chooser, is_paused: Paused) -> None:
        self._rules = _in_order(rules)
        self._memories = [_Memory() for _ in self._rules]
        self._chooser, self._is_paused = chooser, is_paused
        self.due: list[Pick] = []

    def choose(self, pick: Pick) -> None:
        """Note that the window chose a pick."""
        for rule, memory in zip(self._rules, self._memories, strict=True):
            if rule.name == "quota":
                memory.chosen.append(rule.calendar.period(pick.at_us))
                memory.ranks.append(pick.rank)

    def change(self, rules: Sequence[RulePart], us: int) -> None:
        """Continue with other rules."""
        old = list(zip(self._rules, self._memories, strict=True))
        self._rules = _in_order(rules)
        if self._rules == [rule for rule, _ in old]:
            return
        handed = [(rule, self._released(rule, memory, us)) for rule, memory in old]
        self._memories = []
        for rule in self._rules:
            same = next((entry for entry in old if entry[0].name == rule.name), None)
            self._memories.append(_Memory(us) if same is None else _continued(rule, *same, us))
            if same is not None:
                old.remove(same)
        for rule, picks in handed:
            place = sum(_ORDER.index(other.name) < _ORDER.index(rule.name) for other in self._rules)
            for position, pick in enumerate(picks, start=1):
                self.enter(place, replace(pick, position=position, at_us=us))

    def enter(self, place: int, pick: Pick) -> None:
        """Pass a pick through the rules from a place onwards."""
        if place == len(self._rules):
            self.due.append(pick)
            if not self._is_paused(pick.at_us):
                for memory in self._memories:
                    memory.got.append(pick)
            return
        rule, memory = self._rules[place], self._memories[place]
        if rule.name == "different":
            if not _is_near(rule, memory, pick):
                self.enter(place + 1, pick)
        elif rule.name == "quiet":
            if _is_urgent(rule, pick) or rule.spans.span(pick.at_us) is None:
                self.enter(place + 1, pick)
            else:
                memory.held.append(pick)
        elif _passes(rule, memory, pick):
            memory.passed.append(rule.calendar.period(pick.at_us))
            self.enter(place + 1, pick)
        elif rule.pick == "best":
            memory.held.append(pick)

    def release_until(self, us: int) -> None:
        """Release the events due by an instant; of equal instants, those of the last rule first."""
        while True:
            ends = [
                (self._end(place, pick), -place)
                for place, memory in enumerate(self._memories)
                for pick in memory.held
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
        rule, memory = self._rules[place], self._memories[place]
        best = self._released(rule, memory, end)
        memory.held = []
        if rule.name == "quota":
            memory.passed += [rule.calendar.period(end - 1)] * len(best)
        for position, pick in enumerate(best, start=1):
            self.enter(place + 1, replace(pick, position=position, at_us=end))

    def _released(self, rule: Any, memory: _Memory, us: int) -> list[Pick]:
        """Return the held events that a rule releases when its period or its hours end."""
        if not memory.held:
            return []
        if rule.name == "quota":
            period = rule.calendar.period(memory.held[0].at_us)
            left = rule.n - memory.passed.count(period)
            return sorted(memory.held, key=_best_first)[: max(0, left)]
        by_event = {pick.match.event.id: pick for pick in memory.held}
        chosen = self._chooser.choose([pick.match for pick in memory.held], us)
        return [replace(by_event[match.event.id], rank=rank) for match, rank in chosen]


def _in_order(rules: Sequence[RulePart]) -> list[Any]:
    return [rule for name in _ORDER for rule in rules if rule.name == name]


def _continued(rule: Any, old_rule: Any, old: _Memory, us: int) -> _Memory:
    """Return the memory of a rule that continues the history of an old one."""
    memory = _Memory(old.since_us)
    if rule.name == "different":
        memory.got = [got for got in old.got if got.at_us > us - old_rule.within.us]
    elif rule.name == "quota":
        present, old_present = rule.calendar.period(us), old_rule.calendar.period(us)
        before = rule.calendar.period(present.start - 1)
        new_period = {old_present: present, old_rule.calendar.period(old_present.start - 1): before}
        memory.passed = [present] * old.passed.count(old_present)
        memory.chosen = [new_period[period] for period in old.chosen if period in new_period]
        memory.ranks = list(old.ranks)
    return memory


def _is_near(rule: Any, memory: _Memory, pick: Pick) -> bool:
    """Return whether a pick is too near to an event that was received recently."""
    return memory.compares(pick) and any(
        got.at_us > pick.at_us - rule.within.us
        and memory.compares(got)
        and rounded(rule.distance.between(got.match.event, pick.match.event)) < rule.min
        for got in memory.got
    )


def _passes(rule: Any, memory: _Memory, pick: Pick) -> bool:
    """Return whether a quota lets a pick pass at once."""
    period = rule.calendar.period(pick.at_us)
    left = rule.n - memory.passed.count(period)
    if left <= 0 or rule.pick == "first" or _is_urgent(rule, pick):
        return bool(left > 0)
    above = sum(held.rank > pick.rank for held in memory.held)
    chosen_before = memory.chosen.count(rule.calendar.period(period.start - 1))
    ranks = memory.ranks[-_LAST_RANKS:]
    share = sum(rank > pick.rank for rank in ranks) / len(ranks) if ranks else 0.0
    expected = chosen_before * ((period.end - pick.at_us) / (period.end - period.start)) * share
    return bool(rounded(above + expected) < left)


def _is_urgent(rule: Any, pick: Pick) -> bool:
    return rule.urgent is not None and bool(pick.rank >= rule.urgent)


def _best_first(pick: Pick) -> tuple[float, int, str]:
    return -pick.rank, -pick.match.event.published_us, pick.match.event.id
