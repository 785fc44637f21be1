"""DataFrame in, DataFrame out; batch and streaming alike."""

from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from tidings.errors import InvalidPolicy
from tidings.formats.arrow import DELIVERIES, MATCHES
from tidings.index_files.mapped_matcher import ranked_by_index
from tidings.model import named_parts as parts
from tidings.model import validate
from tidings.model.limits import TRUSTED, Limits
from tidings.score import SCORERS
from tidings.spark.inputs import Subscribers, Subscriptions, matchers, roster
from tidings.spark.match_stage.matcher_source import Matchers
from tidings.spark.match_stage.results import (
    LETTERS,
    ROW,
    TARGETS,
    Targets,
    letter_batches,
    match_batches,
)
from tidings.spark.match_stage.stage import FLOW, NOW, PART, Flow
from tidings.spark.options import read_options
from tidings.spark.publications import check_sequences, readable
from tidings.spark.session import check_session
from tidings.spark.state_stage.clock import with_time
from tidings.spark.state_stage.processor import run_buckets


def match(
    publications: DataFrame,
    subscriptions: Subscriptions,
    subscribers: Subscribers = None,
    *,
    parts: int = 1,
    limits: Limits = TRUSTED,
) -> DataFrame:
    """Give every subscriber's matches: subscriber, event, published_at, score, matched.

    `parts` splits the subscribers, where an index of all is more than a worker should hold. Rows
    above the `limits` are passed over like others that cannot be read.
    """
    rows, read = readable(publications, limits=limits)
    found = matchers(publications, subscriptions, subscribers, parts, limits=limits)
    work = partial(match_batches, found, read)
    return sent_to_parts(rows, found).mapInArrow(work, from_arrow_schema(MATCHES))


def dead_letters(publications: DataFrame, *, limits: Limits = TRUSTED) -> DataFrame:
    """Give the rows that cannot be read as publications, as JSON, and why: record, reason.

    `match` and `target` pass over these rows; `outcomes` has them with all else.
    """
    rows, read = readable(publications, limits=limits)
    return rows.mapInArrow(partial(letter_batches, read), from_arrow_schema(LETTERS))


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

    `options` are those of `Options`: lateness, remember, buckets, parts, prune,
    until, clock, state, future, limits. A dead letter is a row that cannot be read, an event for
    which matching fails, or a subscriber who is set aside because its own policy fails; the
    reason tells, and everything else goes on.
    """
    chosen = read_options(options)
    rows, read = readable(publications, limits=chosen.limits)
    terms = chosen.terms if rows.isStreaming else chosen.batch_terms
    check_session(rows, terms.buckets)
    found = matchers(publications, subscriptions, subscribers, chosen.parts, limits=chosen.limits)
    check_sequences(publications, found)
    future_us = chosen.future_us if rows.isStreaming else None
    stage = Flow(found, read, terms.buckets, chosen.prune, rows.isStreaming, future_us)
    sent = sent_to_parts(rows if future_us is None else with_now(rows), found)
    flow = sent.mapInArrow(stage.batches, from_arrow_schema(FLOW))
    timed = with_time(flow, terms.buckets, chosen.until, chosen.clock)
    return run_buckets(timed, roster(found), terms, chosen.state, read)


def with_now(publications: DataFrame) -> DataFrame:
    """Add the time of the micro-batch: Spark logs it, so that a replayed batch has the same."""
    return publications.withColumn(NOW, f.unix_micros(f.current_timestamp()))


def sent_to_parts(publications: DataFrame, found: Matchers) -> DataFrame:
    """Send every row to each part of the subscribers, where there are several."""
    if found.parts == 1:
        return publications
    numbers = f.array(*(f.lit(part) for part in range(found.parts)))
    sent = publications.withColumn(PART, f.explode(numbers))
    return sent.repartition(found.parts, PART)


def target(  # noqa: PLR0913
    events: DataFrame,
    subscriptions: Subscriptions,
    k: int = 20,
    scorer: object = "exact",
    *,
    subscribers: Subscribers = None,
    parts: int = 1,
    limits: Limits = TRUSTED,
) -> DataFrame:
    """Give the k best subscriptions of each event: event, position, subscription, score.

    `subscribers` have what some prefer over what, for `preference`. With several `parts` the best
    of each are put together, which a stream cannot do.
    """
    part, most = read_scorer(scorer), validate.count("k", k)
    rows, read = readable(events, limits=limits)
    found = matchers(
        events, subscriptions, subscribers, parts, seal=ranked_by_index(part), limits=limits
    )
    work = Targets(found, read, most, part)
    if found.parts == 1:
        return rows.mapInArrow(work.batches, from_arrow_schema(TARGETS))
    if events.isStreaming:
        raise InvalidPolicy("targets of several parts are for batches; in a stream use one part")
    numbered = rows.withColumn(ROW, f.monotonically_increasing_id())
    schema = from_arrow_schema(TARGETS.append(pa.field(ROW, pa.int64())))
    best = Window.partitionBy(ROW).orderBy(f.desc("score"), f.asc("subscription"))
    all_of_them = sent_to_parts(numbered, found).mapInArrow(work.batches, schema)
    ranked = all_of_them.withColumn("position", f.row_number().over(best).cast("long"))
    return ranked.where(f.col("position") <= most).drop(ROW)


def read_scorer(scorer: object) -> Any:
    """Give the scorer that a name or a form stands for."""
    return parts.read(SCORERS, "scorer", scorer)
