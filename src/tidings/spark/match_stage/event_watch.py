"""What workers see of the events: a profile, and the subscriptions that matched.

Workers add to an accumulator, and Spark brings the sums to the driver. A batch that is replayed
adds the same once more, which changes nothing that is said of it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyspark.accumulators import AccumulatorParam
from pyspark.sql import SparkSession

from tidings.model.diagnosis import Diagnosis, diagnose
from tidings.model.profile import Profile
from tidings.model.records import Event, Subscription

FULLY_READ: Final = 32
ONE_IN: Final = 64
"""The values of the first events of a call are read, then those of one event in `ONE_IN`."""
MOST_MATCHED: Final = 10_000
"""Above this number of matched subscriptions, it is not known which ones matched."""


@dataclass
class Sight:
    """What was seen; `matched` is None if too many subscriptions matched to name them."""

    profile: Profile = field(default_factory=Profile)
    matched: set[str] | None = field(default_factory=set)

    def merge(self, other: "Sight") -> None:
        """Add what was seen elsewhere."""
        self.profile.merge(other.profile)
        if self.matched is not None:
            self.matched = None if other.matched is None else self.matched | other.matched
            if self.matched is not None and len(self.matched) > MOST_MATCHED:
                self.matched = None


class SumOfSights(AccumulatorParam[Sight]):
    """How Spark adds what the workers saw."""

    def zero(self, value: Sight) -> Sight:
        """Return what was seen of no event."""
        return Sight()

    def addInPlace(self, value1: Sight, value2: Sight) -> Sight:  # noqa: N802
        """Add the second to the first."""
        value1.merge(value2)
        return value1


class EventWatch:
    """Sees the events of a query on its workers, so that subscriptions can be compared with them.

    Pass it as the option `watch` of `feed` or `outcomes`. While the query runs, and after that,
    `diagnose` returns what the subscriptions ask for and the events do not have.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._seen = spark.sparkContext.accumulator(Sight(), SumOfSights())

    def see_events(self, events: Sequence[Event]) -> None:
        """Add events; called on workers."""
        sight = Sight()
        sight.profile.add_sample(events, FULLY_READ, ONE_IN)
        self._seen.add(sight)

    def see_matches(self, subscriptions: Iterable[Sequence[str]]) -> None:
        """Add the ids of subscriptions that matched, which may repeat; called on workers."""
        sight = Sight()
        for names in subscriptions:
            if len(names) > MOST_MATCHED or sight.matched is None:
                sight.matched = None
                break
            sight.matched.update(map(str, names))
        self._seen.add(sight)

    def diagnose(
        self,
        subscriptions: Iterable[Subscription],
        counts_parts: Callable[[Subscription], bool] = lambda _: False,
    ) -> Diagnosis:
        """Compare subscriptions with the events that were seen so far."""
        seen = self._seen.value
        return diagnose(subscriptions, seen.profile, seen.matched, counts_parts)
