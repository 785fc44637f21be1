"""The feeds of a bucket of subscribers: the state stage, without Spark.

A bucket takes all matches of a micro-batch at once, in columns, and keeps everything in one blob,
since state by subscriber costs many times more. What it delivers depends on the sequence of
publications only, never on where a batch ends.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tidings.compiled.array_types import Int64s
from tidings.errors import StateError, shown
from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.columnar.kernels.layout import FAR
from tidings.feed.columnar.match_batch import OfferedEvents
from tidings.feed.policy_key import needs_attributes
from tidings.formats.binary import Frame, check, reading
from tidings.index_files.subscriber_bundle import fingerprint
from tidings.policy import Policy, Subscriber
from tidings.spark.match_stage.match_batch import Parcel
from tidings.spark.match_stage.match_batch_ops import (
    empty,
    in_order,
    merge,
    of_matches,
    of_subscribers,
    repeats,
    select,
    without_events,
)
from tidings.spark.state_stage import outcomes
from tidings.spark.state_stage.clock_marks import Tick, Ticks
from tidings.spark.state_stage.id_memory import Seen, hashed
from tidings.spark.state_stage.policies import Roster, roster
from tidings.spark.state_stage.progress_mark import Pulse
from tidings.window import Moment, snapshot_fields

FRAME: Final = Frame(b"tidings-bucket", 3, "the state of a bucket")
_VERSIONS: Final = 1 << 128
"""Versions of rosters are below: a mark of 64 bits, and the version of a source."""
WEEK_US: Final = 7 * 86_400_000_000


class Terms(NamedTuple):
    """What holds for all buckets: how late events may come, how long ids are remembered."""

    lateness_us: int = 0
    remember_us: int = WEEK_US
    buckets: int = 1


class Aside(NamedTuple):
    """A subscriber who gets nothing more, since its own policy failed: which policy, and why."""

    policy: int
    reason: str


class Bucket:
    """The feeds of some subscribers, opened when they get their first match.

    Who is in `aside` gets no matches until its policy is another one.
    """

    def __init__(
        self, people: Roster | Mapping[str, Subscriber], terms: Terms | None = None
    ) -> None:
        self._roster, self._terms = roster(people), terms or Terms()
        self.feeds = TableFeeds()
        self.seen = Seen(self._terms.remember_us)
        self.waiting = empty()
        self.watermark_us: int | None = None
        self.ticks = Ticks()
        self.aside: dict[str, Aside] = {}

    def run(
        self, parcels: Sequence[Parcel], ticks: Sequence[Tick], letters: Sequence[str | bytes] = ()
    ) -> pa.Table:
        """Take all of one micro-batch, in whatever order; give its outcomes.

        These are deliveries, dead records, and an account of each subscriber's matches.
        """
        new = merge(parcels)
        new, refused = self._checked(select(new, in_order(new)))
        self.ticks.add(ticks)
        self._come_to([*new.us[-1:].tolist(), *(tick.us for tick in ticks)])
        taken = self._present(self._released(new))
        found = [outcomes.dead(letters), *refused, *self._offered(taken)]
        found.append(
            outcomes.accounts(taken.subscribers, taken.matches.subscribers, taken.matches.ranks)
        )
        if failed := dict(self.feeds.set_aside):
            found.append(self.set_aside(failed))
        if self.watermark_us is not None:
            self.seen.forget(self.watermark_us)
        return pa.concat_tables(found)

    def _checked(self, parcel: Parcel) -> tuple[Parcel, list[pa.Table]]:
        """Split off events that came before; leave out those that come too late (`late.py`)."""
        hashes, here = hashed(parcel.events), self.feeds.tables.events
        again = self.seen.known(hashes) | repeats(parcel)
        again |= np.fromiter((each in here for each in parcel.events), np.bool_, len(again))
        new, refused = parcel, list[pa.Table]()
        if again.any():
            refused.append(outcomes.repeated(select(parcel, again.nonzero()[0])))
            new = select(parcel, (~again).nonzero()[0])
        self.seen.add(hashes[~again], new.us)
        old = new.us < (self.watermark_us if self.watermark_us is not None else -FAR)
        return (select(new, (~old).nonzero()[0]) if old.any() else new), refused

    def _come_to(self, times: Sequence[int]) -> None:
        marks = [us - self._terms.lateness_us for us in times]
        if self.watermark_us is not None:
            marks.append(self.watermark_us)
        self.watermark_us = max(marks, default=None)

    def _released(self, new: Parcel) -> Parcel:
        """Give what the watermark has reached, in order of publication; the rest waits."""
        both = merge([self.waiting, new]) if self.waiting.events else new
        order = in_order(both) if self.waiting.events else np.arange(len(both.us))
        reached = both.us[order] <= (self.watermark_us or 0)
        if reached.all() and both is new:
            return new
        self.waiting = select(both, order[~reached])
        return select(both, order[reached])

    def _present(self, parcel: Parcel) -> Parcel:
        """Enrol who gets a first match; leave out the matches of those who are gone."""
        unknown = [name for name in parcel.subscribers if name not in self.feeds]
        found = {name: self.policy(name) for name in unknown}
        enrol(self.feeds, {name: policy for name, policy in found.items() if policy is not None})
        if None not in found.values():
            return parcel
        there = [name in self.feeds for name in parcel.subscribers]
        return of_subscribers(parcel, np.array(there, np.bool_))

    def policy(self, name: str) -> Policy | None:
        """Return the policy of a subscriber; None if it is gone, or set aside with this policy."""
        policy = self._roster.policy(name)
        if policy is None or name not in self.aside:
            return policy
        if self.aside[name].policy == _mark(name, policy):
            return None
        del self.aside[name]
        return policy

    def set_aside(self, reasons: Mapping[str, str]) -> pa.Table:
        """Close the feeds of subscribers whose policies failed; return a letter for each."""
        for name, reason in reasons.items():
            if name in self.feeds:
                self.feeds.drop(name)
            if policy := self._roster.policy(name):
                self.aside[name] = Aside(_mark(name, policy), reason)
        there = [name not in reasons for name in self.waiting.subscribers]
        if not all(there):
            self.waiting = of_subscribers(self.waiting, np.array(there, np.bool_))
        return outcomes.set_aside(reasons)

    def keep_only(self, names: AbstractSet[str]) -> None:
        """Forget everybody else, for a trial."""
        for name in [each for each in self.feeds.tables.subscribers.names if each not in names]:
            if name in self.feeds:
                self.feeds.drop(name)
        there = np.array([name in names for name in self.waiting.subscribers], np.bool_)
        self.waiting = of_subscribers(self.waiting, there)

    def drop_events(self, events: AbstractSet[str]) -> None:
        """Forget events that wait."""
        self.waiting = without_events(self.waiting, events)

    def _offered(self, parcel: Parcel) -> list[pa.Table]:
        """Take matches in order through the feeds, and let time pass; give deliveries."""
        feeds, found = self.feeds, list[pa.Table]()
        numbers = self.ticks.numbers(parcel.us, parcel.sequence)
        if len(parcel.events):
            found.append(
                outcomes.delivered(
                    feeds.offer_matches(*self._renumbered(parcel, numbers)), feeds.tables
                )
            )
        if self.watermark_us is not None:
            self.ticks.pass_until(self.watermark_us, int(numbers[-1]) if len(numbers) else 0)
            now = Moment(self.watermark_us, self.ticks.sequence)
            found.append(outcomes.delivered(feeds.advance_columns(now), feeds.tables))
        return found

    def _renumbered(self, parcel: Parcel, sequences: Int64s) -> OfferedEvents:
        """Return the matches in the numbering of the feeds."""
        feeds, matches = self.feeds, parcel.matches
        slots = feeds.slots(parcel.events, parcel.us, parcel.sequence)
        for slot, form in zip(slots.tolist(), parcel.forms, strict=True):
            if form:
                feeds.tables.events.describe(slot, form)
        people = np.array([feeds.number(name) for name in parcel.subscribers], np.int32)
        subscriptions = feeds.tables.matched.number_many(parcel.subscriptions)
        matches = matches._replace(
            subscribers=people[matches.subscribers], matched=subscriptions[matches.matched]
        )
        return OfferedEvents(matches, slots, sequences)

    @property
    def pulse(self) -> Pulse:
        """How far the bucket has come, and what is due next."""
        now = Pulse(self.watermark_us, self.ticks.sequence, tuple(self.ticks.held))
        return now.next_due(self.feeds.next_deadlines(), self.waiting.us[:1].tolist())

    def pack(self) -> bytes:
        """Give the whole state as bytes, but for the pulse."""
        header: dict[str, Any] = {"buckets": self._terms.buckets, "roster": self._roster.version}
        if self.aside:
            header["aside"] = dict(sorted(self.aside.items()))
        return packed(header, self.feeds, self.waiting, self.seen.columns())

    def unpack(self, blob: bytes, pulse: Pulse) -> None:
        """Go on from packed bytes; those of another version or number of buckets are refused."""
        header, columns = opened(blob)
        if header["buckets"] != self._terms.buckets:
            raise StateError(
                f"the checkpoint was begun with {header['buckets']} buckets, and this is "
                f"{self._terms.buckets}; take it over with tidings.spark.rebucket"
            )
        self.feeds.restore_many([columns["feeds"]], self._roster.policy)
        self.waiting = Parcel.unpack(columns["waiting"])
        self.seen.restore(columns)
        self.aside = {name: Aside(*each) for name, each in header.get("aside", {}).items()}
        self.watermark_us = pulse.watermark_us
        self.ticks = Ticks(pulse.ticks, pulse.sequence)
        if header["roster"] != self._roster.version:
            self._renew(header["roster"])

    def _renew(self, since: int | None) -> None:
        """Drop who is gone; who has another policy begins anew, with an empty window.

        It costs those who changed since that version, or everybody where that is not known.
        """
        changed = None if since is None else self._roster.changed_since(since)
        people = self.feeds.tables.subscribers
        known = {*people.names} if changed is None else changed
        numbers = np.array([people.number(name) for name in known if name in people], np.int64)
        for number in numbers[np.argsort(people.order[numbers])].tolist():
            name = people.names[number]
            policy = self._roster.policy(name)
            if policy is None:
                self.feeds.drop(name)
            elif self.feeds.cohort(policy) != people.cohort[number]:
                self.feeds.enrol(Subscriber(name, policy))
        self.waiting = self._comparable(self.waiting, changed)
        self.aside = {
            name: each for name, each in self.aside.items() if self._roster.policy(name) is not None
        }

    def _comparable(self, parcel: Parcel, changed: AbstractSet[str] | None) -> Parcel:
        """Leave out, for those who compare events now, matches that came when they did not.

        Of such events nobody has kept more than their ids.
        """
        bare = np.array([not form for form in parcel.forms], np.bool_)
        compare = np.array([self._compares(each, changed) for each in parcel.subscribers], np.bool_)
        if not compare.any():
            return parcel
        matches = parcel.matches
        lacking = bare[matches.events] & compare[matches.subscribers]
        return of_matches(parcel, ~lacking) if lacking.any() else parcel

    def _compares(self, name: str, changed: AbstractSet[str] | None) -> bool:
        """Tell whether somebody who changed compares events with each other."""
        policy = self._roster.policy(name) if changed is None or name in changed else None
        return policy is not None and needs_attributes(policy)


def packed(
    header: Mapping[str, Any], feeds: TableFeeds, waiting: Parcel, seen: Mapping[str, Any]
) -> bytes:
    """Give the state of a bucket as bytes."""
    return FRAME.pack(header, {"feeds": feeds.snapshot(), "waiting": waiting.pack(), **seen})


def opened(blob: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the columns of the state of a bucket."""
    header, columns = FRAME.unpack(blob)
    with reading(FRAME.name):
        snapshot_fields.whole(header, "buckets")
        snapshot_fields.whole(header, "roster", 0, _VERSIONS, missing=True)
        for name, each in header.get("aside", {}).items():
            fine = len(each) == len(Aside._fields) and all(map(isinstance, each, (int, str)))
            check(fine, FRAME.name, f"why {shown(name)} is set aside is no mark and reason")
        for name in ("feeds", "waiting"):
            check(isinstance(columns[name], bytes), FRAME.name, f"column {name} holds no bytes")
        for name in ("low", "high", "us"):
            check(name in columns, FRAME.name, f"column {name} is missing")
    return header, columns


def _mark(name: str, policy: Policy) -> int:
    return fingerprint([Subscriber(name, policy)])


def enrol(feeds: TableFeeds, people: Mapping[str, Policy]) -> None:
    """Open the feeds of new subscribers."""
    policies = {id(policy): policy for policy in people.values()}
    places = {each: place for place, each in enumerate(policies)}
    seats = np.array([places[id(policy)] for policy in people.values()], np.int32)
    feeds.enrol_many(list(people), list(policies.values()), seats)
