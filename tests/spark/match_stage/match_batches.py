"""Match batches built from plain matches, and the outcomes of buckets as plain rows."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.formats.arrow import events_to_table
from tidings.model.event_columns import UNNUMBERED
from tidings.model.records import Event, Match
from tidings.rank.matcher import Matcher
from tidings.rank.matches import Matches
from tidings.spark.match_stage.match_batch import MatchBatch, texts_if_any
from tidings.spark.state_stage.outcomes import ArrivedRows, pack_rows
from tidings.spark.state_stage.watermark import Tick


def match_batch(events: Sequence[Event], matches: Sequence[Sequence[Match]]) -> MatchBatch:
    """Return a batch of matches in which every event has its form."""
    flat = [match for some in matches for match in some]
    subscribers = sorted({match.subscriber for match in flat})
    subscriptions = sorted({id for match in flat for id in match.matched})
    return MatchBatch(
        events=[event.id for event in events],
        us=np.array([event.published_us for event in events], np.int64),
        sequence=np.array(
            [UNNUMBERED if event.sequence is None else event.sequence for event in events], np.int64
        ),
        forms=[json.dumps(event.dict_without_content()) for event in events],
        matches=Matches(
            np.cumsum([0, *map(len, matches)]),
            np.array([subscribers.index(match.subscriber) for match in flat], np.int32),
            np.array([match.score for match in flat], np.float64),
            np.cumsum([0, *(len(match.matched) for match in flat)]),
            np.array([subscriptions.index(id) for match in flat for id in match.matched], np.int32),
        ),
        subscribers=subscribers,
        subscriptions=subscriptions,
        contents=texts_if_any(event.content_json or "" for event in events),
    )


def sent(
    matcher: Matcher, events: Sequence[Event], subscribers: Iterable[str]
) -> tuple[list[MatchBatch], list[Tick]]:
    """Return the match batches and ticks that an Arrow batch sends to some subscribers."""
    names = set(subscribers)
    matches = [[m for m in matcher.matches(event) if m.subscriber in names] for event in events]
    matched = [(event, some) for event, some in zip(events, matches, strict=True) if some]
    tick = Tick(
        max(event.published_us for event in events), max(event.sequence or 0 for event in events)
    )
    if not matched:
        return [], [tick]
    batch = match_batch([event for event, _ in matched], [some for _, some in matched])
    return [MatchBatch.unpack(batch.pack())], [tick]


def arrived_rows(events: Sequence[Event]) -> ArrivedRows:
    """Return events as the match stage sends them for the late table."""
    table = events_to_table(events).combine_chunks()
    return ArrivedRows(
        min(event.published_us for event in events), pack_rows(table.to_batches()[0])
    )


def rows(table: pa.Table, kind: str) -> list[dict[str, Any]]:
    """Return the outcomes of one kind."""
    return [row for row in table.to_pylist() if row["kind"] == kind]


def deliveries(tables: Iterable[pa.Table]) -> dict[str, list[dict[str, Any]]]:
    """Return the deliveries of each subscriber as JSON forms."""
    forms: dict[str, list[dict[str, Any]]] = {}
    for table in tables:
        for row in rows(table, "delivery"):
            delivered_at = row["delivered_at"].isoformat().replace("+00:00", "Z")
            form = {name: row[name] for name in ("subscriber", "event", "rank", "position")}
            form |= {"window": json.loads(row["window"]), "matched": row["matched"]}
            form |= {"sequence": row["sequence"], "delivered_at": delivered_at}
            if row["content"] is not None:
                form["content"] = json.loads(row["content"])
            forms.setdefault(row["subscriber"], []).append(form)
    return forms
