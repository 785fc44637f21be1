"""The replay of a recording for some subscribers, by all variants at once.

Every subscriber has one feed per variant, all in one table: the feed of subscriber s in variant v
has the number v * n + s. An event is stored once for all of them, and so are its hashes, by which
diversifiers compare it. What the feeds deliver is what an engine with one variant delivers.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import Bools, Float64s, Int64s
from tidings.engine.quality import measure_sets
from tidings.feed.columnar.cohort_arrays import OfferedEvents
from tidings.feed.columnar.deliveries import delivery_table
from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.policy_key import needs_attributes
from tidings.formats.arrow import DELIVERIES
from tidings.lab.recording import Recording
from tidings.lab.shared_matching import SharedMatcher
from tidings.lab.variants import Variant
from tidings.policy import Policy
from tidings.rank.matches import Matches
from tidings.rules.verdict import Fate
from tidings.window import Moment

CHUNK: Final = 4096
"""The number of events that are matched at once; deliveries do not depend on it."""
_FATES: Final[tuple[Fate, ...]] = ("held", "released", "dropped")

SUMS: Final = pa.schema(
    {
        "policy": pa.string(),
        "subscriber": pa.string(),
        "matches": pa.int64(),
        "scores": pa.float64(),
        "wanted": pa.int64(),
        "delivered": pa.int64(),
        "ranks": pa.float64(),
        "delivered_scores": pa.float64(),
        "ages_us": pa.float64(),
        "served": pa.int64(),
        "distances": pa.float64(),
        "pairs": pa.int64(),
    }
)
"""The sums of a subscriber under a policy, behind all figures."""
RULED: Final = pa.schema(
    {"policy": pa.string(), "rule": pa.string(), "fate": pa.string(), "count": pa.int64()}
)
COMMON: Final = pa.schema({"first": pa.string(), "second": pa.string(), "count": pa.int64()})
ASIDE: Final = pa.schema({"policy": pa.string(), "subscriber": pa.string(), "reason": pa.string()})
DELIVERED: Final = pa.schema(
    [
        pa.field("policy", pa.string()),
        *DELIVERIES,
        pa.field("score", pa.float64()),
        pa.field("published_at", DELIVERIES.field("delivered_at").type),
    ]
)
"""Deliveries with the policy that made them, the score before decay, and the publication time."""


SCHEMAS: Final = (DELIVERED, SUMS, RULED, COMMON, ASIDE)
"""The schemas of `PartTables`."""


class PartTables(NamedTuple):
    """The results of a recording for some subscribers."""

    delivered: pa.Table
    sums: pa.Table
    ruled: pa.Table
    common: pa.Table
    aside: pa.Table


def replay(
    recording: Recording, variants: Sequence[Variant], until_us: int | None = None
) -> PartTables:
    """Replay a recording with all variants; time stops at the last event, or at `until_us`."""
    matcher = SharedMatcher(recording.subscribers, recording.subscriptions, variants)
    feeds = VariantFeeds(recording, variants)
    account = MatchAccount(recording, matcher.rankings)
    for chunk in _chunks(len(recording.events)):
        events = recording.events[chunk]
        matches = matcher.match(events)
        account.add(matches, chunk.start)
        feeds.offer(chunk, [matches[ranking] for ranking in matcher.ranking_of])
    if until_us is not None and until_us > recording.published_us[-1]:
        feeds.advance(Moment(until_us, int(recording.sequences[-1])))
    return _tables(recording, variants, matcher, feeds, account)


def _chunks(count: int) -> Iterator[slice]:
    for start in range(0, count, CHUNK):
        yield slice(start, min(start + CHUNK, count))


class VariantFeeds:
    """The feeds of all subscribers in all variants, and what they have delivered."""

    def __init__(self, recording: Recording, variants: Sequence[Variant]) -> None:
        self._recording, self._feeds = recording, TableFeeds()
        self._count = len(recording.subscribers)
        members = [
            (f"{number}:{subscriber.id}", variant.policy_of(subscriber), subscriber.paused)
            for number, variant in enumerate(variants)
            for subscriber in recording.subscribers
        ]
        names = [name for name, _, _ in members]
        self._names = pa.array(names, pa.string())
        _enrol(self._feeds, names, [policy for _, policy, _ in members])
        for name, policy, paused in members:
            if paused and policy.rules:
                self._feeds.pause(name)
        ids = [subscription.id for subscription in recording.subscriptions]
        self._subscriptions = self._feeds.tables.matched.hold(ids)
        self._compare = any(needs_attributes(policy) for _, policy, _ in members)
        self._delivered: list[list[pa.Table]] = [[] for _ in variants]
        self.ruled: Counter[tuple[int, str, str]] = Counter()

    def numbers(self, names: pa.ChunkedArray) -> Int64s:
        """Return the numbers of feeds by their names."""
        numbers: Int64s = pc.index_in(names, value_set=self._names).to_numpy().astype(np.int64)
        return numbers

    @property
    def set_aside(self) -> dict[str, str]:
        """The feeds whose policies failed, with the reasons."""
        return self._feeds.set_aside

    def delivered(self) -> pa.Table:
        """Return all deliveries so far, under the names of the feeds, variant after variant."""
        tables = [table for tables in self._delivered for table in tables]
        return pa.concat_tables([DELIVERIES.empty_table(), *tables])

    def offer(self, chunk: slice, matches: Sequence[Matches]) -> None:
        """Offer a chunk of events with their matches by variant, and advance time to its end."""
        sequences = self._recording.sequences[chunk]
        slots = self._slots(chunk, matches)
        for variant, ranked in enumerate(matches):
            renumbered = ranked._replace(
                subscribers=(ranked.subscribers + variant * self._count).astype(np.int32),
                matched=self._subscriptions[ranked.matched],
            )
            batch = self._feeds.offer_matches(OfferedEvents(renumbered, slots, sequences))
            if len(batch):
                self._delivered[variant].append(delivery_table(batch, self._feeds.tables))
        now_us = int(self._recording.published_us[chunk.stop - 1])
        self.advance(Moment(now_us, int(sequences[-1])))

    def advance(self, now: Moment) -> None:
        """Advance the clock to `now`; record what becomes due, and what rules have done."""
        batch = self._feeds.advance_columns(now)
        if len(batch):
            self._note(delivery_table(batch, self._feeds.tables))
        for columns in self._feeds.take_verdict_columns():
            for fate in _FATES:
                for (number, rule), count in columns.of_fate(fate).counts().items():
                    self.ruled[number // self._count, rule, fate] += count
        for name, verdicts in self._feeds.take_verdicts().items():
            variant = self._feeds.number(name) // self._count
            for verdict in verdicts:
                self.ruled[variant, verdict.rule, verdict.fate] += 1

    def _note(self, table: pa.Table) -> None:
        """Record deliveries of several variants."""
        variants = self.numbers(table["subscriber"]) // self._count
        for variant in np.unique(variants).tolist():
            self._delivered[variant].append(table.filter(pa.array(variants == variant)))

    def _slots(
        self, chunk: slice, matches: Sequence[Matches]
    ) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        """Return the slots of the events of a chunk; those without a match have none."""
        sizes = np.sum([np.diff(matched.starts) for matched in matches], axis=0)
        places = np.flatnonzero(sizes)
        events = [self._recording.events[chunk.start + place] for place in places.tolist()]
        slots, table = np.zeros(len(sizes), np.int32), self._feeds.tables.events
        if not events:
            return slots
        slots[places] = self._feeds.slots(
            [event.id for event in events],
            self._recording.published_us[chunk][places],
            np.array([event.sequence for event in events], np.int64),
        )
        for slot, event in zip(slots[places].tolist(), events, strict=True):
            if self._compare:
                table.objects[slot] = event
            if event.content_json is not None:
                table.contents[slot] = event.content_json
        return slots


def _enrol(feeds: TableFeeds, names: Sequence[str], policies: Sequence[Policy]) -> None:
    """Enrol feeds; those with the same policy object share it."""
    distinct = {id(policy): policy for policy in policies}
    numbers = {key: number for number, key in enumerate(distinct)}
    index = np.array([numbers[id(policy)] for policy in policies], np.int32)
    feeds.enrol_many(names, list(distinct.values()), index)


class MatchAccount:
    """The matches by ranking: how many, their scores, and which subscriptions had any."""

    def __init__(self, recording: Recording, rankings: int) -> None:
        self._count = len(recording.subscribers)
        self.counts = np.zeros((rankings, self._count), np.int64)
        self.scores = np.zeros((rankings, self._count))
        self.wanted = np.zeros((rankings, len(recording.subscriptions)), np.bool_)
        self._keys: list[list[Int64s]] = [[] for _ in range(rankings)]
        self._ranks: list[list[Float64s]] = [[] for _ in range(rankings)]

    def add(self, matches: Sequence[Matches], first: int) -> None:
        """Add the matches of a chunk of events by ranking; `first` is the place of its first."""
        for ranking, ranked in enumerate(matches):
            owners, count = ranked.subscribers, self._count
            self.counts[ranking] += np.bincount(owners, minlength=count)
            self.scores[ranking] += np.bincount(owners, ranked.ranks, minlength=count)
            self.wanted[ranking, ranked.matched] = True
            keys = (ranked.events + first) * count + owners
            order = np.argsort(keys)
            self._keys[ranking].append(keys[order])
            self._ranks[ranking].append(ranked.ranks[order])

    def score(self, ranking: int, keys: Int64s) -> Float64s:
        """Return the scores of matches, each the place of its event times n plus its subscriber."""
        known = np.concatenate([np.empty(0, np.int64), *self._keys[ranking]])
        ranks = np.concatenate([np.empty(0), *self._ranks[ranking]])
        return ranks[np.searchsorted(known, keys)]


@dataclass(frozen=True)
class _Deliveries:
    """Deliveries as numbers: the feed, the place of the event, and the rest as a table."""

    feed: Int64s
    event: Int64s
    table: pa.Table

    def only(self, mask: Bools) -> "_Deliveries":
        return _Deliveries(self.feed[mask], self.event[mask], self.table.filter(pa.array(mask)))

    @property
    def age_us(self) -> Int64s:
        return self._us("delivered_at") - self._us("published_at")

    def _us(self, name: str) -> Int64s:
        times: Int64s = self.table[name].cast(pa.int64()).to_numpy()
        return times


def _tables(
    recording: Recording,
    variants: Sequence[Variant],
    matcher: SharedMatcher,
    feeds: VariantFeeds,
    account: MatchAccount,
) -> PartTables:
    subscriber_count, names = len(recording.subscribers), [variant.name for variant in variants]
    sent = _numbered(recording, feeds)
    paused = np.array([subscriber.paused for subscriber in recording.subscribers], np.bool_)
    dropped = paused[sent.feed % subscriber_count]
    for variant, count in Counter((sent.feed[dropped] // subscriber_count).tolist()).items():
        feeds.ruled[variant, "pause", "dropped"] += count
    sent = sent.only(~dropped) if dropped.any() else sent
    keys = sent.event * subscriber_count + sent.feed % subscriber_count
    scores = np.zeros(len(sent.feed))
    for variant, ranking in enumerate(matcher.ranking_of):
        own = sent.feed // subscriber_count == variant
        scores[own] = account.score(ranking, keys[own])
    ruled = [(names[v], rule, fate, n) for (v, rule, fate), n in sorted(feeds.ruled.items())]
    return PartTables(
        _delivered(recording, names, sent, scores),
        _sums(recording, variants, matcher.ranking_of, account, sent, scores),
        _rows(RULED, ruled),
        _common(names, subscriber_count, sent, keys),
        _aside(names, matcher, feeds),
    )


def _rows(schema: pa.Schema, rows: Sequence[tuple[object, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def _numbered(recording: Recording, feeds: VariantFeeds) -> _Deliveries:
    table = feeds.delivered()
    events = pa.array([event.id for event in recording.events], pa.string())
    places = pc.index_in(table["event"], value_set=events).to_numpy().astype(np.int64)
    published = pa.array(recording.published_us[places]).cast(DELIVERED.field("published_at").type)
    table = table.append_column("published_at", published)
    return _Deliveries(feeds.numbers(table["subscriber"]), places, table)


def _delivered(
    recording: Recording, names: Sequence[str], sent: _Deliveries, scores: Float64s
) -> pa.Table:
    """Return deliveries policy by policy, each in the order in which they were made."""
    subscriber_count = len(recording.subscribers)
    subscribers = pa.array([subscriber.id for subscriber in recording.subscribers], pa.string())
    columns = {name: sent.table[name] for name in sent.table.column_names} | {
        "policy": pa.array(names, pa.string()).take(pa.array(sent.feed // subscriber_count)),
        "subscriber": subscribers.take(pa.array(sent.feed % subscriber_count)),
        "score": pa.array(scores),
    }
    return pa.table([columns[name] for name in DELIVERED.names], schema=DELIVERED)


def _sums(
    recording: Recording,
    variants: Sequence[Variant],
    rankings: Sequence[int],
    account: MatchAccount,
    sent: _Deliveries,
    scores: Float64s,
) -> pa.Table:
    subscriber_count = len(recording.subscribers)
    feeds = len(variants) * subscriber_count
    place = {subscriber.id: number for number, subscriber in enumerate(recording.subscribers)}
    owners = np.array(
        [place[subscription.subscriber] for subscription in recording.subscriptions], np.int64
    )
    matched_counts = [
        np.bincount(owners, account.wanted[ranking], subscriber_count) for ranking in rankings
    ]
    distances = _distances(recording, sent, feeds)

    def summed(values: Float64s) -> Float64s:
        return np.asarray(np.bincount(sent.feed, values, feeds), np.float64)

    columns = {
        "policy": np.repeat([variant.name for variant in variants], subscriber_count),
        "subscriber": [*place] * len(variants),
        "matches": account.counts[rankings].ravel(),
        "scores": account.scores[rankings].ravel(),
        "wanted": np.concatenate(matched_counts).astype(np.int64),
        "delivered": np.bincount(sent.feed, minlength=feeds),
        "ranks": summed(sent.table["rank"].to_numpy()),
        "delivered_scores": summed(scores),
        "ages_us": summed(sent.age_us.astype(np.float64)),
        "served": _served(recording, sent, feeds),
        "distances": distances[:, 0],
        "pairs": distances[:, 1].astype(np.int64),
    }
    return pa.table(columns, schema=SUMS)


def _served(recording: Recording, sent: _Deliveries, feeds: int) -> Int64s:
    """Return for each feed how many different subscriptions its deliveries matched."""
    matched = sent.table["matched"].combine_chunks()
    ids = pa.array([subscription.id for subscription in recording.subscriptions], pa.string())
    flat = matched.flatten() if len(matched) else pa.array([], pa.string())
    places = pc.index_in(flat, value_set=ids).to_numpy(zero_copy_only=False).astype(np.int64)
    sizes = pc.list_value_length(sent.table["matched"]).to_numpy().astype(np.int64)
    pairs = np.unique(np.repeat(sent.feed, sizes) * len(recording.subscriptions) + places)
    return np.bincount(pairs // len(recording.subscriptions), minlength=feeds)


def _distances(recording: Recording, sent: _Deliveries, feeds: int) -> Float64s:
    """Return for each feed the distances between its deliveries (PREF Def. 8), and the pairs."""
    different, numbers = np.unique(sent.event, return_inverse=True)
    events = [recording.events[place] for place in different.tolist()]
    return measure_sets(sent.feed, numbers.astype(np.int64), events, feeds)


def _common(
    names: Sequence[str], subscriber_count: int, sent: _Deliveries, keys: Int64s
) -> pa.Table:
    """Return for each pair of policies how many deliveries both made.

    The policies that made a delivery are the bits of a number; few of these numbers differ.
    """
    _, places = np.unique(keys, return_inverse=True)
    makers = np.zeros(places.max(initial=-1) + 1, np.int64)
    np.bitwise_or.at(makers, places, np.int64(1) << (sent.feed // subscriber_count))
    different, counts = np.unique(makers, return_counts=True)
    rows = [
        (
            names[first],
            names[second],
            int(counts[(different >> first) & (different >> second) & 1 > 0].sum()),
        )
        for first in range(len(names))
        for second in range(first + 1, len(names))
    ]
    return _rows(COMMON, rows)


def _aside(names: Sequence[str], matcher: SharedMatcher, feeds: VariantFeeds) -> pa.Table:
    """Return the subscribers that a policy could not serve, with the reasons."""
    rows = [
        (names[variant], subscriber, reason)
        for variant, ranking in enumerate(matcher.ranking_of)
        for subscriber, reason in sorted(matcher.failed[ranking].items())
    ]
    for name, reason in sorted(feeds.set_aside.items()):
        variant, _, subscriber = name.partition(":")
        rows.append((names[int(variant)], subscriber, reason))
    return _rows(ASIDE, rows)
