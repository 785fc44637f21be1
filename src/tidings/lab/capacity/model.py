"""The model of capacity: processor time, memory and disk of a pipeline as a function of its load.

A trigger of E events with m matches each in b buckets, n subscriptions and a state of B bytes takes
the processor time

    trigger + E (event + b bucket + m (match + growth log2(n / 100,000))) + B state_byte

Every bucket is read and written once per trigger, whichever subscribers have matches in it. An
event costs each bucket that it reaches a little, however many matches it has there. In an index of
twice the size, every match has about the same number of additional cache misses. The state has a
part for each subscriber, one for each match in its window, and the ids of events that each bucket
remembers. All costs are measured on the machine at hand.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, NamedTuple

from tidings.errors import InvalidForm, shown
from tidings.policy import DEFAULT_POLICY, Policy
from tidings.window.continuous import Continuous

BASE: Final = 100_000
"""Subscriptions at which the cost of a match is `match_us`."""
BUSY: Final = 0.7
"""The share of the cores' time that the load may take, so that a burst or a restart is absorbed."""
BUCKET: Final = 5_000
"""Subscribers per bucket, above which a task becomes long."""
PART_BYTES: Final = 8 << 30
"""Bytes of the index of one part, which a worker maps into memory."""
WORKER_BYTES: Final = 1 << 30
"""Memory of a core in addition to index and state: a Python worker, Java, and the batch itself."""
VERSIONS: Final = 2
"""Versions of the index on disk: the one in use, and the next one while it is built."""
SNAPSHOTS: Final = 3
"""Snapshots of the state on disk, in addition to the changes between them."""
DAY_S: Final = 86_400
ID_BYTES: Final = 24
CAPACITY: Final = 1 << 15
"""Ids of events that a bucket remembers; one has ID_BYTES."""
_US: Final = 1e6
_LEAST, _MOST = 1e-9, 1e15
"""Bounds of what is given, so that no product of some is infinite, and no divisor zero."""


@dataclass(frozen=True)
class Costs:
    """Costs measured by a calibration."""

    trigger_s: float
    event_us: float
    bucket_us: float
    match_us: float
    growth_us: float
    state_byte_us: float
    build_us: float
    index_bytes: float
    subscriber_bytes: float
    held_bytes: float
    event_bytes: float
    overlap: float
    """Processor seconds per second and core while the pipeline is busy."""

    def to_dict(self) -> dict[str, float]:
        """Return the JSON form."""
        return asdict(self)


