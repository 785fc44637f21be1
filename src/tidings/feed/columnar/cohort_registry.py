"""All cohorts of a table: one for each policy that somebody has."""

import json
from collections.abc import Iterator
from typing import Final

from tidings.diversify import DIVERSIFIERS
from tidings.diversify.event_tokens import has_kernel
from tidings.diversify.optimal import Optimal
from tidings.errors import InvalidPolicy
from tidings.feed.columnar.diverse_cohort import DiverseCohort
from tidings.feed.columnar.event_features import AllTraits
from tidings.feed.columnar.python_cohort import ObjectCohort
from tidings.feed.columnar.ranked_cohort import Cohort, Sink
from tidings.feed.policy_key import kept, unregistered
from tidings.policy import Policy, most_held
from tidings.score import DECAYS
from tidings.window import WINDOWS

_OURS: Final = frozenset({*DECAYS.values(), *WINDOWS.values(), *DIVERSIFIERS.values()})
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
            self._made[self._next] = self._new(policy)
            self._known[key] = self._next
            self._next += 1
        self._latest = (policy, self._known[key])
        return self._known[key]

    def leave(self, number: int, row: int) -> bool:
        """Give a row back; tell whether the cohort is gone with it."""
        self._made[number].drop(row)
        return self.discard(number)

    def discard(self, number: int) -> bool:
        """Forget a cohort that nobody is in, if there is one; tell whether there was."""
        cohort = self._made.get(number)
        if cohort is None or len(cohort):
            return False
        del self._made[number], self._known[_key(cohort.policy)]
        self._latest = (None, -1)
        return True

    def numbers(self) -> list[int]:
        """Return the numbers of all cohorts."""
        return list(self._made)

    def objects(self) -> Iterator[ObjectCohort]:
        """Give those whose windows are objects."""
        return (each for each in self if isinstance(each, ObjectCohort))

    def arrays(self) -> Iterator[Cohort | DiverseCohort]:
        """Give those whose windows are arrays."""
        return (each for each in self if not isinstance(each, ObjectCohort))

    def _new(self, policy: Policy) -> AnyCohort:
        if not compiled(policy):
            return ObjectCohort(policy)
        if policy.diversify.name == "none":
            return Cohort(policy, self._sink)
        return DiverseCohort(policy, self._traits)


def compiled(policy: Policy) -> bool:
    """Tell whether kernels know all parts of a policy, and can choose from any window of it."""
    kinds = {type(policy.decay), type(policy.window), type(policy.diversify)}
    if not kinds <= _OURS:
        return False
    if isinstance(policy.diversify, Optimal) and policy.window.name != "history":
        # How many sets there are is then known before the first choice.
        return most_held(policy.window, policy.k) is not None and has_kernel(
            policy.diversify.distance
        )
    return policy.diversify.name == "none" or has_kernel(policy.diversify.distance)


def _key(policy: Policy) -> str:
    # Different classes of somebody's own may have the same name.
    foreign = [id(each) for each in unregistered(policy)]
    try:
        return json.dumps([kept(policy), foreign], sort_keys=True)
    except (TypeError, ValueError) as error:
        raise InvalidPolicy(f"the policy has no JSON form: {error}") from None
