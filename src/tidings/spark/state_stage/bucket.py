"""Feeds of a bucket of subscribers: the state stage without Spark.

A bucket takes all matches of a micro-batch at once, in columns, and packs its whole state into one
blob, because state per subscriber costs many times more. Its deliveries depend on the sequence of
publications only, never on where a batch ends.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tidings.compiled.array_types import Bools, Int64s, UInt64s
from tidings.errors import StateError, shown
from tidings.feed.columnar.cohort_arrays import OfferedEvents
from tidings.feed.columnar.event_table import check_content
from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.columnar.kernels.layout import FAR
from tidings.feed.policy_key import needs_attributes, same_feed, without_rules
from tidings.formats.binary import Frame, check, reading
from tidings.index_files.manifest import RefusedRecord
from tidings.index_files.subscriber_bundle import fingerprint
from tidings.policy import Policy, Subscriber
from tidings.spark.match_stage.match_batch import MatchBatch
from tidings.spark.state_stage import outcomes
from tidings.spark.state_stage.policies import Policies
from tidings.spark.state_stage.watermark import BucketClock, PendingTicks, Tick
from tidings.window import Moment, snapshot_fields

# Memory of event ids that were seen: hashes with their times, for a bounded period.

_NAME: Final = "the memory of event ids of a bucket"
CAPACITY: Final = 1 << 15
"""Most ids that are remembered behind the watermark."""


class IdMemory:
    """Ids as 128-bit hashes sorted by their low half, with times: 24 bytes an id.

    Among 2^15 of them, a new id is taken for an old one with a probability of 2^-113.
    """

    def __init__(self, remember_us: int, capacity: int = CAPACITY) -> None:
        self._remember_us, self._capacity = remember_us, capacity
        self.low, self.high = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        self.us = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.us)

    def contains(self, hashes: UInt64s) -> Bools:
        """Return which ids were seen; O(log n) each."""
        if not len(self):
            return np.zeros(len(hashes), np.bool_)
        positions = np.minimum(np.searchsorted(self.low, hashes[:, 0]), len(self) - 1)
        same = (self.low[positions] == hashes[:, 0]) & (self.high[positions] == hashes[:, 1])
        return np.asarray(same)

    def add(self, hashes: UInt64s, us: Int64s) -> None:
        """Add new ids, each once."""
        low = np.concatenate([self.low, hashes[:, 0]])
        order = np.argsort(low, kind="stable")
        self.low = low[order]
        self.high = np.concatenate([self.high, hashes[:, 1]])[order]
        self.us = np.concatenate([self.us, us])[order]

    def forget(self, watermark_us: int) -> None:
        """Drop ids that are too old, and the oldest of those above the capacity.

        Ids at or after the watermark stay: their events could still be repeated in time.
        """
        remembered = self.us >= watermark_us - self._remember_us
        behind = self.us[remembered & (self.us < watermark_us)]
        excess = len(behind) - self._capacity
        if excess > 0:
            remembered &= self.us >= np.partition(behind, excess)[excess]
        if not remembered.all():
            self.low, self.high = self.low[remembered], self.high[remembered]
            self.us = self.us[remembered]

    def columns(self) -> dict[str, Any]:
        """Return the state as columns."""
        return {"low": self.low, "high": self.high, "us": self.us}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state from columns."""
        low, high, us = (state[name] for name in ("low", "high", "us"))
        for column, kind in ((low, np.uint64), (high, np.uint64), (us, np.int64)):
            fits = isinstance(column, np.ndarray) and column.dtype == kind
            check(fits and column.shape == (len(low),), _NAME, "a column is missing")
        check((low[1:] >= low[:-1]).all(), _NAME, "the ids are not sorted")
        self.low, self.high, self.us = low.copy(), high.copy(), us.copy()


def hash_ids(ids: Sequence[str]) -> UInt64s:
    """Return 128-bit hashes of ids in two columns, the same in every process."""
    digests = b"".join([blake2b(id.encode(), digest_size=16).digest() for id in ids])
    return np.frombuffer(digests, "<u8").reshape(-1, 2).astype(np.uint64)


FRAME: Final = Frame(b"tidings-bucket", 3, "the state of a bucket")
_VERSIONS: Final = 1 << 128
"""Versions of policies are below: a fingerprint of 64 bits, and the version of a source."""
WEEK_US: Final = 7 * 86_400_000_000


class BucketSettings(NamedTuple):
    """Settings of all buckets: allowed lateness, how long ids are remembered, number of buckets.

    A batch that is `alone`, because nothing follows it, remembers no ids. With `only_deliveries`,
    the accounts are not read, so none are made.
    """

    lateness_us: int = 0
    remember_us: int = WEEK_US
    buckets: int = 1
    alone: bool = False
    only_deliveries: bool = False