@dataclass(frozen=True)
class Calibration:
    """The costs that fit the runs best, and others that fit them nearly as well.

    `others` are fitted to single triggers of the runs, so they differ as much as triggers do.
    """

    costs: Costs
    others: tuple[Costs, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return self.costs.to_dict() | {"others": [costs.to_dict() for costs in self.others]}


def read_calibration(form: Any) -> Calibration:
    """Return the calibration of a JSON form, as `to_dict` returned it."""
    if not isinstance(form, Mapping):
        return Calibration(read_costs(form))
    listed = form.get("others", [])
    if not isinstance(listed, list):
        raise InvalidForm(f"calibration: others must be a list of costs, not {shown(listed)}")
    costs = {name: cost for name, cost in form.items() if name != "others"}
    return Calibration(read_costs(costs), tuple(map(read_costs, listed)))


def read_costs(form: Any) -> Costs:
    """Return the costs of a JSON form, as `to_dict` returned it.

    The first calibrations had no `bucket_us`: buckets counted as matches. Nor had they
    `event_bytes`: so did the events that windows hold.
    """
    if isinstance(form, Mapping):
        form = {"bucket_us": 0.0, "event_bytes": 0.0} | {**form}
    names = [field.name for field in fields(Costs)]
    if not isinstance(form, Mapping) or {*form} != {*names}:
        raise InvalidForm(f"a calibration has the fields {', '.join(names)}, not {shown(form)}")
    for name, cost in form.items():
        least = _LEAST if name in ("overlap", "trigger_s") else 0
        if (
            isinstance(cost, bool)
            or not isinstance(cost, int | float)
            or not least <= cost <= _MOST
        ):
            raise InvalidForm(
                f"calibration: {name} must be a number between {least:g} and {_MOST:g}, "
                f"not {shown(cost)}"
            )
    return Costs(**{name: float(cost) for name, cost in form.items()})


@dataclass(frozen=True)
class Demand:
    """The load to plan for."""

    subscriptions: int
    subscribers: int
    events_per_s: float
    matches: float
    policy: Policy = DEFAULT_POLICY
    trigger_s: float = 10.0

    @property
    def held(self) -> float:
        """Matches in the window of a subscriber."""
        rate = self.events_per_s * self.matches / self.subscribers
        return held_at_most(self.policy.window, rate)

    @property
    def buckets(self) -> int:
        """The least number of buckets."""
        return buckets_for(self.subscribers)

    @property
    def reached(self) -> float:
        """The buckets that an event reaches."""
        return buckets_reached(self.matches, self.buckets)

    def __post_init__(self) -> None:
        for name in ("subscriptions", "subscribers", "events_per_s", "matches", "trigger_s"):
            number = getattr(self, name)
            if not _LEAST <= number <= _MOST:
                raise InvalidForm(
                    f"{name} must be a number between {_LEAST:g} and {_MOST:g}, not {shown(number)}"
                )


class Breaking(NamedTuple):
    """The events per second at which all planned cores are busy, and their most costly work."""

    events_per_s: float
    reason: str


@dataclass(frozen=True)
class CapacityPlan:
    """The machines that a demand needs."""

    cores: int
    fewest_cores: int
    most_cores: int
    """The cores that the other costs of the calibration lead to."""
    memory_bytes: int
    disk_bytes: int
    parts: int
    buckets: int
    trigger_s: float
    """Processor seconds of one trigger."""
    fixed_share: float
    """The share of a trigger that does not depend on its events: Spark, and the state."""
    build_s: float
    index_bytes: int
    state_bytes: int
    breaks_first: Breaking

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        form = asdict(self)
        return form | {"breaks_first": self.breaks_first._asdict()}


def held_at_most(window: Any, per_s: float) -> float:
    """Return the matches that a window holds when `per_s` arrive in a second."""
    length = getattr(window, "length", None)
    if length is not None and length.count is not None:
        return float(length.count)
    if isinstance(window, Continuous):
        return 0.0
    return per_s * (DAY_S if length is None else length.us / _US)


def bucket_id_bytes(events: float, matches: float, buckets: int) -> float:
    """Return the bytes of the ids that a bucket remembers, of events that matched in it."""
    return ID_BYTES * min(CAPACITY, events * min(1.0, matches / buckets))


def held_events(held: float, matches: float, reached: float) -> float:
    """Return how many events the buckets hold, each counted in every bucket that holds it.

    `held` are the matches in all windows. The matches of an event in one bucket share it.
    """
    return held * reached / matches


def buckets_for(subscribers: int) -> int:
    """Return the least number of buckets for a number of subscribers."""
    return max(8, math.ceil(subscribers / BUCKET))


def buckets_reached(matches: float, buckets: int) -> float:
    """Return how many buckets have a match of an event, if its subscribers are in any of them.

    >>> [round(buckets_reached(matches, 8), 2) for matches in (0.5, 1.0, 10.0, 100.0)]
    [0.5, 1.0, 5.9, 8.0]
    """
    if matches <= 1:
        return matches
    return float(buckets * (1 - (1 - 1 / buckets) ** matches))


def doublings(subscriptions: int) -> float:
    """Return how often the base doubles until it is the number of subscriptions."""
    return max(0.0, math.log2(subscriptions / BASE))


def match_seconds(costs: Costs, subscriptions: int) -> float:
    """Return the processor time of one match."""
    return (costs.match_us + costs.growth_us * doublings(subscriptions)) / _US


def event_seconds(costs: Costs, subscriptions: int, matches: float, reached: float) -> float:
    """Return the processor time of one event, with its matches in the buckets that it reaches."""
    alone = (costs.event_us + reached * costs.bucket_us) / _US
    return alone + matches * match_seconds(costs, subscriptions)


def fixed_seconds(costs: Costs, state: float) -> float:
    """Return the processor time of a trigger without events, with `state` bytes of state."""
    return costs.trigger_s + state * costs.state_byte_us / _US


def state_bytes(costs: Costs, demand: Demand) -> float:
    """Return the bytes of all windows, once they are full, and of the ids of a week."""
    held = demand.subscribers * demand.held
    windows = demand.subscribers * costs.subscriber_bytes + held * costs.held_bytes
    windows += held_events(held, demand.matches, demand.reached) * costs.event_bytes
    week = demand.events_per_s * 7 * DAY_S
    ids = demand.buckets * bucket_id_bytes(week, demand.matches, demand.buckets)
    return windows + ids


def trigger_seconds(costs: Costs, demand: Demand) -> float:
    """Return the processor time of one trigger."""
    events = demand.events_per_s * demand.trigger_s
    seconds_per_event = event_seconds(costs, demand.subscriptions, demand.matches, demand.reached)
    return fixed_seconds(costs, state_bytes(costs, demand)) + events * seconds_per_event


def events_per_second(costs: Costs, demand: Demand, cores: int) -> float:
    """Return the throughput of a number of cores that do nothing else, at this trigger length."""
    fixed = fixed_seconds(costs, state_bytes(costs, demand))
    usable = cores * costs.overlap * demand.trigger_s - fixed
    event_s = event_seconds(costs, demand.subscriptions, demand.matches, demand.reached)
    return max(0.0, usable) / max(event_s, _LEAST / _US) / demand.trigger_s


def cores_for(costs: Costs, demand: Demand) -> int:
    """Return the cores that a demand takes, at a load of 70 % of their time."""
    seconds = trigger_seconds(costs, demand)
    return max(1, math.ceil(seconds / (demand.trigger_s * BUSY * costs.overlap)))


def make_plan(calibration: Calibration, demand: Demand) -> CapacityPlan:
    """Return what a demand takes, at a load of 70 % of the cores' time."""
    costs = calibration.costs
    seconds, cores = trigger_seconds(costs, demand), cores_for(costs, demand)
    core_counts = [cores, *(cores_for(other, demand) for other in calibration.others)]
    index, state = demand.subscriptions * costs.index_bytes, state_bytes(costs, demand)
    parts = max(1, math.ceil(index / PART_BYTES))
    buckets = max(demand.buckets, 2 * cores)
    return CapacityPlan(
        cores=cores,
        fewest_cores=min(core_counts),
        most_cores=max(core_counts),
        memory_bytes=int(index + 2 * state + cores * WORKER_BYTES),
        disk_bytes=int(VERSIONS * index + SNAPSHOTS * state),
        parts=parts,
        buckets=math.ceil(buckets / parts) * parts,
        trigger_s=seconds,
        fixed_share=fixed_seconds(costs, state) / seconds,
        build_s=demand.subscriptions * costs.build_us / _US,
        index_bytes=int(index),
        state_bytes=int(state),
        breaks_first=_breaks_first(costs, demand, cores),
    )


def _breaks_first(costs: Costs, demand: Demand, cores: int) -> Breaking:
    """Return what limits the planned cores as events become more."""
    most = events_per_second(costs, demand, cores)
    events = demand.events_per_s * demand.trigger_s
    seconds = {
        "the state: each trigger reads and writes the windows of all subscribers, so longer "
        "triggers help": fixed_seconds(costs, state_bytes(costs, demand)),
        "the matches: each is ranked, sent to its bucket and put into a window": (
            events * demand.matches * match_seconds(costs, demand.subscriptions)
        ),
        "the buckets: each event costs every bucket that has a match of it, so fewer help": (
            events * demand.reached * costs.bucket_us / _US
        ),
        "the events: each is read and looked up, whether it matches or not": (
            events * costs.event_us / _US
        ),
    }
    return Breaking(most, max(seconds, key=seconds.__getitem__))
