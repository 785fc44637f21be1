"""Parcels as the match stage makes them, from plain matches; and what buckets say of them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.feed.columnar.event_table import UNNUMBERED
from tidings.formats.arrow import events_to_table
from tidings.model.records import Event, Match
from tidings.rank.matcher import Matcher
from tidings.rank.matches import Matches
from tidings.spark.match_stage.match_batch import Parcel
from tidings.spark.state_stage.clock_marks import Tick
from tidings.spark.state_stage.late_events import Batch, pack_rows


def parcel(events: Sequence[Event], matches: Sequence[Sequence[Match]]) -> Parcel:
    """Write a parcel by hand, every event with its form."""
    flat = [match for some in matches for match in some]
    people = sorted({match.subscriber for match in flat})
    wanted = sorted({each for match in flat for each in match.matched})
    return Parcel(
        events=[event.id for event in events],
        us=np.array([event.published_us for event in events], np.int64),
        sequence=np.array(
            [UNNUMBERED if event.sequence is None else event.sequence for event in events], np.int64
        ),
        forms=[json.dumps(event.to_dict()) for event in events],
        matches=Matches(
            np.cumsum([0, *map(len, matches)]),
            np.array([people.index(match.subscriber) for match in flat], np.int32),
            np.array([match.score for match in flat], np.float64),
            np.cumsum([0, *(len(match.matched) for match in flat)]),
            np.array([wanted.index(one) for each in flat for one in each.matched], np.int32),
        ),
        subscribers=people,
        subscriptions=wanted,
    )


def sent(
    matcher: Matcher, events: Sequence[Event], mine: Iterable[str]
) -> tuple[list[Parcel], list[Tick]]:
    """Give what one Arrow batch sends to the bucket of some subscribers."""
    names = set(mine)
    matches = [[m for m in matcher.matches(event) if m.subscriber in names] for event in events]
    some = [(event, found) for event, found in zip(events, matches, strict=True) if found]
    tick = Tick(
        max(each.published_us for each in events), max(each.sequence or 0 for each in events)
    )
    if not some:
        return [], [tick]
    made = parcel([event for event, _ in some], [found for _, found in some])
    return [Parcel.unpack(made.pack())], [tick]


def kept(events: Sequence[Event]) -> Batch:
    """Give events as the match stage sends them for the late table."""
    table = events_to_table(events).combine_chunks()
    return Batch(min(each.published_us for each in events), pack_rows(table.to_batches()[0]))


def rows(found: pa.Table, kind: str) -> list[dict[str, Any]]:
    """Give the outcomes of one kind."""
    return [row for row in found.to_pylist() if row["kind"] == kind]


def deliveries(found: Iterable[pa.Table]) -> dict[str, list[dict[str, Any]]]:
    """Give the deliveries of each subscriber in their forms."""
    forms: dict[str, list[dict[str, Any]]] = {}
    for table in found:
        for row in rows(table, "delivery"):
            at = row["delivered_at"].isoformat().replace("+00:00", "Z")
            form = {name: row[name] for name in ("subscriber", "event", "rank", "position")}
            form |= {"window": json.loads(row["window"]), "matched": row["matched"]}
            form |= {"sequence": row["sequence"], "delivered_at": at}
            forms.setdefault(row["subscriber"], []).append(form)
    return forms
