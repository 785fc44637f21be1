"""What may be said of a pipeline besides who wants what."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from tidings.errors import InvalidPolicy
from tidings.model import validate
from tidings.model.limits import TRUSTED, Limits, check_limits
from tidings.model.values import parse_duration_us
from tidings.spark.state_stage.bucket import Terms

BUCKETS: Final = 8
FUTURE: Final = "5m"


@dataclass(frozen=True)
class Options:
    """How late events may come, how long ids are remembered, how many buckets; and what time does.

    In a stream, an event is late if it is older, by more than `lateness`, than the newest one of
    an earlier batch; one that is not waits so long for others from before it. In a batch all has
    come. An event whose id came before, no longer than `remember` ago, is a dead letter. `parts`,
    of which `buckets` is a multiple, splits the subscribers as in `match`. With `prune`, matches
    that cannot win are not sent to the buckets; then the size of a period, and accounts, count what
    was sent, and an id that comes twice with other values may hide a match. `until` (batch only)
    says up to which time periods are closed at the end. `clock` (streams only) is how often time
    passes by itself, so that periods end where nothing is published; then what is published must
    carry the time of day, since it is late beside the clock as well. `state` is where a query with
    a new checkpoint begins: what `rebucket` has read from another one. `future` (streams only) is
    how far ahead of the clock an event may be published: one that is further ahead is a dead letter
    and moves no watermark, so one wrong date cannot make all later events late. The clock is that
    of the micro-batch, which is the same when Spark replays it; None, for replays of events whose
    times are not those of the day, judges none. A record above the `limits` is a dead letter.
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

    @property
    def future_us(self) -> int | None:
        """How far ahead of the clock an event may be; None: as far as it likes."""
        return None if self.future is None else parse_duration_us(self.future)

    @property
    def terms(self) -> Terms:
        """What buckets need of it."""
        buckets = validate.count("buckets", self.buckets)
        return Terms(parse_duration_us(self.lateness), parse_duration_us(self.remember), buckets)

    @property
    def batch_terms(self) -> Terms:
        """What buckets need of it in a batch: all has come, so nothing waits for what is late."""
        return self.terms._replace(lateness_us=0)


def read_options(given: Mapping[str, Any]) -> Options:
    """Give the options of these names; an unknown one is refused."""
    for name in given:
        validate.choice("an option", name, [each.name for each in fields(Options)])
    check_limits(given.get("limits", TRUSTED), InvalidPolicy)
    return Options(**given)
