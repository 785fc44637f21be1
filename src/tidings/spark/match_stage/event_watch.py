"""Observations of workers about the events: a profile, and the subscriptions that matched.

Workers add to an accumulator, and Spark brings the sums to the driver. A batch that is replayed
adds the same again, which changes no finding.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from pyspark.accumulators import AccumulatorParam
from pyspark.sql import SparkSession

from tidings.model.diagnosis import Diagnosis, diagnose
from tidings.model.profile import Profile
from tidings.model.records import Event, Subscription

FULLY_READ: Final = 32
ONE_IN: Final = 64
"""The values of the first events of a task are read, then those of one event in `ONE_IN`."""
MOST_MATCHED: Final = 10_000
"""Above this number of matched subscriptions, it is not known which ones matched."""


@dataclass
class Observations:
    """A profile of the observed events, and the subscriptions that matched; None if too many."""

    profile: Profile = field(default_factory=Profile)
    matched: set[str] | None = field(default_factory=set)

    def add_events(self, events: Sequence[Event]) -> None:
        """Add events."""
        self.profile.add_sample(events, FULLY_READ, ONE_IN)

    def add_matches(self, subscriptions: Iterable[Sequence[str]]) -> None:
        """Add the ids of subscriptions that matched, which may repeat."""
        for names in subscriptions if self.matched is not None else ():
            self._add_matched(names)

    def merge(self, other: "Observations") -> None:
        """Add the observations of another task."""
        self.profile.merge(other.profile)
        self._add_matched(other.matched)

    def _add_matched(self, names: Collection[str] | None) -> None:
        if self.matched is None or names is None or len(names) > MOST_MATCHED:
            self.matched = None
            return
        self.matched.update(map(str, names))
        if len(self.matched) > MOST_MATCHED:
            self.matched = None


class ObservationSum(AccumulatorParam[Observations]):
    """The rule by which Spark adds up the observations of its workers."""

    def zero(self, value: Observations) -> Observations:
        """Return the observations of no event."""
        return Observations()

    def addInPlace(self, value1: Observations, value2: Observations) -> Observations:  # noqa: N802
        """Add the second to the first."""
        value1.merge(value2)
        return value1


class EventWatch:
    """Sees the events of a query on its workers, so that subscriptions can be compared with them.

    Pass it as the option `watch` of `feed` or `outcomes`. While the query runs, and after that,
    `diagnose` returns what the subscriptions ask for and the events do not have.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._seen = spark.sparkContext.accumulator(Observations(), ObservationSum())

    @contextmanager
    def watching(self) -> Iterator[Observations]:
        """Yield the observations of a task on a worker, which are added up when the task ends.

        One sum for all batches of a task costs a few percent of their matching; adding each of them
        takes up to a third of it.
        """
        observed = Observations()
        try:
            yield observed
        finally:
            self._seen.add(observed)

    def diagnose(
        self,
        subscriptions: Iterable[Subscription],
        counts_parts: Callable[[Subscription], bool] = lambda _: False,
    ) -> Diagnosis:
        """Compare subscriptions with the events that were seen so far."""
        totals = self._seen.value
        return diagnose(subscriptions, totals.profile, totals.matched, counts_parts)
