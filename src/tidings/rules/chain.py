"""The chain of all rules of one subscriber, behind its window.

    picks of the window -> different -> quota -> quiet -> what the subscriber gets

A rule passes on at once what it does not hold, and later what it releases. All rules are
notified of what the subscriber gets, because `different` compares with it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidings.errors import InvalidForm
from tidings.rules.held import pick_form, read_pick
from tidings.rules.protocol import RulePart, RuleState
from tidings.rules.verdict import Verdict
from tidings.window import Chooser, Pick, snapshot_fields

ORDER: Final = ("different", "quota", "quiet")
"""Rules apply in this order, whatever the order in which a policy lists them."""


RULES_REPLACED: Final = "the rules were replaced"
"""Why old rules release what they hold: it is offered to the new ones."""


def in_order(rules: Sequence[RulePart]) -> tuple[RulePart, ...]:
    """Return rules in the order in which they apply; those of one name keep their order."""
    return tuple(sorted(rules, key=lambda rule: ORDER.index(rule.name)))


class RuleChain:
    """The states of the rules of one subscriber."""

    def __init__(self, rules: Sequence[RulePart], chooser: Chooser) -> None:
        self.rules = in_order(rules)
        self.states: list[RuleState] = [rule.open(chooser) for rule in self.rules]
        self.names = [rule.name for rule in self.rules]
        self.owed: list[Pick] = []
        self._old_verdicts: list[Verdict] = []
        self.paused = False

    @property
    def deadline(self) -> int | None:
        """The first instant at which something held is due."""
        return self.owed[0].at_us if self.owed else self._first_deadline()

    def offer(self, picks: Sequence[Pick], now_us: int) -> list[Pick]:
        """Take the choices of a window, in order of time; return the picks due by `now_us`."""
        due: list[Pick] = []
        for pick in picks:
            due += self._release_until(pick.at_us)
            due += self._note_got(self._pass_on(0, [pick]))
            for state in self.states:
                state.chosen(pick)
        return due + self._release_until(now_us)

    def _release_until(self, us: int) -> list[Pick]:
        """Return the picks due by an instant, in order of time."""
        due, self.owed = self._note_got(self.owed), []
        while (deadline := self._first_deadline()) is not None and deadline <= us:
            # Of equal deadlines the later rule goes first, so that it is empty when the earlier
            # one passes its events on.
            place = max(
                place for place, state in enumerate(self.states) if state.deadline == deadline
            )
            due += self._note_got(self._pass_on(place + 1, self.states[place].release()))
        return due

    def _first_deadline(self) -> int | None:
        deadlines = (state.deadline for state in self.states)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def _pass_on(self, place: int, picks: Sequence[Pick]) -> list[Pick]:
        """Offer picks to the rules from a place onwards; return what passes them all."""
        for state in self.states[place:]:
            picks = [passed for pick in picks for passed in state.offer(pick)]
        return list(picks)

    def _note_got(self, picks: list[Pick]) -> list[Pick]:
        """Note the picks that the subscriber gets, none during a pause; return them."""
        if not self.paused:
            for pick in picks:
                for state in self.states:
                    state.got(pick)
        return picks

    def take_verdicts(self) -> list[Verdict]:
        """Return what the rules did since the last call."""
        verdicts, self._old_verdicts = self._old_verdicts, []
        verdicts += [verdict for state in self.states for verdict in state.verdicts]
        for state in self.states:
            state.verdicts.clear()
        return verdicts

    def adopt(self, old: "RuleChain", now_us: int) -> None:
        """Continue from other rules of the subscriber, without losing what they would release now.

        The n-th rule of a name continues the history of the old one. What an old rule held is
        offered to the rules of that name; if there are none, it passes to the next ones. What
        passes is delivered when the clock advances next: a pause may come before.
        """
        unmatched = list(zip(old.names, old.states, strict=True))
        for name, state in zip(self.names, self.states, strict=True):
            same = next((entry for entry in unmatched if entry[0] == name), None)
            if same is None:
                state.begin(now_us)
                continue
            unmatched.remove(same)
            state.adopt(same[1], now_us)
        self.owed = list(old.owed)
        for name, state in zip(old.names, old.states, strict=True):
            place = sum(ORDER.index(present) < ORDER.index(name) for present in self.names)
            due = state.hand_over(now_us)
            ids = [pick.match.event.id for pick in due]
            state.verdicts += [Verdict(i, name, "released", now_us, RULES_REPLACED) for i in ids]
            self.owed += self._pass_on(place, due)
        self._old_verdicts = old.take_verdicts()

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {
            "states": [state.snapshot() for state in self.states],
            "owed": [pick_form(pick) for pick in self.owed],
            "paused": self.paused,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        states = snapshot_fields.items(state, "states")
        if len(states) != len(self.states):
            raise InvalidForm(f"field 'states' must have {len(self.states)} rules")
        self.owed = [read_pick(form) for form in snapshot_fields.items(state, "owed", width=5)]
        self.paused = state.get("paused") is True
        for own, form in zip(self.states, states, strict=True):
            own.restore(form)
