"""All cohorts of a table: one for each policy that somebody has."""

import json
from collections.abc import Iterator

from tidings.diversify.tokens import known
from tidings.feeds.choice import DiverseCohort
from tidings.feeds.cohort import Cohort, Sink
from tidings.feeds.objects import ObjectCohort
from tidings.feeds.policies import kept
from tidings.feeds.traits import AllTraits
from tidings.policy import Policy

AnyCohort = Cohort | DiverseCohort | ObjectCohort


class Cohorts:
    """Cohorts by number, in the order in which they were made.

    One that its last subscriber has left is gone, with all that it took; no number is given again.
    """

    def __init__(self) -> None:
        self._sink, self._traits = Sink(), AllTraits()
        self._made: dict[int, AnyCohort] = {}
        self._known: dict[str, int] = {}
        self._latest: tuple[Policy | None, int] = (None, -1)
        self._next = 0

    def __len__(self) -> int:
        return len(self._made)

    def __iter__(self) -> Iterator[AnyCohort]:
        return iter(self._made.values())

    def __getitem__(self, number: int) -> AnyCohort:
        return self._made[number]

    def number(self, policy: Policy) -> int:
        """Give the number of the cohort with this policy; it is made where there is none."""
        if policy is self._latest[0]:
            return self._latest[1]
        key = _key(policy)
        if key not in self._known:
            self._known[key] = self._next
            self._made[self._next] = self._new(policy)
            self._next += 1
        self._latest = (policy, self._known[key])
        return self._known[key]

    def leave(self, number: int, row: int) -> bool:
        """Give a row back; tell whether the cohort is gone with it."""
        cohort = self._made[number]
        cohort.drop(row)
        if len(cohort):
            return False
        del self._made[number], self._known[_key(cohort.policy)]
        self._latest = (None, -1)
        return True

    def objects(self) -> Iterator[ObjectCohort]:
        """Give those whose windows are objects."""
        return (each for each in self if isinstance(each, ObjectCohort))

    def arrays(self) -> Iterator[Cohort | DiverseCohort]:
        """Give those whose windows are arrays."""
        return (each for each in self if not isinstance(each, ObjectCohort))

    def _new(self, policy: Policy) -> AnyCohort:
        if policy.diversify.name == "none":
            return Cohort(policy, self._sink)
        if known(policy.diversify.distance):
            return DiverseCohort(policy, self._traits)
        return ObjectCohort(policy)


def _key(policy: Policy) -> str:
    return json.dumps(kept(policy), sort_keys=True)