class SetAside(NamedTuple):
    """A subscriber that gets nothing more because its policy failed.

    `policy` is the fingerprint of that policy: another policy ends it.
    """

    policy: int
    reason: str


class Bucket:
    """The feeds of some subscribers, each opened with its first match.

    Subscribers in `aside` get no matches until their policies change. `reported` has fingerprints
    of the refused records that are dead letters already.
    """

    def __init__(self, policies: Policies, settings: BucketSettings | None = None) -> None:
        self._policies, self._settings = policies, settings or BucketSettings()
        self.feeds = TableFeeds()
        self.ids = IdMemory(self._settings.remember_us)
        self.waiting = MatchBatch.empty()
        self.watermark_us: int | None = None
        self.ticks = PendingTicks()
        self.aside: dict[str, SetAside] = {}
        self.reported: list[int] = []

    def run(
        self,
        batches: Sequence[MatchBatch],
        ticks: Sequence[Tick],
        letters: Sequence[str | bytes] = (),
        refused: Sequence[RefusedRecord] = (),
    ) -> pa.Table:
        """Take all of one micro-batch, in any order, and return its outcomes.

        These are deliveries, dead letters, an account of each subscriber's matches, and what rules
        dropped, held and released. Records that the source of the policies refused are dead
        letters, each once.
        """
        new = MatchBatch.merged(batches)
        new, rejected = self._without_repeats_and_late(new.ordered())
        self.ticks.add(ticks)
        self._advance_watermark([*new.us[-1:].tolist(), *(tick.us for tick in ticks)])
        released = self._with_feeds(self._release(new))
        tables = [outcomes.dead_letters(letters), *rejected, *self._offer(released)]
        tables.append(outcomes.refused(self._unreported(refused)))
        if not self._settings.only_deliveries:
            matches = released.matches
            owners, ranks = matches.subscribers, matches.ranks
            tables.append(outcomes.accounts(released.subscribers, owners, ranks))
        columns = self.feeds.take_verdict_columns()
        tables += outcomes.judged_in_arrays(columns, self.feeds.tables)
        if verdicts := self.feeds.take_verdicts():
            tables.append(outcomes.judged(verdicts))
        if failed := dict(self.feeds.set_aside):
            tables.append(self.set_aside(failed))
        if self.watermark_us is not None:
            self.ids.forget(self.watermark_us)
        return pa.concat_tables(tables)

    def _unreported(self, refused: Sequence[RefusedRecord]) -> list[RefusedRecord]:
        """Return the refused records that were not refused before, for the same reason."""
        before, self.reported = {*self.reported}, [record.fingerprint for record in refused]
        return [record for record in refused if record.fingerprint not in before]

    def _without_repeats_and_late(self, batch: MatchBatch) -> tuple[MatchBatch, list[pa.Table]]:
        """Leave out repeated events, which are dead letters, and late ones (`late_rows`)."""
        repeated, held = batch.repeats(), self.feeds.tables.events
        hashes = None if self._settings.alone else hash_ids(batch.events)
        if hashes is not None:
            repeated |= self.ids.contains(hashes)
        if len(held):
            repeated |= np.fromiter((id in held for id in batch.events), np.bool_, len(repeated))
        new, rejected = batch, list[pa.Table]()
        if repeated.any():
            rejected.append(outcomes.duplicates(batch.select(repeated.nonzero()[0])))
            new = batch.select((~repeated).nonzero()[0])
        if hashes is not None:
            self.ids.add(hashes[~repeated], new.us)
        late = new.us < (self.watermark_us if self.watermark_us is not None else -FAR)
        return (new.select((~late).nonzero()[0]) if late.any() else new), rejected

    def _advance_watermark(self, times: Sequence[int]) -> None:
        marks = [us - self._settings.lateness_us for us in times]
        if self.watermark_us is not None:
            marks.append(self.watermark_us)
        self.watermark_us = max(marks, default=None)

    def _release(self, new: MatchBatch) -> MatchBatch:
        """Return the matches that the watermark has reached, in order; the others wait."""
        both = MatchBatch.merged([self.waiting, new]) if self.waiting.events else new
        order = both.publication_order() if self.waiting.events else np.arange(len(both.us))
        reached = both.us[order] <= (self.watermark_us or 0)
        if reached.all() and both is new:
            return new
        self.waiting = both.select(order[~reached])
        return both.select(order[reached])

    def _with_feeds(self, batch: MatchBatch) -> MatchBatch:
        """Open feeds for first matches; leave out the matches of subscribers without a policy."""
        unknown = [name for name in batch.subscribers if name not in self.feeds]
        policies = dict(zip(unknown, self._policies.policies_of(unknown), strict=True))
        for name in self.aside.keys() & policies.keys():
            policies[name] = self.policy(name)
        enrol(self.feeds, {name: policy for name, policy in policies.items() if policy is not None})
        for name, policy in policies.items():
            if policy is not None and policy.rules and self._policies.is_paused(name):
                self.feeds.pause(name)
        if all(policy is not None for policy in policies.values()):
            return batch
        enrolled = [name in self.feeds for name in batch.subscribers]
        return batch.of_subscribers(np.array(enrolled, np.bool_))

    def policy(self, name: str) -> Policy | None:
        """Return the policy of a subscriber; None if it is gone, or set aside with this policy."""
        policy = self._policies.policy(name)
        if policy is None or name not in self.aside:
            return policy
        if self.aside[name].policy == _fingerprint(name, policy):
            return None
        del self.aside[name]
        return policy

    def set_aside(self, reasons: Mapping[str, str]) -> pa.Table:
        """Close the feeds of subscribers whose policies failed; return a dead letter for each."""
        for name, reason in reasons.items():
            if name in self.feeds:
                self.feeds.drop(name)
            if policy := self._policies.policy(name):
                self.aside[name] = SetAside(_fingerprint(name, policy), reason)
        remaining = [name not in reasons for name in self.waiting.subscribers]
        if not all(remaining):
            self.waiting = self.waiting.of_subscribers(np.array(remaining, np.bool_))
        return outcomes.set_aside(reasons)

    def keep_only(self, names: AbstractSet[str]) -> None:
        """Drop all other subscribers, for a trial."""
        dropped = [name for name in self.feeds.tables.subscribers.names if name not in names]
        for name in dropped:
            if name in self.feeds:
                self.feeds.drop(name)
        remaining = np.array([name in names for name in self.waiting.subscribers], np.bool_)
        self.waiting = self.waiting.of_subscribers(remaining)

    def drop_events(self, events: AbstractSet[str]) -> None:
        """Drop waiting events."""
        self.waiting = self.waiting.without_events(events)

    def _offer(self, batch: MatchBatch) -> list[pa.Table]:
        """Offer matches to the feeds in order, advance time, and return the deliveries."""
        feeds, tables = self.feeds, list[pa.Table]()
        sequence = self.ticks.sequence_at(batch.us, batch.sequence)
        if len(batch.events):
            delivered = feeds.offer_matches(self._renumbered(batch, sequence))
            tables.append(outcomes.deliveries(delivered, feeds.tables))
        if self.watermark_us is not None:
            self.ticks.pass_until(self.watermark_us, int(sequence[-1]) if len(sequence) else 0)
            now = Moment(self.watermark_us, self.ticks.sequence)
            tables.append(outcomes.deliveries(feeds.advance_columns(now), feeds.tables))
        if not self._policies.some_paused:
            return tables
        return [outcomes.drop_paused(table, self._policies.is_paused) for table in tables]

    def _renumbered(self, batch: MatchBatch, sequences: Int64s) -> OfferedEvents:
        """Return the matches in the numbering of the feeds."""
        feeds, matches = self.feeds, batch.matches
        slots = feeds.slots(batch.events, batch.us, batch.sequence)
        for slot, form in zip(slots.tolist(), batch.forms, strict=False):
            if form:
                feeds.tables.events.describe(slot, form)
        for slot, content in zip(slots.tolist(), batch.contents, strict=False):
            if content:
                check_content(content)
                feeds.tables.events.contents[slot] = content
        subscribers = feeds.tables.subscribers.number_many(batch.subscribers)
        subscriptions = feeds.tables.matched.number_many(batch.subscriptions)
        matches = matches._replace(
            subscribers=subscribers[matches.subscribers], matched=subscriptions[matches.matched]
        )
        return OfferedEvents(matches, slots, sequences)

    @property
    def clock(self) -> BucketClock:
        """Watermark, pending ticks and next deadline."""
        clock = BucketClock(self.watermark_us, self.ticks.sequence, tuple(self.ticks.ticks))
        return clock.with_deadline(self.feeds.next_deadlines(), self.waiting.us[:1].tolist())

    def pack(self) -> bytes:
        """Return the whole state except the clock as bytes."""
        header: dict[str, Any] = {
            "buckets": self._settings.buckets,
            "roster": self._policies.version,
        }
        if self.aside:
            header["aside"] = dict(sorted(self.aside.items()))
        if self.reported:
            header["reported"] = self.reported
        return pack_state(header, self.feeds, self.waiting, self.ids.columns())

    def unpack(self, blob: bytes, clock: BucketClock) -> None:
        """Restore packed bytes; those of another format or number of buckets are refused."""
        header, columns = unpack_state(blob)
        if header["buckets"] != self._settings.buckets:
            raise StateError(
                f"the checkpoint has {header['buckets']} buckets, but the option buckets is "
                f"{self._settings.buckets}; convert it with tidings.spark.rebucket"
            )
        self.feeds.restore_many([columns["feeds"]], self._policies.policy)
        self.waiting = MatchBatch.unpack(columns["waiting"])
        self.ids.restore(columns)
        self.aside = {name: SetAside(*pair) for name, pair in header.get("aside", {}).items()}
        self.reported = header.get("reported", [])
        self.watermark_us = clock.watermark_us
        self.ticks = PendingTicks(clock.ticks, clock.sequence)
        if header["roster"] != self._policies.version:
            self._apply_policy_changes(header["roster"])

    def _apply_policy_changes(self, since: int | None) -> None:
        """Drop removed subscribers; give those with another policy a new, empty window.

        Where only the rules have changed, the window keeps running, and what they held is handed
        over. It costs the subscribers that changed since that version, or all if these are unknown.
        Their order is that of enrolment, so that numbers do not depend on the order of a set.
        """
        changed = None if since is None else self._policies.changed_since(since)
        enrolled = self.feeds.tables.subscribers
        affected = {*enrolled.names} if changed is None else changed
        numbers = np.array(
            [enrolled.number(name) for name in affected if name in enrolled], np.int64
        )
        now = Moment(self.watermark_us or 0, self.ticks.sequence)
        for number in numbers[np.argsort(enrolled.order[numbers])].tolist():
            name = enrolled.names[number]
            policy = self._policies.policy(name)
            if policy is None:
                self.feeds.drop(name)
                continue
            subscriber = Subscriber(name, policy, paused=self._policies.is_paused(name))
            if same_feed(policy, self.feeds.cohorts[int(enrolled.cohort[number])].policy):
                self.feeds.replace(subscriber, now)
            else:
                self.feeds.enrol(subscriber)
        self.waiting = self._comparable(self.waiting, changed)
        self.aside = {
            name: aside
            for name, aside in self.aside.items()
            if self._policies.policy(name) is not None
        }

    def _comparable(self, batch: MatchBatch, changed: AbstractSet[str] | None) -> MatchBatch:
        """Leave out waiting matches that a changed policy would need attributes for.

        Events arrive with only their ids if no policy of the bucket compared events then.
        """
        bare = np.array(
            [not form for form in batch.forms or repeat("", len(batch.events))], np.bool_
        )
        compare = np.array([self._compares(name, changed) for name in batch.subscribers], np.bool_)
        if not compare.any():
            return batch
        lacking = bare[batch.matches.events] & compare[batch.matches.subscribers]
        return batch.of_matches(~lacking) if lacking.any() else batch

    def _compares(self, name: str, changed: AbstractSet[str] | None) -> bool:
        """Return whether the window of a subscriber that may have changed compares events.

        The rule `different` takes an event of which only the id is known as near to no other.
        """
        policy = self._policies.policy(name) if changed is None or name in changed else None
        return policy is not None and needs_attributes(without_rules(policy))


