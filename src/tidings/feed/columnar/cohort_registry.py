"""The cohorts of a table: one for each policy in use."""

import json
from collections.abc import Iterator
from typing import Final

from tidings.diversify import DIVERSIFIERS
from tidings.diversify.hashed_distances import has_kernel
from tidings.diversify.optimal import Optimal
from tidings.errors import InvalidPolicy
from tidings.feed.columnar.cohort_arrays import DeliveryBuffer
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.event_table import EventTable, FeatureCache
from tidings.feed.columnar.python_cohort import PythonCohort
from tidings.feed.columnar.ranked_cohort import RankedCohort
from tidings.feed.policy_key import feed_form, unregistered, without_rules
from tidings.policy import Policy, most_held
from tidings.rules import RULES
from tidings.score import DECAYS
from tidings.window import WINDOWS

_REGISTERED: Final = frozenset(
    {*DECAYS.values(), *WINDOWS.values(), *DIVERSIFIERS.values(), *RULES.values()}
)
AnyCohort = RankedCohort | DiverseCohort | PythonCohort


class CohortRegistry:
    """Cohorts by number, in the order in which they were created.

    A cohort is deleted when its last subscriber leaves; numbers are not reused.
    """

    def __init__(self, events: EventTable) -> None:
        self._events, self._buffer, self.features = events, DeliveryBuffer(), FeatureCache()
        self._cohorts: dict[int, AnyCohort] = {}
        self._numbers: dict[str, int] = {}
        self._latest: tuple[Policy | None, int] = (None, -1)
        self._next = 0

    def __len__(self) -> int:
        return len(self._cohorts)

    def __iter__(self) -> Iterator[AnyCohort]:
        return iter(self._cohorts.values())

    def __getitem__(self, number: int) -> AnyCohort:
        return self._cohorts[number]

    def number(self, policy: Policy) -> int:
        """Return the number of the cohort of a policy, which is created if there is none.

        Windows in arrays do not depend on the rules behind them.
        """
        if policy is self._latest[0]:
            return self._latest[1]
        latest = policy
        if policy.rules and has_kernels(policy):
            policy = without_rules(policy)
        key = _key(policy)
        if key not in self._numbers:
            self._cohorts[self._next] = self._new(policy)
            self._numbers[key] = self._next
            self._next += 1
        self._latest = (latest, self._numbers[key])
        return self._numbers[key]

    def leave(self, number: int, row: int) -> bool:
        """Drop a row; return whether the cohort was deleted with it."""
        self._cohorts[number].drop(row)
        return self.discard(number)

    def discard(self, number: int) -> bool:
        """Delete a cohort if it exists and is empty; return whether it was deleted."""
        cohort = self._cohorts.get(number)
        if cohort is None or len(cohort):
            return False
        del self._cohorts[number], self._numbers[_key(cohort.policy)]
        self._latest = (None, -1)
        return True

    def numbers(self) -> list[int]:
        """Return the numbers of all cohorts."""
        return list(self._cohorts)

    def numbers_of_objects(self) -> list[int]:
        """Return the numbers of the cohorts whose windows are objects."""
        return [
            number for number, cohort in self._cohorts.items() if isinstance(cohort, PythonCohort)
        ]

    def objects(self) -> Iterator[PythonCohort]:
        """Return the cohorts whose windows are objects."""
        return (cohort for cohort in self if isinstance(cohort, PythonCohort))

    def arrays(self) -> Iterator[RankedCohort | DiverseCohort]:
        """Return the cohorts whose windows are arrays."""
        return (cohort for cohort in self if not isinstance(cohort, PythonCohort))

    def _new(self, policy: Policy) -> AnyCohort:
        if not has_kernels(policy):
            return PythonCohort(policy)
        if policy.diversify.name == "none":
            return RankedCohort(policy, self._buffer, self._events)
        return DiverseCohort(policy, self.features, self._events)


def has_kernels(policy: Policy) -> bool:
    """Return whether kernels can run all parts of a policy on any window that it allows."""
    kinds = {type(policy.decay), type(policy.window), type(policy.diversify)}
    if not kinds | {type(rule) for rule in policy.rules} <= _REGISTERED:
        return False
    if isinstance(policy.diversify, Optimal) and policy.window.name != "history":
        # The number of sets must be bounded before the first choice.
        bounded = most_held(policy.window, policy.k) is not None
        return bounded and has_kernel(policy.diversify.distance)
    return policy.diversify.name == "none" or has_kernel(policy.diversify.distance)


def _key(policy: Policy) -> str:
    # Different user-defined classes may have the same name.
    user_defined = [id(part) for part in unregistered(policy)]
    try:
        return json.dumps([feed_form(policy), user_defined], sort_keys=True)
    except (TypeError, ValueError) as error:
        raise InvalidPolicy(f"the policy has no JSON form: {error}") from None
