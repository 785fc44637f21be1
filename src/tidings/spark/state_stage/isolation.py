"""One event or subscriber never stops a bucket: what fails is found by trials and left out.

The state of a bucket is packed between batches, so a run that fails has changed nothing that is
kept: trials begin from the packed state, as often as it takes. Where nothing fails, there are none.
Trials depend on the state and on the micro-batch only, so a replayed batch finds the same culprits.
Feeds set a subscriber aside themselves where its policy fails for a match or as time passes
(`TableFeeds.set_aside`). Trials find events that cannot be compared, and policies for which no feed
can be opened.
"""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tidings.feed.policy_key import unregistered
from tidings.model.dead_letter import Failure
from tidings.policy import Policy, Subscriber
from tidings.rank.matches import Matches
from tidings.spark.match_stage.isolation import tried
from tidings.spark.match_stage.match_batch import Parcel
from tidings.spark.match_stage.match_batch_ops import merge, of_subscribers, select, without_events
from tidings.spark.state_stage import outcomes as outcome
from tidings.spark.state_stage.bucket import Bucket, Terms
from tidings.spark.state_stage.clock_marks import Tick
from tidings.spark.state_stage.late_events import Batch
from tidings.spark.state_stage.policies import Roster
from tidings.spark.state_stage.progress_mark import Pulse

Reasons = dict[str, str]
Failing = Callable[[Sequence[Any]], Failure | None]

PROBE: Final = "tidings-probe"


class Sent(NamedTuple):
    """What a bucket is sent in a micro-batch; each parcel is a tick as well.

    `batches` are rows for the late table.
    """

    parcels: list[Parcel]
    ticks: list[Tick]
    letters: list[bytes]
    batches: list[Batch]


class Opening(NamedTuple):
    """How a bucket is opened: anew, or from its packed state."""

    people: Roster
    terms: Terms
    blob: bytes | None
    pulse: Pulse

    def bucket(self) -> Bucket:
        """Open the bucket; each one is a copy of its own."""
        bucket = Bucket(self.people, self.terms)
        if self.blob is not None:
            bucket.unpack(self.blob, self.pulse)
        return bucket


class Ran(NamedTuple):
    """A bucket after a micro-batch, and what came of it."""

    bucket: Bucket
    outcomes: pa.Table


def run_isolated(opening: Opening, sent: Sent) -> Ran:
    """Run a micro-batch without the events and subscribers for which it fails; name them.

    1. A subscriber is set aside if its policy fails even for a plain event in an empty window.
    2. An event is left out if built-in policies fail for it alone, in empty windows.
    3. A subscriber is set aside if the batch fails for it alone.

    Who is set aside gets nothing of this batch nor of later ones, until its policy changes.
    """
    bucket = opening.bucket()
    found = tried(bucket.run, sent.parcels, sent.ticks, sent.letters)
    if not isinstance(found, Failure):
        return Ran(bucket, found)
    trials = Trials(opening, sent)
    if trials.fails(frozenset()):
        raise found.error  # not even an empty bucket can take the batch
    culprits = trials.culprits()
    bucket = opening.bucket()
    letters = [bucket.set_aside(culprits.subscribers)]
    if culprits.events:
        letters.append(outcome.unusable(trials.matches, culprits.events))
        bucket.drop_events(culprits.events.keys())
    kept = [without_events(each, culprits.events.keys()) for each in sent.parcels]
    return Ran(bucket, pa.concat_tables([bucket.run(kept, sent.ticks, sent.letters), *letters]))


class Culprits(NamedTuple):
    """Who and what a batch fails for, and why."""

    subscribers: Reasons
    events: Reasons


class Trials:
    """Runs of parts of a micro-batch, on copies of a bucket."""

    def __init__(self, opening: Opening, sent: Sent) -> None:
        self._opening, self._sent = opening, sent
        bucket = opening.bucket()
        self._enrolled = [*bucket.feeds.tables.subscribers.names]
        self.matches = merge([bucket.waiting, *sent.parcels])
        self._policies = {
            name: policy
            for name in self.matches.subscribers
            if (policy := bucket.policy(name)) is not None
        }

    def culprits(self) -> Culprits:
        """Find the culprits, each kind without those of the kinds before."""
        aside = self._unusable_policies()
        fine = [name for name in self._policies if name not in aside]
        plain = self._only([name for name in fine if _built_in(self._policies[name])])
        events = _halved(lambda some: self._fails_alone(plain, some), range(len(plain.events)))
        dead = {plain.events[place]: reason for place, reason in events.items()}
        others = sorted({*self._enrolled, *fine} - aside.keys())
        aside |= _halved(lambda some: self.fails(frozenset(some), dead.keys()), others)
        return Culprits(aside, dead)

    def fails(
        self, names: AbstractSet[str], without: AbstractSet[str] = frozenset()
    ) -> Failure | None:
        """Run the batch for some subscribers only; return how it fails."""
        bucket = self._opening.bucket()
        bucket.keep_only(names)
        bucket.drop_events(without)
        parcels = [
            of_subscribers(each, np.array([name in names for name in each.subscribers], np.bool_))
            for each in (without_events(each, without) for each in self._sent.parcels)
        ]
        return _failure(bucket, parcels, self._sent.ticks)

    def _unusable_policies(self) -> Reasons:
        """Return who has a policy that fails for whatever event."""
        reasons: dict[int, str | None] = {}
        for name, policy in self._policies.items():
            if id(policy) not in reasons:
                bucket = Bucket({name: Subscriber(name, policy)})
                failure = _failure(bucket, [_probe(name)], [Tick(0, 0)])
                reasons[id(policy)] = failure.reason if failure else None
        found = {name: reasons[id(policy)] for name, policy in self._policies.items()}
        return {name: reason for name, reason in found.items() if reason is not None}

    def _only(self, names: Iterable[str]) -> Parcel:
        wanted = {*names}
        there = [name in wanted for name in self.matches.subscribers]
        return of_subscribers(self.matches, np.array(there, np.bool_))

    def _fails_alone(self, matches: Parcel, places: Sequence[int]) -> Failure | None:
        """Run some events through empty windows, all at once."""
        some = select(matches, np.array(places, np.int64))
        bucket = Bucket(self._opening.people, self._opening.terms._replace(lateness_us=0))
        ticks = [Tick(int(us), 0) for us in some.us.tolist()]
        return _failure(bucket, [some], ticks)


def _failure(bucket: Bucket, parcels: Sequence[Parcel], ticks: Sequence[Tick]) -> Failure | None:
    found = tried(bucket.run, parcels, ticks)
    return found if isinstance(found, Failure) else None


def _halved(failing: Failing, members: Sequence[Any]) -> dict[Any, str]:
    """Return those members for which something fails even if they are alone, and why."""
    failure = failing(members)
    if failure is None:
        return {}
    if len(members) == 1:
        return {members[0]: failure.reason}
    middle = len(members) // 2
    return _halved(failing, members[:middle]) | _halved(failing, members[middle:])


def _built_in(policy: Policy) -> bool:
    """Tell whether all that chooses events is ours; a part of the user is its own risk."""
    return not unregistered(policy)


def _probe(name: str) -> Parcel:
    """Return a match of an event without attributes."""
    one, zero = np.array([0, 1]), np.zeros(1, np.int32)
    return Parcel(
        [PROBE],
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        ['{"id": "tidings-probe", "published_at": 0, "attributes": {}}'],
        Matches(one, zero, np.zeros(1), one, zero),
        [name],
        [PROBE],
    )
