"""Feeds of millions of subscribers: windows in arrays, one cohort for each policy.

    Matches --by cohort--> kernels --CohortDeliveries--> DeliveryBatch --> Delivery objects

A batch of matches costs as much as its matches: the windows of other subscribers are not touched.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from tidings.compiled.array_types import Int32s, Int64s
from tidings.compiled.arrays import Group, Ragged, grouped
from tidings.errors import InvalidEvent, InvalidSubscription, TidingsError, described
from tidings.feed.columnar.cohort_arrays import OfferedEvents, OfferRows, read_offers
from tidings.feed.columnar.cohort_registry import AnyCohort, CohortRegistry
from tidings.feed.columnar.deliveries import (
    CohortDeliveries,
    DeliveryBatch,
    IdTables,
    object_deliveries,
)
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.event_table import EventTable, check_content, read_form
from tidings.feed.columnar.id_tables import EnrolledSubscribers, MatchedSets
from tidings.feed.columnar.kernels.layout import FAR, ORDER, PUBLISHED, SENT, TIME, Offers
from tidings.feed.columnar.peek import current_diverse, current_ranked
from tidings.feed.columnar.period_ends import Deadlines, first_end
from tidings.feed.columnar.python_cohort import PythonCohort
from tidings.feed.columnar.rules.table import CohortOffers, RuleTable
from tidings.feed.columnar.rules.verdicts import VerdictColumns
from tidings.feed.columnar.snapshot import PolicyOf, dump, load
from tidings.feed.protocol import Offer, report_set_aside
from tidings.model.event_columns import UNNUMBERED
from tidings.model.records import Delivery, Event, Match
from tidings.policy import Policy, Subscriber
from tidings.rules import Verdict
from tidings.window import Moment


class PreparedOffers(NamedTuple):
    """Matches that can be offered.

    `groups` has the rows of each cohort, by its number; `handles` refer to what matched.
    """

    groups: Sequence[Group]
    rows: OfferRows
    handles: Int32s


class TableFeeds:
    """Feeds in arrays; see the module for the data flow."""

    name: ClassVar[str] = "table"

    def __init__(self) -> None:
        self.tables = IdTables(EnrolledSubscribers(), EventTable(), MatchedSets())
        self.cohorts = CohortRegistry(self.tables.events)
        self.rules = RuleTable(self.tables, self.cohorts.features)
        self.set_aside: dict[str, str] = {}
        self._deadlines = {TIME: Deadlines(), PUBLISHED: Deadlines()}
        self._nothing = DeliveryBatch([], self.tables)

    def __contains__(self, subscriber: str) -> bool:
        return subscriber in self.tables.subscribers

    def __len__(self) -> int:
        return len(self.tables.subscribers)

    def enrol(self, subscriber: Subscriber) -> None:
        subscribers, name = self.tables.subscribers, subscriber.id
        cohort = self.cohort(subscriber.policy)
        if name in subscribers:
            self._move(subscribers.number(name), cohort, name)
        else:
            self._add(cohort, name)
        self._open_rules(subscriber)
        self.set_aside.pop(name, None)

    def _open_rules(self, subscriber: Subscriber) -> None:
        """Reopen the rules of a subscriber, where its window is in arrays."""
        number = self.number(subscriber.id)
        cohort = self.cohorts[int(self.tables.subscribers.cohort[number])]
        self.rules.leave(number)
        if isinstance(cohort, PythonCohort):
            cohort.feeds[number].pause(paused=subscriber.paused)
        elif subscriber.policy.rules:
            self.rules.enrol(np.array([number]), subscriber.policy)
            self.rules.set_paused(number, subscriber.paused)

    def _add(self, cohort: int, name: str) -> None:
        """Add a new subscriber to a cohort, or change nothing."""
        subscribers = self.tables.subscribers
        try:
            number = subscribers.add(name)
            subscribers.assign(number, cohort, self.cohorts[cohort].enrol(number, name))
        except BaseException:
            if name in subscribers:
                subscribers.remove(name)
            self.cohorts.discard(cohort)
            raise

    def _move(self, number: int, cohort: int, name: str) -> None:
        """Replace the window of a subscriber by an empty one in a cohort, or change nothing."""
        subscribers = self.tables.subscribers
        if subscribers.cohort[number] == cohort:
            self.cohorts[cohort].reset(int(subscribers.row[number]))
            return
        try:
            row = self.cohorts[cohort].enrol(number, name)
        except BaseException:
            self.cohorts.discard(cohort)
            raise
        self._leave(number)
        subscribers.assign(number, cohort, row)

    def replace(self, subscriber: Subscriber, now: Moment) -> None:
        number, cohort = self.number(subscriber.id), self.cohort(subscriber.policy)
        old_number = int(self.tables.subscribers.cohort[number])
        old, new = self.cohorts[old_number], self.cohorts[cohort]
        if isinstance(new, PythonCohort) is not isinstance(old, PythonCohort):
            self.enrol(subscriber)
            return
        if not isinstance(old, PythonCohort) or not isinstance(new, PythonCohort):
            self._replace_rules(number, subscriber, now)
            return
        feed = old.feeds[number]
        feed.replace(subscriber, now)
        if old is not new:
            new.feeds[number] = feed
            self._leave(number)
            self.tables.subscribers.assign(number, cohort, number)

    def _replace_rules(self, number: int, subscriber: Subscriber, now: Moment) -> None:
        subscribers = self.tables.subscribers
        cohort = self.cohorts[int(subscribers.cohort[number])]
        assert not isinstance(cohort, PythonCohort)
        row = int(subscribers.row[number])
        sent = self.rules.replace(number, subscriber.policy, now.us, int(cohort.head[row, SENT]))
        if sent is not None:
            cohort.head[row, SENT] = sent
        self.rules.set_paused(number, subscriber.paused)

    def pause(self, subscriber: str) -> None:
        """Note that a subscriber is paused: dropped events do not count as received."""
        number = self.number(subscriber)
        cohort = self.cohorts[int(self.tables.subscribers.cohort[number])]
        if isinstance(cohort, PythonCohort):
            cohort.feeds[number].pause(paused=True)
        self.rules.set_paused(number, paused=True)

    def take_verdict_columns(self) -> list[VerdictColumns]:
        """Return what rules in arrays did since the last call; `take_verdicts` has the rest."""
        return self.rules.take_verdict_columns()

    def take_verdicts(self) -> dict[str, list[Verdict]]:
        verdicts = self.rules.take_verdicts()
        for cohort in self.cohorts.objects():
            for feed in cohort.feeds.values():
                if own := feed.take_verdicts():
                    verdicts[feed.subscriber.id] = own
        return verdicts

    def enrol_many(
        self, subscribers: Sequence[str], policies: Sequence[Policy], policy_index: Int32s
    ) -> None:
        """Open empty feeds; the policy of the i-th subscriber is `policies[policy_index[i]]`.

        If one of them cannot be opened, none is.
        """
        table, enrolled = self.tables.subscribers, list[tuple[int, Int32s]]()
        numbers, names = table.add_many(subscribers), np.array([*subscribers, None], object)[:-1]
        try:
            cohorts = np.array([self.cohort(policy) for policy in policies], np.int32)
            for cohort, indexes in grouped(cohorts[policy_index]):
                added = numbers[indexes]
                rows = self.cohorts[cohort].enrol_many(added, names[indexes].tolist())
                enrolled.append((cohort, rows))
                table.cohort[added], table.row[added] = cohort, rows
            for index, policy in enumerate(policies):
                if policy.rules and not isinstance(self.cohorts[cohorts[index]], PythonCohort):
                    self.rules.enrol(numbers[policy_index == index], policy)
        except BaseException:
            self._undo(subscribers, enrolled)
            raise

    def _undo(self, subscribers: Sequence[str], enrolled: Sequence[tuple[int, Int32s]]) -> None:
        """Close the feeds that were opened before one failed."""
        for cohort, rows in enrolled:
            for row in rows.tolist():
                self.cohorts[cohort].drop(row)
        for name in reversed(subscribers):
            self.rules.leave(self.number(name))
            self.tables.subscribers.remove(name)
        for cohort in self.cohorts.numbers():
            self.cohorts.discard(cohort)

    def drop(self, subscriber: str) -> None:
        self.rules.leave(self.number(subscriber))
        self._leave(self.tables.subscribers.number(subscriber))
        self.tables.subscribers.remove(subscriber)
        self.set_aside.pop(subscriber, None)

    def number(self, subscriber: str) -> int:
        """Return the number of a subscriber, which it keeps until it is dropped."""
        return self.tables.subscribers.number(subscriber)

    def slot(self, event: Event) -> int:
        """Return the slot of an event for matches that are offered before time advances."""
        return self.tables.events.slot(event, self._mark_slots)

    def slots(self, ids: Sequence[str], us: Int64s, sequence: Int64s) -> Int32s:
        """Return the slots of distinct events, known by id only, in order of publication."""
        return self.tables.events.slots(ids, us, sequence, self._mark_slots)

    def slots_of(self, events: Sequence[Event]) -> Int32s:
        """Return the slots of events in order of publication, for matches that are offered next."""
        ids = [event.id for event in events]
        if len(ids) == 1 or len(set(ids)) < len(ids) or not self.tables.events.isdisjoint(ids):
            return np.array([self.slot(event) for event in events], np.int32)
        us = np.array([event.published_us for event in events], np.int64)
        numbers = [UNNUMBERED if event.sequence is None else event.sequence for event in events]
        slots = self.slots(ids, us, np.array(numbers, np.int64))
        for slot, event in zip(slots.tolist(), events, strict=True):
            self.tables.events.store(slot, event)
        return slots

    def subscription(self, subscription: str) -> int:
        """Return the number of a subscription for matches that are offered next."""
        return self.tables.matched.number(subscription)

    def offer_many(self, offers: Sequence[Offer]) -> list[Delivery]:
        if not offers:
            return []
        matched = [[self.subscription(name) for name in match.matched] for match, _ in offers]
        rows = read_offers(offers, self.number, self.slot)
        groups = self._checked_groups(rows)
        handles = self._handles(Ragged.of(matched))
        batch = self._offer_groups(groups, rows, handles)
        return batch.objects() if len(batch) else []

    def offer_matches(self, offered: OfferedEvents) -> DeliveryBatch:
        """Offer matches in order of publication; return the deliveries as columns.

        Subscribers and subscriptions are numbers of these feeds.
        """
        return self.offer_prepared(self.prepare(offered))

    def prepare(self, offered: OfferedEvents) -> PreparedOffers:
        """Prepare matches that are offered next, as `offer_matches` does; no window changes.

        What may fail for an event fails here.
        """
        matches = offered.matches
        sizes = matches.starts[1:] - matches.starts[:-1]
        slots, sequences = offered.slots.repeat(sizes), offered.sequences.repeat(sizes)
        rows = OfferRows(matches.subscribers, slots, matches.ranks, sequences)
        groups = self._checked_groups(rows)
        handles = self._handles(Ragged(matches.matched_starts, matches.matched))
        return PreparedOffers(groups, rows, handles)

    def offer_prepared(self, prepared: PreparedOffers) -> DeliveryBatch:
        """Offer prepared matches."""
        return self._offer_groups(*prepared)

    def _checked_groups(self, rows: OfferRows) -> list[Group]:
        """Return the rows of each cohort, whose events have all that it needs.

        Events without a number are refused where it is needed.
        """
        groups = list(self._by_cohort(rows.subscribers))
        for number, indexes in groups:
            cohort, slots = self.cohorts[number], rows.slots[indexes]
            self._check_numbered(cohort, slots)
            if isinstance(cohort, DiverseCohort):
                cohort.prepare(self.tables.subscribers.row[rows.subscribers[indexes]], slots)
        return groups

    def _handles(self, sets: Ragged) -> Int32s:
        """Return handles of sets of matched subscriptions."""
        matched = self.tables.matched
        if matched.crowded:
            handles = [cohort.handles() for cohort in self.cohorts.arrays()]
            in_use = (
                matched.members(column).values for column in (*handles, *self.rules.handles())
            )
            matched.free_unused([sets.values, *in_use])
        return matched.handles(sets, self.copy_sets)

    def _offer_groups(
        self, groups: Sequence[Group], rows: OfferRows, handles: Int32s
    ) -> DeliveryBatch:
        self.tables.events.offered(rows.slots)
        parts = list[CohortDeliveries]()
        for cohort, indexes in groups:
            chosen = self._offer(cohort, indexes, rows, handles)
            if self.rules:
                parts += self._after_rules(chosen, indexes, rows)
            elif len(chosen.rank):
                parts.append(chosen)
        return DeliveryBatch(parts, self.tables) if parts else self._nothing

    def _after_rules(
        self, chosen: CohortDeliveries, indexes: Int64s | slice, rows: OfferRows
    ) -> list[CohortDeliveries]:
        """Return what passes the rules behind the windows of a cohort."""
        offers = CohortOffers(rows.subscribers, rows.slots, indexes, self.tables.events.us)
        parts, failed = self.rules.after_offers(chosen, offers)
        self._put_subscribers_aside(failed)
        return parts

    def advance(self, now: Moment) -> list[Delivery]:
        parts = self._due(now)
        return DeliveryBatch(parts, self.tables).objects() if parts else []

    def advance_columns(self, now: Moment) -> DeliveryBatch:
        """Move the clock to `now`; return deliveries as columns."""
        parts = self._due(now)
        return DeliveryBatch(parts, self.tables) if parts else self._nothing

    def next_deadlines(self) -> Moment:
        """Return the first time, and the first sequence, at which something may become due.

        If feeds are objects that wait for an end, that is not known, and both are in the past.
        """
        if any(cohort.timed for cohort in self.cohorts.objects()):
            return Moment(-FAR, -FAR)
        first = [self._deadlines[axis].first for axis in (TIME, PUBLISHED)]
        time, sequence = (FAR if end is None else end for end in first)
        held = self.rules.deadlines.first
        return Moment(time if held is None else min(time, held), sequence)

    def quiet_until(self, start: Moment) -> Moment:
        """Return the first time and sequence at which `advance` may change or deliver something.

        Whatever is offered from `start` on, nothing is due before: ends are aligned, so that a
        window or a rule never waits for one before the end that follows `start`.
        """
        until = self.next_deadlines()
        until = until._replace(us=min(until.us, self.rules.quiet_until(start.us)))
        for cohort in self.cohorts.arrays():
            if cohort.step_axis == TIME:
                end = first_end(cohort.calendar, cohort.codes, start.us)
                until = until._replace(us=min(until.us, end))
            elif cohort.step_axis == PUBLISHED:
                end = first_end(cohort.calendar, cohort.codes, start.sequence - 1)
                until = until._replace(sequence=min(until.sequence, end))
        return until

    def _due(self, now: Moment) -> list[CohortDeliveries]:
        self.tables.events.all_offered()
        parts = list[CohortDeliveries]()
        for axis, bound in ((TIME, now.us), (PUBLISHED, now.sequence)):
            if self._deadlines[axis]:
                due = self._deadlines[axis].pop_due(bound).items()
                parts += [self._advance(cohort, rows, now) for cohort, rows in due]
        for number in self.cohorts.numbers_of_objects():
            parts.append(self._advance_objects(number, now))
        if self.rules:
            parts, failed = self.rules.after_advance(parts, now.us)
            self._put_subscribers_aside(failed)
        return parts

    def current(self, subscriber: str, now: Moment) -> list[Delivery]:
        subscribers = self.tables.subscribers
        number = subscribers.number(subscriber)
        if subscriber in self.set_aside:
            return []
        cohort, row = int(subscribers.cohort[number]), int(subscribers.row[number])
        try:
            return self._current(self.cohorts[cohort], number, row, now)
        except (MemoryError, TidingsError) as error:
            self._put_aside(cohort, {row: described(error)})
            return []
        finally:
            self._put_failed_aside(cohort)

    def _current(self, cohort: AnyCohort, number: int, row: int, now: Moment) -> list[Delivery]:
        if isinstance(cohort, PythonCohort):
            return cohort.current(row, now)
        if isinstance(cohort, DiverseCohort):
            current = current_diverse(cohort, row, now)
        else:
            current = current_ranked(cohort, row, now)
        start, stop, width, decided = map(int, current.extent)  # numbers of numpy without the JIT
        columns = (current.slot.tolist(), current.handle.tolist(), current.rank.tolist())
        return [
            self.tables.delivery(
                number,
                cohort.policy.window.name,
                [0, row, slot, handle, position, start, stop, width, 0, decided],
                rank,
            )
            for position, (slot, handle, rank) in enumerate(zip(*columns, strict=True), start=1)
        ]

    def snapshot(self) -> bytes:
        return self._dump(self.tables.subscribers.in_order())

    def snapshot_of(self, subscribers: Collection[str]) -> bytes:
        """Return the state of some subscribers; the cost depends on them, not on all."""
        table = self.tables.subscribers
        numbers = np.array([table.number(name) for name in subscribers], np.int64)
        return self._dump(numbers[np.argsort(table.order[numbers])])

    def _dump(self, numbers: Int64s) -> bytes:
        state = dump(self.name, self, numbers)
        for cohort in self.cohorts.numbers():
            self._put_failed_aside(cohort)
        return state

    def restore(self, state: bytes, policy: PolicyOf = lambda _: None) -> None:
        """Restore a snapshot; `policy` returns the policy of a subscriber if it has no JSON form.

        All events are read, so that a damaged one is found here; `restore_many` reads the events
        of a window when it is used, and passes content on as it is.
        """
        restored = TableFeeds()
        load(self.name, restored, [state], policy)
        for form in restored.tables.events.forms:
            if form:
                read_form(form)
        for content in restored.tables.events.contents.values():
            check_content(content)
        vars(self).update(vars(restored))

    def restore_many(self, states: Sequence[bytes], policy: PolicyOf = lambda _: None) -> None:
        """Restore snapshots of different subscribers, as if they had always been together."""
        restored = TableFeeds()
        load(self.name, restored, states, policy)
        vars(self).update(vars(restored))

    def cohort(self, policy: Policy) -> int:
        """Return the number of the cohort of a policy, which is created if there is none."""
        return self.cohorts.number(policy)

    def schedule(self, number: int, ends: Int64s) -> None:
        """Schedule (row, end) of a cohort, unless only matches can end its periods."""
        cohort = self.cohorts[number]
        if isinstance(cohort, PythonCohort) or not len(ends):
            return
        if cohort.step_axis in self._deadlines:
            self._deadlines[cohort.step_axis].add(number, ends)

    def _leave(self, number: int) -> None:
        subscribers = self.tables.subscribers
        cohort = int(subscribers.cohort[number])
        if self.cohorts.leave(cohort, int(subscribers.row[number])):
            for deadlines in self._deadlines.values():
                deadlines.forget(cohort)

    def _by_cohort(self, subscribers: Int32s) -> Iterator[Group]:
        """Yield the indexes of the matches of each cohort, in their order."""
        cohorts = self.tables.subscribers.cohort[subscribers]
        served = None
        if self.set_aside:
            served = ~np.isin(subscribers, [self.number(name) for name in self.set_aside])
        for group in grouped(cohorts):
            if group.number < 0:
                raise InvalidSubscription("a match is for a subscriber that is no longer enrolled")
            if served is None:
                yield group
                continue
            rows = np.arange(len(cohorts))[group.indexes]
            if served[rows].any():
                yield Group(group.number, rows[served[rows]])

    def _check_numbered(self, cohort: AnyCohort, slots: Int32s) -> None:
        if not cohort.counts_published:
            return
        unnumbered = self.tables.events.sequence[slots] == UNNUMBERED
        if unnumbered.any():
            name = self.tables.events.id(int(slots[unnumbered][0]))
            raise InvalidEvent(f'event {name} has no sequence, which count="published" needs')

    def _offer(
        self, number: int, indexes: Int64s | slice, rows: OfferRows, handles: Int32s
    ) -> CohortDeliveries:
        cohort = self.cohorts[number]
        if isinstance(cohort, PythonCohort):
            ordered = list(self._offer_objects(cohort, indexes, rows, handles))
            self._put_failed_aside(number)
            return object_deliveries(ordered)
        cohort_offers = Offers(
            self.tables.subscribers.row[rows.subscribers[indexes]],
            rows.slots[indexes],
            rows.ranks[indexes],
            handles[indexes],
            rows.sequences[indexes],
        )
        try:
            output = cohort.offer(cohort_offers)
        except MemoryError as error:
            return self._all_failed(number, cohort_offers.row, error)
        self.schedule(number, output.ends)
        self._put_aside(number, output.failed)
        if not isinstance(indexes, slice):
            orders = output.rows.columns[:, ORDER]
            orders[:] = indexes[orders]
        return output.deliveries(cohort.subscriber, cohort.policy.window.name)

    def _offer_objects(
        self,
        cohort: PythonCohort,
        indexes: Int64s | slice,
        rows: OfferRows,
        handles: Int32s,
    ) -> Iterator[tuple[int, Delivery]]:
        tables = self.tables
        for index in np.arange(len(handles))[indexes].tolist():
            number = int(rows.subscribers[index])
            event = tables.events.whole_event(int(rows.slots[index]))
            if number in cohort.failed:
                continue
            matched, rank = tables.matched.ids(int(handles[index])), rows.ranks[index]
            match = Match(tables.subscribers.names[number], event, float(rank), matched)
            now = Moment(event.published_us, int(rows.sequences[index]))
            for delivery in cohort.offer(number, match, now):
                yield index, delivery

    def _advance(self, number: int, rows: Int64s, now: Moment) -> CohortDeliveries:
        cohort, narrow_rows = self.cohorts[number], rows.astype(np.int32)
        assert not isinstance(cohort, PythonCohort)
        try:
            output = cohort.advance(narrow_rows, now)
        except MemoryError as error:
            return self._all_failed(number, narrow_rows, error)
        self.schedule(number, output.ends)
        self._put_aside(number, output.failed)
        deliveries = output.deliveries(cohort.subscriber, cohort.policy.window.name)
        deliveries.columns[:, ORDER] = self.tables.subscribers.order[deliveries.subscriber]
        return deliveries

    def _advance_objects(self, number: int, now: Moment) -> CohortDeliveries:
        order, cohort = self.tables.subscribers.order, self.cohorts[number]
        assert isinstance(cohort, PythonCohort)
        due = [
            (int(order[row]), delivery)
            for row, deliveries in cohort.advance(now)
            for delivery in deliveries
        ]
        self._put_failed_aside(number)
        return object_deliveries(due)

    def _all_failed(self, cohort: int, rows: Int32s, error: MemoryError) -> CohortDeliveries:
        """Set all rows of a call aside, because it is not known how far the call came."""
        self._put_aside(cohort, dict.fromkeys(np.unique(rows).tolist(), described(error)))
        return object_deliveries([])

    def _put_failed_aside(self, number: int) -> None:
        """Set the feeds of a cohort of objects aside that have failed."""
        cohort = self.cohorts[number]
        if isinstance(cohort, PythonCohort) and cohort.failed:
            self._put_aside(number, cohort.failed)
            cohort.failed = {}

    def _put_aside(self, number: int, failed: Mapping[int, str]) -> None:
        """Set rows of a cohort aside: their windows are emptied, and they get no more matches."""
        cohort = self.cohorts[number]
        for row, reason in failed.items():
            cohort.reset(row)
            subscriber = row if isinstance(cohort, PythonCohort) else int(cohort.subscriber[row])
            self.rules.reset(subscriber)
            report_set_aside(self.set_aside, self.tables.subscribers.names[subscriber], reason)

    def _put_subscribers_aside(self, failed: Mapping[int, str]) -> None:
        """Set subscribers aside whose rules have failed."""
        subscribers = self.tables.subscribers
        for number, reason in failed.items():
            self._put_aside(int(subscribers.cohort[number]), {int(subscribers.row[number]): reason})

    def _mark_slots(self, alive: Int32s) -> None:
        for cohort in self.cohorts.arrays():
            cohort.mark_slots(alive)
        self.rules.mark_slots(alive)

    def copy_sets(self, old: Int32s, new: Int32s, used: int) -> int:
        """Copy the sets of matched subscriptions in use; return how much of `new` is used."""
        for cohort in self.cohorts.arrays():
            used = cohort.copy_sets(old, new, used)
        return self.rules.copy_sets(old, new, used)
