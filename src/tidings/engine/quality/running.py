"""How good deliveries are, beside all that plain publish/subscribe would have sent.

Running sums, a few operations a match or delivery: cheap enough to be always on.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from tidings.compiled.array_types import Float64s
from tidings.diversify import Distance
from tidings.diversify.distance import Overlap
from tidings.engine.quality.set_diversity import SPAN, make_set_diversity
from tidings.model.records import Delivery, Event, Match
from tidings.model.values import SECOND_US

Lookup = Callable[[str], Event | None]
_STRAY: Final = 64


@dataclass(frozen=True)
class Report:
    """What was measured; a mean over nothing is None.

    `share` of the matches were delivered. `mean_score` is that of all matches, `mean_rank` that of
    the deliveries. `mean_age_s` is how old events were when they were delivered (freshness).
    `diversity` is that of sets (PREF Def. 8): the mean distance between deliveries to the same
    subscriber, of those less than `SPAN` deliveries apart. `coverage` is the share of subscriptions
    with a match that got a delivery.
    """

    matches: int
    delivered: int
    share: float | None
    mean_score: float | None
    mean_rank: float | None
    mean_age_s: float | None
    diversity: float | None
    coverage: float | None

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        return dict(vars(self))


class Mean:
    """A mean that grows."""

    def __init__(self) -> None:
        self._sum = 0.0
        self.count = 0

    def add(self, value: float, count: int = 1) -> None:
        """Take one more value in, or the sum of so many."""
        self._sum += value
        self.count += count

    @property
    def value(self) -> float | None:
        """The mean so far."""
        return self._sum / self.count if self.count else None


class Quality:
    """Measures a stream as it goes by: matches first, then what was delivered of them.

    >>> quality = Quality()
    >>> event = Event("e1", {"genre": "drama"}, published_at=0)
    >>> quality.matched([Match("addison", event, 0.5, ("s1",)), Match("bob", event, 0.9, ("s2",))])
    >>> delivery = Delivery("bob", "e1", 0.9, 1, {}, ("s2",), 1, 3_000_000)
    >>> quality.delivered([delivery], lambda _: event)
    >>> report = quality.report()
    >>> (report.share, report.mean_score, report.mean_rank, report.mean_age_s, report.coverage)
    (0.5, 0.7, 0.9, 3.0, 0.5)
    """

    def __init__(self, distance: Distance | None = None, span: int = SPAN) -> None:
        self._sets = make_set_diversity(distance or Overlap(), span)
        self._scores, self._ranks, self._ages = (Mean() for _ in range(3))
        self._matched: set[str] = set()
        self._served: set[str] = set()
        self._gone_matched = self._gone_served = 0

    def matched(self, matches: Iterable[Match]) -> None:
        """Take matches in."""
        for match in matches:
            self._scores.add(match.score)
            self.wanted(match.matched)

    def matched_rows(self, scores: Float64s) -> None:
        """Take matches in as an array of their scores; `wanted` tells which subscriptions."""
        self._scores.add(float(scores.sum()), len(scores))

    def wanted(self, subscriptions: Iterable[str]) -> None:
        """Note that subscriptions matched; once is enough."""
        self._matched.update(subscriptions)

    def delivered(self, deliveries: Iterable[Delivery], event_of: Lookup) -> None:
        """Take deliveries in; age and diversity are measured of events that can be looked up."""
        sums, name, event = [0.0, 0, 0, 0], "", None
        for each in deliveries:
            sums[0] += each.rank
            sums[1] += 1
            self._served.update(each.matched)
            if each.event != name:  # most deliveries of a call are of one event
                name, event = each.event, event_of(each.event)
            if event is not None:
                sums[2] += each.delivered_us - event.published_us
                sums[3] += 1
                self._sets.add(each.subscriber, event)
        self._ranks.add(sums[0], int(sums[1]))
        self._ages.add(sums[2] / SECOND_US, int(sums[3]))
        if len(self._served) > 2 * len(self._matched) + _STRAY:
            self._served &= self._matched  # windows may deliver what a removed subscription matched

    def forget(self, subscriber: str) -> None:
        """Forget the last deliveries of somebody who left."""
        self._sets.forget(subscriber)

    def removed(self, subscriptions: Iterable[str]) -> None:
        """Count subscriptions that are gone, in place of their ids."""
        for name in subscriptions:
            if name in self._matched:
                self._matched.remove(name)
                self._gone_matched += 1
            if name in self._served:
                self._served.remove(name)
                self._gone_served += 1

    def report(self) -> Report:
        """Tell what was measured so far."""
        matches, delivered = self._scores.count, self._ranks.count
        apart, pairs = self._sets.total()
        wanted = len(self._matched) + self._gone_matched
        served = len(self._served) + self._gone_served
        return Report(
            matches=matches,
            delivered=delivered,
            share=delivered / matches if matches else None,
            mean_score=self._scores.value,
            mean_rank=self._ranks.value,
            mean_age_s=self._ages.value,
            diversity=apart / pairs if pairs else None,
            coverage=min(1.0, served / wanted) if wanted else None,
        )
