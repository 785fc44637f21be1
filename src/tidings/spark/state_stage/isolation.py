"""Isolation of failures in a bucket: an event or subscriber that fails never stops the others.

The state of a bucket is packed between batches, so a run that fails has changed nothing that is
kept: trials start from the packed state, as often as needed. If nothing fails, there are none.
Trials depend on the state and the micro-batch only, so a replayed batch finds the same culprits.

Feeds set a subscriber aside themselves if its policy fails for a match or as time passes
(`TableFeeds.set_aside`). Trials find the rest: events that cannot be compared, and policies for
which no feed can be opened.
"""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tidings.feed.policy_key import unregistered
from tidings.index_files.manifest import RefusedRecord
from tidings.model.dead_letter import Culprit, Failure
from tidings.policy import Subscriber
from tidings.rank.matches import Matches
from tidings.spark.bisect_failures import attempt, bisect
from tidings.spark.match_stage.match_batch import MatchBatch
from tidings.spark.state_stage import outcomes
from tidings.spark.state_stage.bucket import Bucket, BucketSettings
from tidings.spark.state_stage.late_events import ArrivedRows
from tidings.spark.state_stage.policies import ListedPolicies, Policies
from tidings.spark.state_stage.watermark import BucketClock, Tick

Reasons = dict[str, str]

PROBE: Final = "tidings-probe"


class BucketInput(NamedTuple):
    """Everything that a bucket receives in a micro-batch; each match batch is a tick as well.

    `arrived` are rows for the late table. `refused` are the records that the source of the
    policies leaves out; one bucket gets them. If the stream `ends` with this batch, nothing waits
    for other events of the newest time.
    """

    matches: list[MatchBatch]
    ticks: list[Tick]
    letters: list[bytes]
    arrived: list[ArrivedRows]
    refused: Sequence[RefusedRecord] = ()
    ends: bool = False


class BucketState(NamedTuple):
    """Packed state of a bucket, and all that is needed to open it."""

    policies: Policies
    settings: BucketSettings
    blob: bytes | None
    clock: BucketClock

    def open(self) -> Bucket:
        """Return a new bucket with this state."""
        bucket = Bucket(self.policies, self.settings)
        if self.blob is not None:
            bucket.unpack(self.blob, self.clock)
        return bucket


class BucketRun(NamedTuple):
    """A bucket after a micro-batch, and its outcomes."""

    bucket: Bucket
    outcomes: pa.Table


def run_isolated(state: BucketState, inputs: BucketInput) -> BucketRun:
    """Run a micro-batch, leaving out the events and subscribers for which it fails.

    1. A subscriber is set aside if its policy fails even for a plain event in an empty window.
    2. An event is left out if built-in policies fail for it alone, in empty windows.
    3. A subscriber is set aside if the batch fails for it alone.

    A subscriber that is set aside gets nothing of this batch nor of later ones until its policy
    changes. Each culprit is a dead letter.
    """
    bucket = state.open()
    result = attempt(bucket.run, inputs.matches, inputs.ticks, inputs.letters, inputs.refused)
    if not isinstance(result, Failure):
        return BucketRun(bucket, result)
    trials = Trials(state, inputs)
    if isinstance(attempt(trials.run_for, frozenset()), Failure):
        raise result.error  # not even a bucket without subscribers can take the batch
    culprits = trials.culprits()
    bucket = state.open()
    letters = [bucket.set_aside(culprits.subscribers)]
    if culprits.events:
        letters.append(outcomes.unusable_events(trials.matches, culprits.events))
        bucket.drop_events(culprits.events.keys())
    usable = [batch.without_events(culprits.events.keys()) for batch in inputs.matches]
    table = bucket.run(usable, inputs.ticks, inputs.letters, inputs.refused)
    return BucketRun(bucket, pa.concat_tables([table, *letters]))


class Culprits(NamedTuple):
    """Subscribers and events for which a batch fails, with the reasons."""

    subscribers: Reasons
    events: Reasons


class Trials:
    """Runs of parts of a micro-batch, on copies of a bucket."""

    def __init__(self, state: BucketState, inputs: BucketInput) -> None:
        self._state, self._inputs = state, inputs
        bucket = state.open()
        self._enrolled = [*bucket.feeds.tables.subscribers.names]
        self.matches = MatchBatch.merged([bucket.waiting, *inputs.matches])
        self._policies = {
            name: policy
            for name in self.matches.subscribers
            if (policy := bucket.policy(name)) is not None
        }

    def culprits(self) -> Culprits:
        """Find the culprits in the order of `run_isolated`, each kind without those before."""
        subscribers = self._unusable_policies()
        usable = [name for name in self._policies if name not in subscribers]
        built_in = self._of([name for name in usable if not unregistered(self._policies[name])])
        found = _culprits(
            lambda positions: self._run_alone(built_in, positions), range(len(built_in.events))
        )
        events = {built_in.events[position]: reason for position, reason in found.items()}
        others = sorted({*self._enrolled, *usable} - subscribers.keys())
        subscribers |= _culprits(
            lambda names: self.run_for(frozenset(names), events.keys()), others
        )
        return Culprits(subscribers, events)

    def run_for(self, names: AbstractSet[str], without: AbstractSet[str] = frozenset()) -> pa.Table:
        """Run the batch for some subscribers only, without some events."""
        bucket = self._state.open()
        bucket.keep_only(names)
        bucket.drop_events(without)
        batches = [
            batch.of_subscribers(np.array([name in names for name in batch.subscribers], np.bool_))
            for batch in (received.without_events(without) for received in self._inputs.matches)
        ]
        return bucket.run(batches, self._inputs.ticks)

    def _unusable_policies(self) -> Reasons:
        """Return the subscribers whose policies fail for any event; each policy is tried once."""
        reasons: dict[int, str | None] = {}
        for name, policy in self._policies.items():
            if id(policy) not in reasons:
                bucket = Bucket(ListedPolicies.of({name: Subscriber(name, policy)}))
                result = attempt(bucket.run, [_probe(name)], [Tick(0, 0)])
                reasons[id(policy)] = result.reason if isinstance(result, Failure) else None
        by_name = {name: reasons[id(policy)] for name, policy in self._policies.items()}
        return {name: reason for name, reason in by_name.items() if reason is not None}

    def _of(self, names: Iterable[str]) -> MatchBatch:
        wanted = {*names}
        kept = [name in wanted for name in self.matches.subscribers]
        return self.matches.of_subscribers(np.array(kept, np.bool_))

    def _run_alone(self, batch: MatchBatch, positions: Sequence[int]) -> pa.Table:
        """Run some events through empty windows, all at once."""
        events = batch.select(np.array(positions, np.int64))
        settings = self._state.settings._replace(lateness_us=0)
        ticks = [Tick(int(us), 0) for us in events.us.tolist()]
        return Bucket(self._state.policies, settings).run([events], ticks)


def _culprits(run: Callable[[Sequence[Any]], object], items: Sequence[Any]) -> dict[Any, str]:
    """Return the items for which `run` fails even alone, with the reasons."""
    results = bisect(run, items)
    return {culprit.item: culprit.reason for culprit in results if isinstance(culprit, Culprit)}


def _probe(name: str) -> MatchBatch:
    """Return a match of an event without attributes."""
    one, zero = np.array([0, 1]), np.zeros(1, np.int32)
    return MatchBatch(
        [PROBE],
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        ['{"id": "tidings-probe", "published_at": 0, "attributes": {}}'],
        Matches(one, zero, np.zeros(1), one, zero),
        [name],
        [PROBE],
    )
