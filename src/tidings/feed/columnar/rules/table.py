"""The rules of all subscribers of a table: which group and row has them, and when they are due.

CohortDeliveries --what windows chose--> RuleGroup --what passes now--> CohortDeliveries
                                             |
                                     Deadlines, verdicts
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Int32s, Int64s
from tidings.compiled.arrays import grouped
from tidings.errors import InvalidPolicy
from tidings.feed.columnar.deliveries import CohortDeliveries, IdTables, object_deliveries
from tidings.feed.columnar.event_table import FeatureCache
from tidings.feed.columnar.kernels.layout import FAR, ORDER
from tidings.feed.columnar.period_ends import Deadlines
from tidings.feed.columnar.rules.group import RuleGroup
from tidings.feed.columnar.rules.kernels.layout import Picks, Turns
from tidings.feed.columnar.rules.kernels.turns import RuleNumbers, choice_turns
from tidings.feed.columnar.rules.rows import RuleRows
from tidings.feed.columnar.rules.transfer import ChainCopy, load_chain, store_chain
from tidings.feed.columnar.rules.verdicts import VerdictColumns
from tidings.feed.policy_key import feed_form, unregistered
from tidings.policy import Policy
from tidings.rules import Verdict

_FIRST_SIZE: Final = 16
_NO_DELIVERIES: Final = object_deliveries([])


class RuledDeliveries(NamedTuple):
    """The deliveries that pass the rules, and the numbers of subscribers whose rules failed."""

    parts: list[CohortDeliveries]
    failed: dict[int, str]


class OfferTurns(NamedTuple):
    """Calls of subscribers, such as offers: the number, the place in the order, and the time."""

    subscriber: AnyArray
    order: Int64s
    us: Int64s


class CohortOffers(NamedTuple):
    """The offers to one cohort, in order of publication: some of all offers of a call."""

    subscribers: AnyArray  # of all offers
    slots: Int32s  # of all offers: the slots of their events
    indexes: Int64s | slice  # those of the cohort
    us: Int64s  # by slot: the time of the event

    @property
    def last_us(self) -> int:
        """The time of the last offer."""
        if isinstance(self.indexes, slice):
            return int(self.us[self.slots[self.indexes][-1]])
        return int(self.us[self.slots[self.indexes[-1]]])

    def turns(self) -> OfferTurns:
        """Return each offer as a call."""
        order = np.arange(len(self.slots))[self.indexes]
        return OfferTurns(self.subscribers[self.indexes], order, self.us[self.slots[self.indexes]])


class RuleTable:
    """Groups by number, and the group and row of each subscriber, by its number."""

    def __init__(self, tables: IdTables, features: FeatureCache) -> None:
        self._tables, self._features = tables, features
        self.groups: dict[int, RuleGroup] = {}
        self.group = np.full(_FIRST_SIZE, -1, np.int32)
        self.row = np.zeros(_FIRST_SIZE, np.int32)
        self.deadlines = Deadlines()
        self._verdicts: list[VerdictColumns] = []
        self._adopted: list[tuple[int, Verdict]] = []
        self._numbers: dict[str, int] = {}
        self._latest: tuple[Policy | None, int] = (None, -1)
        self._next = 0

    def __bool__(self) -> bool:
        return bool(self.groups)

    def number(self, policy: Policy, owed: bool = False) -> int:
        """Return the number of the group of a policy, which is created if there is none."""
        if policy is self._latest[0] and not owed:
            return self._latest[1]
        key = _key(policy, owed)
        if key not in self._numbers:
            group = RuleGroup(policy, owed, self._tables, self._features)
            self._numbers[key], self.groups[self._next] = self._next, group
            self._next += 1
        if not owed:
            self._latest = (policy, self._numbers[key])
        return self._numbers[key]

    def enrol(self, numbers: Int64s, policy: Policy, owed: bool = False) -> Int32s:
        """Open new rules for subscribers that have none; return their rows."""
        self._make_room(int(numbers.max(initial=0)) + 1)
        group = self.number(policy, owed)
        rows = self.groups[group].rows.enrol_many(numbers)
        self.group[numbers], self.row[numbers] = group, rows
        return rows

    def leave(self, number: int) -> None:
        """Forget the rules of a subscriber, if it has any."""
        group = self.group_of(number)
        if group is None:
            return
        self._forget_verdicts(number)
        group_number = int(self.group[number])
        group.drop(int(self.row[number]))
        self.group[number] = -1
        if not len(group):
            del self.groups[group_number], self._numbers[_key(group.policy, group.owed)]
            self.deadlines.forget(group_number)
            self._latest = (None, -1)

    def reset(self, number: int) -> None:
        """Empty the rules of a subscriber, if it has any."""
        group = self.group_of(number)
        if group is not None:
            self._forget_verdicts(number)
            group.reset(int(self.row[number]))

    def _forget_verdicts(self, number: int) -> None:
        self._verdicts = [verdicts.without(number) for verdicts in self._verdicts]
        self._adopted = [pair for pair in self._adopted if pair[0] != number]

    def group_of(self, number: int) -> RuleGroup | None:
        """Return the group of a subscriber; None if it has no rules."""
        group = int(self.group[number]) if number < len(self.group) else -1
        return self.groups[group] if group >= 0 else None

    def replace(self, number: int, policy: Policy, now_us: int, sent: int) -> int | None:
        """Hand the rules of a subscriber over to those of a policy, as `RuleChain.adopt` does.

        `sent` counts its deliveries so far if it has had no rules. Return that number if it has
        none from now on.
        """
        old = self.group_of(number)
        if (old.policy.rules if old is not None else ()) == policy.rules:
            return None
        copy, before = ChainCopy.empty(policy), ChainCopy.empty(Policy())
        if old is not None:
            row = int(self.row[number])
            before, sent = load_chain(old, row, self._tables), int(old.rows.sent[row])
            copy = before._replace(chain=copy.chain)
        copy.chain.adopt(before.chain, now_us)
        self.leave(number)
        self._adopted += [(number, verdict) for verdict in copy.chain.take_verdicts()]
        if not policy.rules and not copy.chain.owed:
            return sent
        row = int(self.enrol(np.array([number]), policy, bool(copy.chain.owed))[0])
        group = self.groups[int(self.group[number])]
        group.rows.sent[row] = sent
        store_chain(group, row, copy, self._tables.events)
        self.schedule(int(self.group[number]), np.array([row]))
        return None

    def groups_of(self, numbers: Int64s) -> Int32s:
        """Return the numbers of the groups of subscribers; -1 where there are no rules."""
        self._make_room(len(self._tables.subscribers.names))
        groups: Int32s = self.group[numbers]
        return groups

    def set_paused(self, number: int, paused: bool) -> None:
        """Note whether a subscriber is paused: it gets nothing while it is."""
        group = self.group_of(number)
        if group is not None:
            group.rows.paused[self.row[number]] = paused

    def _make_room(self, count: int) -> None:
        old = len(self.group)
        if count > old:
            size = max(count, old + old // 8)
            self.row.resize(size, refcheck=False)
            self.group.resize(size, refcheck=False)
            self.group[old:] = -1

    def quiet_until(self, us: int) -> int:
        """Return the first instant after `us` at which something may be released.

        That is the first end until which something is held, or may be held from now on.
        """
        first = self.deadlines.first
        ends = [group.ends.after(us) for group in self.groups.values()]
        return min(ends if first is None else [first, *ends], default=FAR)

    def after_offers(self, chosen: CohortDeliveries, offers: CohortOffers) -> RuledDeliveries:
        """Apply rules to what the windows of a cohort chose from offers, in their order."""
        self._make_room(len(self._tables.subscribers.names))
        if chosen.objects:  # user-defined windows, whose rules are objects too
            return RuledDeliveries([chosen], {})
        passed = RuledDeliveries([], {})
        first = self.deadlines.first
        if first is None or first > offers.last_us:
            # Nothing that is held is due, so that only what windows chose needs a look.
            self._after_choices(chosen, offers, passed)
            return passed
        groups = self.group[chosen.subscriber]
        free = groups < 0
        if free.any():
            passed.parts.append(_selected(chosen, free))
        calls = offers.turns()
        for number, indexes in grouped(self.group[calls.subscriber]):
            if number >= 0:
                picks = _selected(chosen, groups == number)
                self._run(number, picks, OfferTurns(*(column[indexes] for column in calls)), passed)
        return passed

    def _after_choices(
        self, chosen: CohortDeliveries, offers: CohortOffers, passed: RuledDeliveries
    ) -> None:
        """Take the turns of the offers from which something was chosen."""
        picks, size = chosen.columns[:, ORDER], len(chosen.rank)
        if not size:
            return
        group, rows = int(self.group[chosen.subscriber[0]]), np.empty(size, np.int32)
        turns = Turns(rows, *(np.empty(size + 1, np.int64) for _ in range(4)))
        rules = RuleNumbers(group, self.group, self.row)
        count = choice_turns(picks, chosen.subscriber, rules, offers.slots, offers.us, turns)
        if count < 0:
            for _, indexes in grouped(self.group[chosen.subscriber]):
                self._after_choices(_selected(chosen, indexes), offers, passed)
        elif group < 0:
            passed.parts.append(chosen)
        else:
            self._apply(group, chosen, turns.first_ones(count), passed)

    def after_advance(self, chosen: Sequence[CohortDeliveries], now_us: int) -> RuledDeliveries:
        """Apply rules to what windows chose as time went on, and release what is due by now."""
        if not self.groups:
            return RuledDeliveries([*chosen], {})
        self._make_room(len(self._tables.subscribers.names))
        due = self.deadlines.pop_due(now_us)
        passed, picks = RuledDeliveries([], {}), dict[int, CohortDeliveries]()
        for part in chosen:
            groups = np.where(part.subscriber < 0, -1, self.group[part.subscriber])
            for number in np.unique(groups).tolist():
                selected = _selected(part, groups == number)
                if number < 0:
                    passed.parts.append(selected)
                else:
                    picks[number] = selected
        for number in sorted({*due, *picks}):
            selected = picks.get(number, _NO_DELIVERIES)
            late = self.groups[number].rows.subscriber[due.get(number, np.zeros(0, np.int64))]
            subscriber = np.unique(np.concatenate([selected.subscriber, late]))
            order = self._tables.subscribers.order[subscriber]
            by_order = np.argsort(order)
            us = np.full(len(order), now_us)
            selected = _selected(selected, np.argsort(selected.columns[:, ORDER], kind="stable"))
            turns = OfferTurns(subscriber[by_order], order[by_order], us)
            self._run(number, selected, turns, passed)
        return passed

    def _run(
        self,
        number: int,
        chosen: CohortDeliveries,
        offers: OfferTurns,
        passed: RuledDeliveries,
    ) -> None:
        """Run a group for calls, some of which may only release what is held."""
        rows = self.groups[number].rows
        is_due = rows.soonest <= offers.us.max(initial=-FAR)
        turns = self._turns(rows, chosen, offers, is_due)
        if len(turns.row):
            self._apply(number, chosen, turns, passed)
        if is_due:
            rows.find_soonest()

    def _apply(
        self, number: int, chosen: CohortDeliveries, turns: Turns, passed: RuledDeliveries
    ) -> None:
        """Run a group; add what it delivers to `passed`, and schedule what it holds."""
        result = self.groups[number].run(turns, Picks(chosen.columns, chosen.rank, chosen.score))
        passed.parts.append(result.delivered)
        passed.failed.update(result.failed)
        if len(result.verdicts.figures):
            self._verdicts.append(result.verdicts)
        if len(result.moved):
            self.schedule(number, result.moved)

    def _turns(
        self, rows: RuleRows, chosen: CohortDeliveries, offers: OfferTurns, is_due: bool
    ) -> Turns:
        """Return the turns in which something happens: with picks, or with something due."""
        picked = chosen.columns[:, ORDER]
        first = _firsts(picked)
        at = _places(offers.order, picked[first])
        if is_due:
            is_busy = rows.deadline[self.row[offers.subscriber]] <= offers.us
            is_busy[at] = True
            busy = np.flatnonzero(is_busy)
            counts = np.zeros(len(offers.order), np.int64)
            counts[at] = np.diff(first, append=len(picked))
            at, first = busy, np.cumsum(counts[busy]) - counts[busy]
        return Turns(
            self.row[offers.subscriber[at]],
            offers.subscriber[at].astype(np.int64),
            offers.us[at],
            offers.order[at],
            np.append(first, len(picked)),
        )

    def schedule(self, number: int, rows: AnyArray) -> None:
        """Schedule the deadlines of some rows of a group."""
        state = self.groups[number].rows
        deadlines = state.deadline[rows]
        is_waiting = deadlines != FAR
        if is_waiting.any():
            # A row may be among them twice: those that are due are sorted without repeats.
            ends = np.stack([rows[is_waiting], deadlines[is_waiting]], axis=1)
            state.note_deadlines(ends[:, 1])
            self.deadlines.add(number, ends)

    def take_verdict_columns(self) -> list[VerdictColumns]:
        """Return what rules did since the last call, as columns."""
        verdicts, self._verdicts = self._verdicts, []
        return verdicts

    def take_verdicts(self) -> dict[str, list[Verdict]]:
        """Return what rules did since the last call, by subscriber."""
        placed = dict[str, list[tuple[int, Verdict]]]()
        adopted, self._adopted = self._adopted, []
        for subscriber, verdict in adopted:
            placed.setdefault(self._tables.subscribers.names[subscriber], []).append((-1, verdict))
        for columns in self.take_verdict_columns():
            for subscriber, place, verdict in columns.objects(self._tables):
                name = self._tables.subscribers.names[subscriber]
                placed.setdefault(name, []).append((place, verdict))
        return {
            name: [verdict for _, verdict in sorted(verdicts, key=lambda pair: pair[0])]
            for name, verdicts in placed.items()
        }

    def mark_slots(self, alive: Int32s) -> None:
        """Mark the event slots in use."""
        for group in self.groups.values():
            group.mark_slots(alive)
        for verdicts in self._verdicts:
            verdicts.mark_slots(alive)

    def handles(self) -> Iterator[Int32s]:
        """Yield the handles of all held events."""
        return (group.rows.handles() for group in self.groups.values())

    def copy_sets(self, old: Int32s, new: Int32s, used: int) -> int:
        """Copy the sets of matched subscriptions in use; return how much of `new` is used."""
        for group in self.groups.values():
            used = group.copy_sets(old, new, used)
        return used


def _selected(part: CohortDeliveries, rows: AnyArray | slice) -> CohortDeliveries:
    if isinstance(rows, slice) or (rows.dtype == np.bool_ and rows.all()):
        return part
    return replace(
        part,
        subscriber=part.subscriber[rows],
        columns=part.columns[rows],
        rank=part.rank[rows],
        score=part.score[rows],
    )


def _firsts(order: Int64s) -> Int64s:
    """Return the places at which runs of equal numbers begin."""
    is_first = np.ones(len(order), np.bool_)
    np.not_equal(order[1:], order[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)


def _places(order: Int64s, numbers: Int64s) -> Int64s:
    """Return where numbers are in an order that has them all; O(1) for each if it has no gaps."""
    if len(order) and order[-1] - order[0] == len(order) - 1:
        return np.asarray(numbers - order[0])
    return np.asarray(np.searchsorted(order, numbers))


def _key(policy: Policy, owed: bool) -> str:
    user_defined = [id(part) for part in unregistered(policy)]
    try:
        return json.dumps([feed_form(policy), user_defined, owed], sort_keys=True)
    except (TypeError, ValueError) as error:
        raise InvalidPolicy(f"the policy has no JSON form: {error}") from None
