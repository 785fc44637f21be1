"""Options of a pipeline besides its inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from tidings.errors import InvalidPolicy, shown
from tidings.model import validate
from tidings.model.limits import TRUSTED, Limits, check_limits
from tidings.model.values import parse_duration_us
from tidings.policy import DEFAULT_POLICY, Policy
from tidings.spark.match_stage.event_watch import EventWatch
from tidings.spark.state_stage.bucket import BucketSettings

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
    clock (streams only): the interval at which time passes by itself, so that periods end where
        nothing is published. Publications must then carry the time of day, because they are late
        relative to the clock as well. A stream with a column `clock_us` of times, in microseconds,
        takes the place of an interval.
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
