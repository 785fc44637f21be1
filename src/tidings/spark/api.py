"""The functions of `tidings.spark`: DataFrame in, DataFrame out, batch and streaming alike."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from tidings.errors import InvalidPolicy, shown
from tidings.formats.arrow import MATCHES
from tidings.index.access.description import AccessDescription
from tidings.index_files.mapped_matcher import ranked_by_index
from tidings.model import named_parts, validate
from tidings.model.limits import TRUSTED, Limits, check_limits
from tidings.model.values import parse_duration_us
from tidings.policy import DEFAULT_POLICY, Policy
from tidings.score import SCORERS
from tidings.spark.inputs import DefaultPolicy, Subscribers, Subscriptions, matcher_source
from tidings.spark.match_stage.event_watch import EventWatch
from tidings.spark.match_stage.matcher_source import FolderSource, MatcherSource
from tidings.spark.match_stage.results import (
    DEAD_LETTERS,
    ROW,
    TARGETS,
    TargetStage,
    dead_letter_batches,
    match_batches,
)
from tidings.spark.match_stage.stage import BUCKET_ROWS, LAST, NOW, PART, MatchStage
from tidings.spark.publications import check_sequences, readable
from tidings.spark.session import check_session
from tidings.spark.state_stage.bucket import BucketSettings
from tidings.spark.state_stage.processor import run_buckets, with_ticks

# Options of a pipeline besides its inputs.

BUCKETS: Final = 8
FUTURE: Final = "5m"
MOST_COLUMNS: Final = 10_000


@dataclass(frozen=True)
class Options:
    """Options of `outcomes` and `feed`.

    lateness: in a stream, an event is late if it is older, by more than this, than the newest event
        of an earlier batch. Other events wait this long for earlier ones. In a batch nothing waits.
    remember: an event whose id was seen no longer than this ago is a dead letter.
    buckets: number of groups of subscribers; each keeps its state in one blob.
    parts: splits the subscribers as in `match`; `buckets` must be a multiple of it.
    prune: leaves out matches that cannot win before they are sent to the buckets. Then accounts and
        the size of a period count only the matches sent, and an id that is published twice with
        other values may hide a match.
    until (batches only): the time up to which periods are closed at the end.
    clock (streams only): the interval at which time advances without events, so that periods end
        where nothing is published. Publications must then carry the time of day, because they are
        late relative to the clock as well. A stream with a column `clock_us` of times, in
        microseconds, takes the place of an interval.
    state: first state of a query with a new checkpoint, read by `rebucket` from another one.
    future (streams only): how far ahead of the clock an event may be published. One that is further
        ahead is a dead letter and moves no watermark, so one wrong date cannot make all later
        events late. The clock is that of the micro-batch, which is the same when Spark replays it.
        None, for replays of events whose times are not those of the day, allows any time.
    limits: a record above them is a dead letter.
    content: columns whose values every delivery carries in its `content`, such as a title and a
        link. They remain attributes, so deliveries are the same; nested columns, which cannot be
        attributes, are content only. Publications may have a column `content` instead.
    watch: an `EventWatch`, which compares subscriptions with the events while the query runs.
    default_policy: that of owners of subscriptions that are not subscribers; None for none.
    """

    lateness: object = "0s"
    remember: object = "7d"
    buckets: int = BUCKETS
    parts: int = 1
    prune: bool = False
    until: object = None
    clock: object = None
    state: Any = None
    future: object = FUTURE
    limits: Limits = TRUSTED
    content: Sequence[str] = ()
    watch: EventWatch | None = None
    default_policy: Policy | Mapping[str, Any] | None = DEFAULT_POLICY

    @property
    def future_us(self) -> int | None:
        """How far ahead of the clock an event may be, or None for any time."""
        return None if self.future is None else parse_duration_us(self.future)

    @property
    def of_matchers(self) -> dict[str, Any]:
        """The options of `matcher_source`."""
        names = ("parts", "limits", "default_policy")
        return {name: getattr(self, name) for name in names}

    def bucket_settings(self, *, streaming: bool) -> BucketSettings:
        """Return the settings of buckets; in a batch nothing is late, so nothing waits."""
        lateness_us, remember_us = map(parse_duration_us, (self.lateness, self.remember))
        buckets = validate.count("buckets", self.buckets)
        return BucketSettings(lateness_us if streaming else 0, remember_us, buckets)


def read_options(options: Mapping[str, Any]) -> Options:
    """Return the options of these names; an unknown one is refused."""
    for name in options:
        validate.choice("an option", name, [field.name for field in fields(Options)])
    check_limits(options.get("limits", TRUSTED), InvalidPolicy)
    return Options(**{**options, "content": column_names("content", options.get("content", ()))})


def column_names(what: str, names: object) -> tuple[str, ...]:
    """Return the names of columns; one text, whose letters would be names, is refused."""
    listed = validate.listed(names, MOST_COLUMNS)
    if listed is None or not all(isinstance(name, str) and name for name in listed):
        raise InvalidPolicy(f"{what} must be a list of column names, not {shown(names)}")
    return tuple(listed)


def match(
    publications: DataFrame,
    subscriptions: Subscriptions,
    subscribers: Subscribers = None,
    *,
    parts: int = 1,
    limits: Limits = TRUSTED,
    default_policy: DefaultPolicy = DEFAULT_POLICY,
) -> DataFrame:
    """Return every subscriber's matches: subscriber, event, published_at, score, matched.

    `parts` splits the subscribers if an index of all is more than a worker should hold. Rows above
    the `limits` are skipped like others that cannot be read. Owners of subscriptions that are not
    subscribers have the `default_policy`; with None they get no matches.
    """
    rows, read = readable(publications, limits=limits)
    source = matcher_source(
        publications,
        subscriptions,
        subscribers,
        parts,
        limits=limits,
        default_policy=default_policy,
    )
    work = partial(match_batches, source, read)
    return send_to_parts(rows, source).mapInArrow(work, from_arrow_schema(MATCHES))


def dead_letters(publications: DataFrame, *, limits: Limits = TRUSTED) -> DataFrame:
    """Return the rows that cannot be read as publications, as JSON with the reason.

    The columns are record and reason. `match` and `target` skip these rows; `outcomes` includes
    them.
    """
    rows, read = readable(publications, limits=limits)
    work = partial(dead_letter_batches, read)
    return rows.mapInArrow(work, from_arrow_schema(DEAD_LETTERS))


def feed(
    publications: DataFrame,
    subscriptions: Subscriptions,
    subscribers: Subscribers = None,
    **options: Any,
) -> DataFrame:
    """Return the deliveries of every subscriber by its policy; `options` are those of `outcomes`.

    Publications of the same time are taken in order of sequence, then of id.
    """
    return _run(publications, subscriptions, subscribers, options, only_deliveries=True)


def outcomes(
    publications: DataFrame,
    subscriptions: Subscriptions,
    subscribers: Subscribers = None,
    **options: Any,
) -> DataFrame:
    """Return deliveries, late events and dead letters in one DataFrame, distinguished by `kind`.

    `options` are the fields of `Options`: lateness, remember, buckets, parts,
    prune, until, clock, state, future, limits, content, watch, default_policy. A dead letter is a
    row that cannot be read, an event for which matching fails, or a subscriber that is set aside
    because its own policy fails; it has the reason, and everything else continues. What is due
    while its subscriber is paused has the kind `dropped`.
    """
    return _run(publications, subscriptions, subscribers, options, only_deliveries=False)


def _run(
    publications: DataFrame,
    subscriptions: Subscriptions,
    subscribers: Subscribers,
    options: Mapping[str, Any],
    *,
    only_deliveries: bool,
) -> DataFrame:
    chosen = read_options(options)
    rows, read = readable(publications, LAST, limits=chosen.limits, content=chosen.content)
    settings = chosen.bucket_settings(streaming=rows.isStreaming)
    check_session(rows, settings.buckets)
    publications = publications.drop(LAST)
    source = matcher_source(publications, subscriptions, subscribers, **chosen.of_matchers)
    check_sequences(publications, source)
    future_us = chosen.future_us if rows.isStreaming else None
    stage = MatchStage(
        source,
        read,
        settings.buckets,
        chosen.prune,
        rows.isStreaming,
        future_us,
        chosen.watch,
    )
    sent = send_to_parts(rows if future_us is None else with_now(rows), source)
    matched = sent.mapInArrow(stage.batches, from_arrow_schema(BUCKET_ROWS))
    ticking = with_ticks(matched, settings.buckets, chosen.until, chosen.clock)
    return run_buckets(
        ticking,
        source.policy_source(),
        settings,
        chosen.state,
        read,
        only_deliveries=only_deliveries,
    )


def with_now(publications: DataFrame) -> DataFrame:
    """Add the time of the micro-batch; Spark logs it, so a replayed batch has the same."""
    return publications.withColumn(NOW, f.unix_micros(f.current_timestamp()))


def send_to_parts(publications: DataFrame, source: MatcherSource) -> DataFrame:
    """Return the rows once for each part of the subscribers, if there are several."""
    if source.parts == 1:
        return publications
    numbers = f.array(*(f.lit(part) for part in range(source.parts)))
    sent = publications.withColumn(PART, f.explode(numbers))
    return sent.repartition(source.parts, PART)


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
    """Return the k best subscriptions of each event: event, position, subscription, score.

    The scorer `preference` takes preferences from `subscribers`. With several `parts` the best of
    each are combined, which a stream cannot do.
    """
    scoring, most = named_parts.read(SCORERS, "scorer", scorer), validate.count("k", k)
    rows, read = readable(events, limits=limits)
    source = matcher_source(
        events, subscriptions, subscribers, parts, seal=ranked_by_index(scoring), limits=limits
    )
    stage = TargetStage(source, read, most, scoring)
    if source.parts == 1:
        return rows.mapInArrow(stage.batches, from_arrow_schema(TARGETS))
    if events.isStreaming:
        raise InvalidPolicy("targets of several parts are for batches; in a stream use one part")
    numbered = rows.withColumn(ROW, f.monotonically_increasing_id())
    schema = from_arrow_schema(TARGETS.append(pa.field(ROW, pa.int64())))
    best = Window.partitionBy(ROW).orderBy(f.desc("score"), f.asc("subscription"))
    candidates = send_to_parts(numbered, source).mapInArrow(stage.batches, schema)
    ranked = candidates.withColumn("position", f.row_number().over(best).cast("long"))
    return ranked.where(f.col("position") <= most).drop(ROW)


@dataclass(frozen=True)
class PartPlan:
    """The subscribers of one part: the index of its file, and what is kept beside it."""

    index: AccessDescription
    beside: int
    """Subscriptions that changed after the file was written, or that cannot be written to it."""

    def __str__(self) -> str:
        return f"{self.index}\n  beside it: {self.beside:,} subscriptions."


@dataclass(frozen=True)
class SparkPlan:
    """The stages of a pipeline on Spark, and the structures of the matchers of its workers."""

    streaming: bool
    buckets: int
    version: int | None
    """The version of the index files, or None if subscribers travel as objects."""
    follows: bool
    parts: tuple[PartPlan, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as they are written as JSON."""
        return asdict(self)

    def __str__(self) -> str:
        if self.version is None:
            source = "objects, since a policy holds a function of the user"
        else:
            source = f"index files of version {self.version}"
            source += ", newer ones from the next batch onwards" if self.follows else ""
        state = "a state store, one blob a bucket" if self.streaming else "memory, as it is a batch"
        lines = [
            f"matching: {len(self.parts)} parts of {source}.",
            f"windows: {self.buckets} buckets in {state}.",
        ]
        return "\n".join([*lines, *(f"part {n}: {part}" for n, part in enumerate(self.parts))])


def describe(
    publications: DataFrame,
    subscriptions: Subscriptions,
    subscribers: Subscribers = None,
    **options: Any,
) -> SparkPlan:
    """Return how `feed` would run with the same arguments; `print` the result to read it.

    The index files are written as `feed` writes them, and read in this process.
    """
    chosen = read_options(options)
    settings = chosen.bucket_settings(streaming=publications.isStreaming)
    source = matcher_source(publications, subscriptions, subscribers, **chosen.of_matchers)
    matchers = [source.matcher(part) for part in range(source.parts)]
    return SparkPlan(
        publications.isStreaming,
        settings.buckets,
        source.task_version() if isinstance(source, FolderSource) else None,
        source.follows,
        tuple(PartPlan(matcher.describe(), matcher.beside) for matcher in matchers),
    )
