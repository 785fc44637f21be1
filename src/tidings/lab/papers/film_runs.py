"""Runs of many policies over the same films (PREF 7.2.2), for the figures that compare them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Final, Literal, NamedTuple

from tidings.diversify import diversity
from tidings.diversify.distance import Overlap
from tidings.diversify.greedy import DivRank
from tidings.engine.engine import Engine
from tidings.lab.papers.experiment import Progress
from tidings.lab.stopwatch import least_times
from tidings.lab.workloads.movies import (
    ORDERS,
    Order,
    RankedFilms,
    draw_films,
    film_stream,
    subscriptions,
)
from tidings.model.records import Delivery, Event, Subscription
from tidings.model.values import SECOND_US
from tidings.policy import Policy, Subscriber
from tidings.rank.matcher import Matcher
from tidings.window.history import History
from tidings.window.periodic import Periodic
from tidings.window.sliding import Sliding

Kind = Literal["periodic", "sliding", "history"]
KINDS: Final[tuple[Kind, ...]] = ("periodic", "sliding", "history")
SIGMAS: Final = (1.0, 0.5, 0.0)
COUNT: Final = "published"
"""Lengths count publications, whether they match or not."""
STEP: Final = 50
"""The interval, in publications, at which the current lists are read for Figure 14."""


@dataclass(frozen=True)
class StreamParameters:
    """The films and subscriptions, and the values of the policies that are compared."""

    published: int = 2_000
    matching: int = 930
    subscriptions: int = 20
    lengths: tuple[int, ...] = (200, 400)
    ks: tuple[int, ...] = (4, 8, 12, 16, 20)


class PolicyKey(NamedTuple):
    """One policy: the kind and length of its window, k and sigma."""

    kind: Kind
    length: int
    k: int
    sigma: float

    @property
    def name(self) -> str:
        """The id of the subscriber with this policy."""
        return f"{self.kind} {self.length} {self.k} {self.sigma:g}"

    def policy(self) -> Policy:
        """Return the policy."""
        windows: dict[Kind, Callable[[], Periodic | Sliding | History]] = {
            "periodic": lambda: Periodic(self.length, count=COUNT),
            "sliding": lambda: Sliding(self.length, count=COUNT),
            "history": lambda: History(self.length, count=COUNT),
        }
        window = windows[self.kind]()
        return Policy(k=self.k, window=window, diversify=DivRank(sigma=self.sigma))


class PolicyOutcome(NamedTuple):
    """The deliveries of a policy: means over all of them, and the diversity of its lists."""

    delivered: int
    rank: float
    age: float
    diversity: float


class StreamRuns(NamedTuple):
    """The outcomes by order and policy, and the baselines they are compared with."""

    parameters: StreamParameters
    outcomes: dict[tuple[Order, PolicyKey], PolicyOutcome]
    mean_rank: float
    microseconds: dict[PolicyKey, float]

    def of(self, order: Order, kind: Kind, length: int, sigma: float) -> list[PolicyOutcome]:
        """Return the outcomes for all k."""
        keys = (PolicyKey(kind, length, k, sigma) for k in self.parameters.ks)
        return [self.outcomes[order, key] for key in keys]


def stream_runs(parameters: StreamParameters, seed: int, progress: Progress) -> StreamRuns:
    """Publish the films in every order to a subscriber per policy."""
    keys = [
        PolicyKey(*values) for values in product(KINDS, parameters.lengths, parameters.ks, SIGMAS)
    ]
    steps = len(ORDERS) + 1
    progress(0, steps, "drawing films")
    wishes = subscriptions(parameters.subscriptions, seed)
    drawn = draw_films(ranker(wishes), parameters.published, parameters.matching, seed)
    outcomes: dict[tuple[Order, PolicyKey], PolicyOutcome] = {}
    for number, order in enumerate(ORDERS):
        progress(number, steps, order)
        stream = film_stream(drawn, order, seed)
        outcomes |= {(order, key): out for key, out in published(stream, wishes, keys).items()}
    progress(len(ORDERS), steps, "times")
    return StreamRuns(
        parameters, outcomes, mean_rank(drawn), times(parameters, drawn, wishes, seed)
    )


def ranker(wishes: Iterable[Subscription]) -> Callable[[Event], float | None]:
    """Return a function of the rank of an event, None if it does not match."""
    matcher = Matcher()
    matcher.subscribe(Subscriber("subscriber", Policy()))
    matcher.add_many(wishes)

    def rank_of(event: Event) -> float | None:
        matches = matcher.matches(event)
        return matches[0].score if matches else None

    return rank_of


def mean_rank(drawn: RankedFilms) -> float:
    """Return the mean rank of all films that match."""
    return fmean(rank for _, rank in drawn.matching)


def published(
    stream: Sequence[Event], wishes: Sequence[Subscription], keys: Sequence[PolicyKey]
) -> dict[PolicyKey, PolicyOutcome]:
    """Publish a stream to one subscriber per policy, all with the same subscriptions."""
    engine = engine_of(wishes, keys)
    events = {event.id: event for event in stream}
    deliveries: dict[str, list[Delivery]] = {key.name: [] for key in keys}
    lists: dict[str, list[list[str]]] = {key.name: [] for key in keys}
    for start in range(0, len(stream), STEP):
        for delivery in engine.publish_many(stream[start : start + STEP]):
            deliveries[delivery.subscriber].append(delivery)
        for key in keys:
            if key.kind != "periodic":
                lists[key.name].append([entry.event for entry in engine.feed(key.name)])
    for delivery in engine.publish(after(stream)):
        deliveries[delivery.subscriber].append(delivery)
    for key in keys:
        if key.kind == "periodic":
            lists[key.name] = list(by_time(deliveries[key.name]))
    return {key: outcome(deliveries[key.name], lists[key.name], events) for key in keys}


def engine_of(wishes: Sequence[Subscription], keys: Sequence[PolicyKey]) -> Engine:
    """Return an engine with a subscriber for each policy."""
    engine = Engine()
    for key in keys:
        engine.subscribe(Subscriber(key.name, key.policy()))
        engine.add_many(
            Subscription(f"{wish.id} {key.name}", key.name, wish.where, prefrank=wish.prefrank)
            for wish in wishes
        )
    return engine


def after(stream: Sequence[Event]) -> Event:
    """Return an event that matches nothing and ends the last period."""
    return Event("end", {}, len(stream))


def by_time(deliveries: Sequence[Delivery]) -> Iterator[list[str]]:
    """Yield the events that were delivered together."""
    groups: dict[int, list[str]] = {}
    for delivery in deliveries:
        groups.setdefault(delivery.delivered_us, []).append(delivery.event)
    yield from groups.values()


def outcome(
    deliveries: Sequence[Delivery], lists: Sequence[Sequence[str]], events: dict[str, Event]
) -> PolicyOutcome:
    """Return the means over deliveries and lists; of lists with at least two events."""
    ages = [delivery.delivered_us - events[delivery.event].published_us for delivery in deliveries]
    distances = [
        diversity([events[name] for name in names], Overlap()) for names in lists if len(names) > 1
    ]
    return PolicyOutcome(
        len(deliveries),
        fmean(delivery.rank for delivery in deliveries),
        fmean(ages) / SECOND_US,
        fmean(distances),
    )


def times(
    parameters: StreamParameters, drawn: RankedFilms, wishes: Sequence[Subscription], seed: int
) -> dict[PolicyKey, float]:
    """Return the microseconds per event of each kind and length of window, at the largest k."""
    stream = film_stream(drawn, "random", seed)
    keys = [
        PolicyKey(*shape, parameters.ks[-1], 0.5) for shape in product(KINDS, parameters.lengths)
    ]
    calls = {
        key.name: lambda key=key: engine_of(wishes, [key]).publish_many(stream) for key in keys
    }
    spent = least_times(calls, 1)
    return {key: spent[key.name] * 1e3 / len(stream) for key in keys}
