"""Hits and ranks in plain Python: every subscription is tested, every scorer called alone."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tidings import Event, Policy, Subscriber, Subscription
from tidings.compiled.array_file import Reader, Stored, Writer, described
from tidings.index.access.kernels.partial_match import Hits
from tidings.index.access.kernels.validate import CheckedParts
from tidings.rank.bulk.protocol import IndexExtent, Owner, RankRequest, Unranked
from tidings.rank.matches import Matches

Numbered = Mapping[int, Subscription]
Row = tuple[int, float, list[int]]


def owner(number: int, scorer: Any, subscriptions: Numbered, prefers: Any = ()) -> Owner:
    subscriber = Subscriber(f"u{number}", Policy(scorer=scorer), prefers=prefers)
    return Owner(number, subscriber, subscriptions)


def held_parts(subscription: Subscription, event: Event) -> list[int]:
    parts = [part for group in subscription.groups for part in group]
    return [
        place
        for place, part in enumerate(parts)
        if part.state == "active" and part.predicate.holds(event.tokens)
    ]


def found(subscriptions: Numbered, event: Event, partial: bool) -> dict[int, list[int]]:
    """Return the numbers that an index finds, and the predicates that hold if it is asked."""
    if partial:
        held = {number: held_parts(one, event) for number, one in subscriptions.items()}
        return {number: parts for number, parts in held.items() if parts}
    return {number: [] for number, one in subscriptions.items() if one.matches(event)}


def request(
    events: Sequence[Event],
    subscriptions: Numbered,
    *,
    partial: bool,
    unranked: list[Unranked] | None = None,
) -> RankRequest:
    by_event = [found(subscriptions, event, partial) for event in events]
    numbers = [number for one in by_event for number in one]
    parts = [held for one in by_event for held in one.values()]
    hits = Hits(
        np.cumsum([0, *map(len, by_event)]),
        np.array(numbers, np.int32),
        np.cumsum([0, *map(len, parts)]) if partial else np.empty(0, np.int64),
        np.array([part for held in parts for part in held], np.int32),
    )
    table = [subscriptions.get(number) for number in range(max(subscriptions, default=-1) + 1)]
    return RankRequest(events, hits, table, unranked)


def rows(matches: Matches, event: int) -> list[Row]:
    """Return the matches of one event in an order that does not depend on the method."""
    return sorted((who, rank, sorted(matched)) for who, rank, matched in matches.rows(event))


def expected_rows(owners: Iterable[Owner], event: Event) -> list[Row]:
    """Return the rank of each owner's own scorer, where it has one."""
    ranked = []
    for owner in owners:
        own = found(owner.subscriptions, event, owner.scorer.partial)
        ranker = owner.scorer.prepare([*owner.subscriptions.values()], owner.subscriber.prefers)
        rank = ranker.rank(event, [owner.subscriptions[number] for number in own])
        if rank is not None and own:
            ranked.append((owner.number, rank, sorted(own)))
    return sorted(ranked)


def active_parts(subscription: Subscription) -> list[int]:
    parts = [part for group in subscription.groups for part in group]
    return [place for place, part in enumerate(parts) if part.state == "active"]


def read_back(method: Any, owners: Sequence[Owner]) -> Any:
    """Return the method that a file of it gives, for an index that checks all active predicates."""
    numbered = {
        number: subscription
        for owner in owners
        for number, subscription in owner.subscriptions.items()
    }
    numbers = range(max(numbered, default=-1) + 1)
    active = [active_parts(numbered[number]) if number in numbered else [] for number in numbers]
    checked = CheckedParts(
        np.array([place for own in active for place in own], np.uint8),
        np.array(numbers, np.int32),
        np.cumsum([0, *map(len, active)]).astype(np.int32),
    )
    extent = IndexExtent.of(max((owner.number for owner in owners), default=-1) + 1, checked)
    writer = Writer()
    method.write(writer, extent.subscriptions, extent.owners)
    arrays = {
        # Mapped files are copy-on-write, so kernels may write to the arrays.
        name: Stored(
            described(array.dtype), list(array.shape), memoryview(bytearray(array.tobytes()))
        )
        for name, array in writer.arrays.items()
    }
    return type(method).read(Reader("a ranker", writer.header, arrays), extent)