def pack_state(
    header: Mapping[str, Any], feeds: TableFeeds, waiting: MatchBatch, ids: Mapping[str, Any]
) -> bytes:
    """Return the state of a bucket as bytes."""
    return FRAME.pack(header, {"feeds": feeds.snapshot(), "waiting": waiting.pack(), **ids})


def unpack_state(blob: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the columns of a packed bucket."""
    header, columns = FRAME.unpack(blob)
    with reading(FRAME.name):
        snapshot_fields.whole(header, "buckets")
        snapshot_fields.whole(header, "roster", 0, _VERSIONS, missing=True)
        for name, pair in header.get("aside", {}).items():
            fits = len(pair) == len(SetAside._fields) and all(map(isinstance, pair, (int, str)))
            check(fits, FRAME.name, f"the entry of {shown(name)} is not a fingerprint and a reason")
        reported = header.get("reported", [])
        numbers = isinstance(reported, list) and all(type(number) is int for number in reported)
        check(numbers, FRAME.name, "the reported records are not a list of fingerprints")
        for name in ("feeds", "waiting"):
            check(isinstance(columns[name], bytes), FRAME.name, f"column {name} is not bytes")
        for name in ("low", "high", "us"):
            check(name in columns, FRAME.name, f"column {name} is missing")
    return header, columns


def _fingerprint(name: str, policy: Policy) -> int:
    return fingerprint([Subscriber(name, policy)])


def enrol(feeds: TableFeeds, policies: Mapping[str, Policy]) -> None:
    """Open the feeds of new subscribers; equal policies are passed once."""
    distinct = {id(policy): policy for policy in policies.values()}
    numbers = {key: number for number, key in enumerate(distinct)}
    policy_numbers = np.array([numbers[id(policy)] for policy in policies.values()], np.int32)
    feeds.enrol_many(list(policies), list(distinct.values()), policy_numbers)
