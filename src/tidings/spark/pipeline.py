"""DataFrame in, DataFrame out; batch and streaming alike."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from tidings import checks, parts
from tidings.columns import DELIVERIES, MATCHES
from tidings.matching import Matcher
from tidings.model import Event
from tidings.score import SCORERS, Scorer
from tidings.spark.clock import with_time
from tidings.spark.flow import FLOW, Flow, ReadEvents, match_batches
from tidings.spark.frames import (
    Subscribers,
    Subscriptions,
    check_sequences,
    event_reader,
    matcher,
)
from tidings.spark.options import Options
from tidings.spark.state import run_buckets

TARGETS: Final = pa.schema(
    {
        "event": pa.string(),
        "position": pa.int64(),
        "subscription": pa.string(),
        "score": pa.float64(),
    }
)


def match(
    publications: DataFrame, subscriptions: Subscriptions, subscribers: Subscribers = None
) -> DataFrame:
    """Give every subscriber's matches: subscriber, event, published_at, score, matched."""
    found, read = matcher(subscriptions, subscribers), event_reader(publications)
    return publications.mapInArrow(
        lambda batches: match_batches(found, read, batches), from_arrow_schema(MATCHES)
    )


def feed(
    publications: DataFrame,
    subscriptions: Subscriptions,
    subscribers: Subscribers = None,
    **options: Any,
) -> DataFrame:
    """Give the deliveries of every subscriber by its policy; `options` are those of `outcomes`.

    Publications with the same time are taken in order of their sequence, then of their id.
    """
    found = outcomes(publications, subscriptions, subscribers, **options)
    return found.where(f.col("kind") == "delivery").select(*DELIVERIES.names)


def outcomes(
    publications: DataFrame,
    subscriptions: Subscriptions,
    subscribers: Subscribers = None,
    **options: Any,
) -> DataFrame:
    """Give deliveries, late events and dead letters in one DataFrame, told apart by `kind`.

    `options` are those of `Options`: lateness, remember, buckets, until, clock, state.
    """
    chosen = Options(**options)
    found, read, terms = (
        matcher(subscriptions, subscribers),
        event_reader(publications),
        chosen.terms,
    )
    counting = check_sequences(publications, found.subscribers.values())
    stage = Flow(found, read, terms.buckets, counting)
    flow = publications.mapInArrow(stage.batches, from_arrow_schema(FLOW))
    timed = with_time(flow, terms.buckets, chosen.until, chosen.clock)
    return run_buckets(timed, found.subscribers, terms, chosen.state)


def target(
    events: DataFrame, subscriptions: Subscriptions, k: int = 20, scorer: object = "exact"
) -> DataFrame:
    """Give the k best subscriptions of each event: event, position, subscription, score."""
    found, read = matcher(subscriptions), event_reader(events)
    part, most = parts.read(SCORERS, "scorer", scorer), checks.count("k", k)
    return events.mapInArrow(
        lambda batches: target_batches(found, read, part, most, batches),
        from_arrow_schema(TARGETS),
    )


def target_batches(
    found: Matcher,
    read: ReadEvents,
    scorer: Scorer,
    k: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Give the targets of events, Arrow in and Arrow out; bad records give none."""
    for batch in batches:
        rows = [
            {"event": event.id, "position": place, "subscription": name, "score": score}
            for event in read(batch)
            if isinstance(event, Event)
            for place, (name, score) in enumerate(found.top(event, k, scorer), start=1)
        ]
        yield pa.RecordBatch.from_pylist(rows, TARGETS)
