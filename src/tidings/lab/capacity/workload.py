"""Subscriptions and events with a given number of matches per event.

A subscription asks for one category and for a range of prices that covers a third of them. The
subscriptions of a category are consecutive, and owners take turns, so each match of an event
belongs to another subscriber.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.errors import InvalidForm
from tidings.model.conditions.predicate import Condition, predicate
from tidings.model.records import Subscription
from tidings.policy import Policy, Subscriber

_PRICES, _WIDTH = 100.0, 50.0
# Ranges begin anywhere from -50 to 100, so that one in three holds at every price.
_SHARE = _WIDTH / (_PRICES + _WIDTH)
_SECOND_US = 1_000_000


@dataclass(frozen=True)
class CapacityWorkload:
    """Subscriptions of some subscribers, of which `matches` fit an event on average."""

    subscriptions: int
    subscribers: int
    matches: float
    policy: Policy
    seed: int = 7

    def __post_init__(self) -> None:
        most = min(self.subscriptions, self.subscribers) * _SHARE
        if not 0 < self.matches <= most:
            raise InvalidForm(
                f"{self.matches:g} matches per event need at least {self.matches / _SHARE:,.0f} "
                f"subscriptions and subscribers, not {self.subscriptions:,} and "
                f"{self.subscribers:,}"
            )

    @property
    def categories(self) -> int:
        """The number of categories."""
        return max(1, round(self.subscriptions * _SHARE / self.matches))

    def people(self) -> Iterator[Subscriber]:
        """Yield the subscribers, all with the same policy."""
        return (Subscriber(f"p{number}", self.policy) for number in range(self.subscribers))

    def interests(self) -> Iterator[Subscription]:
        """Yield the subscriptions."""
        chance = np.random.default_rng(self.seed)
        lows = chance.random(self.subscriptions) * (_PRICES + _WIDTH) - _WIDTH
        ranks = chance.random(self.subscriptions)
        for number, (low, rank) in enumerate(zip(lows.tolist(), ranks.tolist(), strict=True)):
            category = f"c{number * self.categories // self.subscriptions}"
            parts = (
                predicate("category", "=", category),
                predicate("price", "between", (low, low + _WIDTH)),
            )
            owner = f"p{number % self.subscribers}"
            yield Subscription(f"s{number}", owner, Condition((parts,)), prefrank=rank)

    def events(self, first: int, count: int) -> pa.Table:
        """Return publications, one per second; a number names the same event every time."""
        numbers = np.arange(first, first + count)
        chance = np.random.default_rng([self.seed, first])
        columns: dict[str, Any] = {
            "id": [f"e{number}" for number in numbers.tolist()],
            "published_at": pa.array(numbers * _SECOND_US, pa.timestamp("us", "UTC")),
            "category": [
                f"c{number}" for number in chance.integers(0, self.categories, count).tolist()
            ],
            "price": chance.random(count) * _PRICES,
        }
        return pa.table(columns)
