"""The feeds of all subscribers in arrays: for millions of them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from tidings.compiled.array_types import Int32s, Int64s
from tidings.errors import InvalidEvent, InvalidSubscription, TidingsError, described
from tidings.feed.columnar.cohort_registry import AnyCohort, Cohorts
from tidings.feed.columnar.deadlines import Ends
from tidings.feed.columnar.delivery_batch import Deliveries, Names, Part, made_already
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.event_table import UNNUMBERED, EventTable, read_form
from tidings.feed.columnar.kernels import layout as at
from tidings.feed.columnar.kernels.diverse_layout import FAR
from tidings.feed.columnar.match_batch import OfferColumns, read_offers
from tidings.feed.columnar.matched_sets import MatchedSets
from tidings.feed.columnar.peek import current, current_diverse
from tidings.feed.columnar.python_cohort import ObjectCohort
from tidings.feed.columnar.ranked_cohort import Cohort
from tidings.feed.columnar.snapshot import PolicyOf, dump, load
from tidings.feed.columnar.subscriber_table import Subscribers
from tidings.feed.failures import note
from tidings.feed.policy_key import counts_published
from tidings.feed.protocol import Offer
from tidings.model.records import Delivery, Event, Match
from tidings.policy import Policy, Subscriber
from tidings.rank.matches import Matches
from tidings.window import Moment


class TableFeeds:
    """Cohorts of subscribers with equal policies, each in one set of arrays.

    What comes costs what its matches cost: subscribers without any are not touched.
    """

    name: ClassVar[str] = "table"

    def __init__(self) -> None:
        self.names = Names(Subscribers(), EventTable(), MatchedSets())
        self.cohorts = Cohorts()
        self.set_aside: dict[str, str] = {}
        self._ends = {at.TIME: Ends(), at.PUBLISHED: Ends()}

    def __contains__(self, subscriber: str) -> bool:
        return subscriber in self.names.subscribers

    def __len__(self) -> int:
        return len(self.names.subscribers)

    def enrol(self, subscriber: Subscriber) -> None:
        people, name = self.names.subscribers, subscriber.id
        index = self.cohort(subscriber.policy)
        if name in people:
            self._move(people.number(name), index, name)
        else:
            self._add(index, name)
        self.set_aside.pop(name, None)

    def _add(self, index: int, name: str) -> None:
        """Seat a new subscriber in a cohort, or change nothing."""
        people = self.names.subscribers
        try:
            number = people.add(name)
            people.seat(number, index, self.cohorts[index].enrol(number, name))
        except BaseException:
            if name in people:
                people.remove(name)
            self.cohorts.discard(index)
            raise

    def _move(self, number: int, index: int, name: str) -> None:
        """Give a subscriber an empty window in a cohort in place of its own, or change nothing."""
        people = self.names.subscribers
        if people.cohort[number] == index:
            self.cohorts[index].reset(int(people.row[number]))
            return
        try:
            row = self.cohorts[index].enrol(number, name)
        except BaseException:
            self.cohorts.discard(index)
            raise
        self._leave(number)
        people.seat(number, index, row)

    def enrol_many(
        self, subscribers: Sequence[str], policies: Sequence[Policy], seats: Int32s
    ) -> None:
        """Open empty feeds of new subscribers; `policies[seats[i]]` is the policy of the i-th.

        If one of them cannot be opened, none is.
        """
        people, done = self.names.subscribers, list[tuple[int, Int32s]]()
        numbers, names = people.add_many(subscribers), np.array([*subscribers, None], object)
        try:
            cohorts = np.array([self.cohort(policy) for policy in policies], np.int32)
            for index, mine in _grouped(cohorts[seats]):
                rows = self.cohorts[index].enrol_many(numbers[mine], names[mine].tolist())
                done.append((index, rows))
                people.cohort[numbers[mine]], people.row[numbers[mine]] = index, rows
        except BaseException:
            self._take_back(subscribers, done)
            raise

    def _take_back(self, subscribers: Sequence[str], done: Sequence[tuple[int, Int32s]]) -> None:
        """Undo what was done of opening feeds."""
        for index, rows in done:
            for row in rows.tolist():
                self.cohorts[index].drop(row)
        for name in reversed(subscribers):
            self.names.subscribers.remove(name)
        for index in self.cohorts.numbers():
            self.cohorts.discard(index)

    def drop(self, subscriber: str) -> None:
        self._leave(self.names.subscribers.number(subscriber))
        self.names.subscribers.remove(subscriber)
        self.set_aside.pop(subscriber, None)

    def number(self, subscriber: str) -> int:
        """Return the number of a subscriber, which it keeps until it is dropped."""
        return self.names.subscribers.number(subscriber)

    def slot(self, event: Event) -> int:
        """Give the slot of an event, for matches that are offered before time goes on."""
        return self.names.events.slot(event, self._mark)

    def slots(self, ids: Sequence[str], us: Int64s, sequence: Int64s) -> Int32s:
        """Give the slots of different events in order of publication, of which no more is known."""
        return self.names.events.slots(ids, us, sequence, self._mark)

    def subscription(self, subscription: str) -> int:
        """Give the number of a subscription, for matches that are offered next."""
        return self.names.matched.number(subscription)

    def offer_many(self, offers: Sequence[Offer]) -> list[Delivery]:
        read = read_offers(offers, self.number, self.slot, self.subscription)
        return self.offer_matches(*read).objects() if offers else []

    def offer_matches(self, matches: Matches, slots: Int32s, sequences: Int64s) -> Deliveries:
        """Offer matches in order of publication, and return the deliveries as columns.

        Subscribers and subscriptions are numbers of these feeds. `slots` and `sequences` have one
        value per event: its slot, and the number of publications so far.
        """
        sizes = np.diff(matches.starts)
        slots = np.repeat(slots, sizes)
        groups = list(self._by_cohort(matches.subscribers))
        for index, where in groups:
            self._check_numbered(self.cohorts[index], slots[where])
        matched = self.names.matched
        if matched.crowded:
            every = (each.handles() for each in self.cohorts.arrays())
            matched.keep([matches.matched, *(matched.flat(each)[1] for each in every)])
        handles = matched.handles(matches.matched_starts, matches.matched, self.copy_sets)
        self.names.events.young[slots] = False
        columns = OfferColumns(
            matches.subscribers, slots, matches.ranks, handles, np.repeat(sequences, sizes)
        )
        found = [self._offer(index, where, columns) for index, where in groups]
        return Deliveries(found, self.names)

    def advance(self, now: Moment) -> list[Delivery]:
        parts = self._due(now)
        return Deliveries(parts, self.names).objects() if parts else []

    def advance_rows(self, now: Moment) -> Deliveries:
        """Say that the stream has come to `now`, and give deliveries as arrays."""
        return Deliveries(self._due(now), self.names)

    def first_ends(self) -> Moment:
        """Give the first time, and the first number, that may bring something about.

        There is no telling if some feeds are objects that wait for an end: then it is the past.
        """
        if any(cohort.timed for cohort in self.cohorts.objects()):
            return Moment(-FAR, -FAR)
        ends = (self._ends[axis].first for axis in (at.TIME, at.PUBLISHED))
        return Moment(*(FAR if end is None else end for end in ends))

    def _due(self, now: Moment) -> list[Part]:
        self.names.events.young[:] = False
        parts = [
            self._advance(index, numbers, now)
            for axis, bound in ((at.TIME, now.us), (at.PUBLISHED, now.sequence))
            for index, numbers in self._ends[axis].due(bound).items()
        ]
        return parts + [
            self._advance_objects(index, now)
            for index in self.cohorts.numbers()
            if isinstance(self.cohorts[index], ObjectCohort)
        ]

    def current(self, subscriber: str, now: Moment) -> list[Delivery]:
        people = self.names.subscribers
        number = people.number(subscriber)
        if subscriber in self.set_aside:
            return []
        index, row = int(people.cohort[number]), int(people.row[number])
        cohort = self.cohorts[index]
        try:
            if isinstance(cohort, ObjectCohort):
                return cohort.current(row, now)
            if isinstance(cohort, DiverseCohort):
                return self._current_diverse(cohort, row, now)
            return self._current(cohort, row, now)
        except (MemoryError, TidingsError) as error:
            self._put_aside(index, {row: described(error)})
            return []
        finally:
            self._put_failed_aside(index)

    def _current(self, cohort: Cohort, row: int, now: Moment) -> list[Delivery]:
        number, events = int(cohort.numbers[row]), self.names.events
        chosen, extent = current(cohort, events, row, now)
        found = []
        for position, place in enumerate(chosen.tolist(), start=1):
            slot, handle, _ = cohort.who[place].tolist()
            score, us = float(cohort.score[place]), int(events.us[slot])
            columns = [0, row, slot, handle, position, *extent, 0, now.us]
            rank = cohort.policy.decay.fresh(score, us, now.us)
            kind = cohort.policy.window.name
            found.append(self.names.delivery(number, kind, columns, rank))
        return found

    def _current_diverse(self, cohort: DiverseCohort, row: int, now: Moment) -> list[Delivery]:
        choice, extent = current_diverse(cohort, self.names.events, row, now)
        number, kind, found = int(cohort.numbers[row]), cohort.policy.window.name, []
        pairs = zip(choice.places.tolist(), choice.ranks.tolist(), strict=True)
        for position, (place, rank) in enumerate(pairs, start=1):
            slot, handle = (int(cohort.window(row, column)[place]) for column in range(2))
            columns = [0, row, slot, handle, position, *extent[:3], 0, extent.when]
            found.append(self.names.delivery(number, kind, columns, rank))
        return found

    def snapshot(self) -> bytes:
        return self._dumped(self.names.subscribers.in_order())

    def snapshot_of(self, subscribers: Collection[str]) -> bytes:
        """Give the state of some subscribers; it costs them and what cohorts share, not all."""
        people = self.names.subscribers
        mine = np.array([people.number(each) for each in subscribers], np.int64)
        return self._dumped(mine[np.argsort(people.order[mine])])

    def _dumped(self, numbers: Int64s) -> bytes:
        state = dump(self.name, self, numbers)
        for index in self.cohorts.numbers():
            self._put_failed_aside(index)
        return state

    def restore(self, state: bytes, policy: PolicyOf = lambda _: None) -> None:
        """Go on from a snapshot; a policy without a form has to be given, by its subscriber.

        All events are read, so that a damaged one is noticed here; `restore_many` reads those of a
        window when it is touched.
        """
        fresh = TableFeeds()
        load(self.name, fresh, [state], policy)
        for form in fresh.names.events.forms:
            if form:
                read_form(form)
        vars(self).update(vars(fresh))

    def restore_many(self, states: Sequence[bytes], policy: PolicyOf = lambda _: None) -> None:
        """Go on from snapshots of different subscribers, as if they had always been together."""
        fresh = TableFeeds()
        load(self.name, fresh, states, policy)
        vars(self).update(vars(fresh))

    def cohort(self, policy: Policy) -> int:
        """Give the number of the cohort with this policy; it is made where there is none."""
        return self.cohorts.number(policy)

    def note_ends(self, index: int, ends: Int64s) -> None:
        """Note ends that rows of a cohort wait for, if time or publications bring them about."""
        cohort = self.cohorts[index]
        if isinstance(cohort, ObjectCohort) or not len(ends):
            return
        if cohort.waits_for in self._ends:
            self._ends[cohort.waits_for].add(index, ends)

    def _leave(self, number: int) -> None:
        people = self.names.subscribers
        cohort = int(people.cohort[number])
        if self.cohorts.leave(cohort, int(people.row[number])):
            for ends in self._ends.values():
                ends.forget(cohort)

    def _by_cohort(self, subscribers: Int32s) -> Iterator[tuple[int, Int64s]]:
        """Give the places of the matches of each cohort, in their order."""
        indexes = self.names.subscribers.cohort[subscribers]
        if len(indexes) and indexes.min() < 0:
            raise InvalidSubscription("a match is for a subscriber that is not there any more")
        if not self.set_aside:
            yield from _grouped(indexes)
            return
        aside = [self.number(each) for each in self.set_aside]
        served = ~np.isin(subscribers, aside)
        for index, where in _grouped(indexes):
            if served[where].any():
                yield index, where[served[where]]

    def _check_numbered(self, cohort: AnyCohort, slots: Int32s) -> None:
        bare = self.names.events.sequence[slots] == UNNUMBERED
        if counts_published(cohort.policy) and bare.any():
            name = self.names.events.id(int(slots[bare][0]))
            raise InvalidEvent(f'event {name} has no sequence, which count="published" needs')

    def _offer(self, index: int, where: Int64s, offers: OfferColumns) -> Part:
        cohort, people = self.cohorts[index], self.names.subscribers
        if isinstance(cohort, ObjectCohort):
            part = made_already(list(self._offer_objects(cohort, where, offers)))
            self._put_failed_aside(index)
            return part
        seats = people.row[offers.subscribers[where]]
        columns = (column[where] for column in offers[1:])
        try:
            found = cohort.offer(self.names.events, (seats, *columns))
        except MemoryError as error:
            return self._all_failed(index, seats, error)
        self.note_ends(index, found.ends)
        self._put_aside(index, found.failed)
        found.columns[:, at.AT] = where[found.columns[:, at.AT]]
        return cohort.part(found)

    def _offer_objects(
        self, cohort: ObjectCohort, where: Int64s, offers: OfferColumns
    ) -> Iterator[tuple[int, Delivery]]:
        names = self.names
        for place in where.tolist():
            number = int(offers.subscribers[place])
            event = names.events.event(offers.slots[place])
            matched = names.matched.ids(int(offers.handles[place]))
            score = float(offers.ranks[place])
            if number in cohort.failed:
                continue
            match = Match(names.subscribers.names[number], event, score, matched)
            now = Moment(event.published_us, int(offers.sequences[place]))
            for delivery in cohort.offer(number, match, now):
                yield place, delivery

    def _advance(self, index: int, rows: Int64s, now: Moment) -> Part:
        cohort = self.cohorts[index]
        assert not isinstance(cohort, ObjectCohort)
        seats = rows.astype(np.int32)
        try:
            found = cohort.advance(self.names.events, seats, now.us, now.sequence)
        except MemoryError as error:
            return self._all_failed(index, seats, error)
        self.note_ends(index, found.ends)
        self._put_aside(index, found.failed)
        part = cohort.part(found)
        part.columns[:, at.AT] = self.names.subscribers.order[part.subscriber]
        return part

    def _advance_objects(self, index: int, now: Moment) -> Part:
        order, cohort = self.names.subscribers.order, self.cohorts[index]
        assert isinstance(cohort, ObjectCohort)
        due = [(int(order[n]), each) for n, due in cohort.advance(now) for each in due]
        self._put_failed_aside(index)
        return made_already(due)

    def _all_failed(self, index: int, rows: Int32s, error: MemoryError) -> Part:
        """Set all rows aside that a call was about, of which nobody knows how far it came."""
        self._put_aside(index, dict.fromkeys(np.unique(rows).tolist(), described(error)))
        return made_already([])

    def _put_failed_aside(self, index: int) -> None:
        """Set those aside whose objects have failed."""
        cohort = self.cohorts[index]
        if isinstance(cohort, ObjectCohort) and cohort.failed:
            self._put_aside(index, cohort.failed)
            cohort.failed = {}

    def _put_aside(self, index: int, failed: Mapping[int, str]) -> None:
        """Set rows of a cohort aside: their windows are empty, and no match reaches them."""
        cohort = self.cohorts[index]
        for row, why in failed.items():
            cohort.reset(row)
            number = row if isinstance(cohort, ObjectCohort) else int(cohort.numbers[row])
            note(self.set_aside, self.names.subscribers.names[number], why)

    def _mark(self, alive: Int32s) -> None:
        for cohort in self.cohorts.arrays():
            cohort.mark(alive)

    def copy_sets(self, old: Int32s, new: Int32s, used: int) -> int:
        """Copy the sets of matched subscriptions that windows still refer to."""
        for cohort in self.cohorts.arrays():
            used = cohort.copy_sets(old, new, used)
        return used


def _grouped(cohorts: Int32s) -> Iterator[tuple[int, Int64s]]:
    """Give the places of each cohort, in their order; O(n log n) for all of them."""
    if len(cohorts) and (cohorts == cohorts[0]).all():
        yield int(cohorts[0]), np.arange(len(cohorts))
        return
    order = np.argsort(cohorts, kind="stable")
    edges = np.flatnonzero(np.diff(cohorts[order], prepend=-1))
    for where in np.split(order, edges[1:]):
        if len(where):
            yield int(cohorts[where[0]]), where
