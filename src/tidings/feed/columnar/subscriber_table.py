"""Who is enrolled: a number each, the cohort and row behind it, and the order of enrolment."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.errors import InvalidSubscription

_FIRST: Final = 16


class Subscribers:
    """Subscribers by number; a number is given again once its owner is gone."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.cohort = np.full(_FIRST, -1, np.int32)
        self.row = np.zeros(_FIRST, np.int32)
        self.order = np.zeros(_FIRST, np.int64)
        self.generation = 0
        self._numbers: dict[str, int] = {}
        self._free: list[int] = []
        self._enrolled = 0

    def __contains__(self, subscriber: str) -> bool:
        return subscriber in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, subscriber: str) -> int:
        """Give the number of a subscriber, which must be there."""
        if subscriber not in self._numbers:
            raise InvalidSubscription(f"there is no subscriber {subscriber!r}")
        return self._numbers[subscriber]

    def add(self, subscriber: str) -> int:
        """Give a new subscriber a number, behind all that are there."""
        if self._free:
            number = self._free.pop()
            self.names[number] = subscriber
            self.generation += 1
        else:
            number = len(self.names)
            self._make_room(number + 1)
            self.names.append(subscriber)
        self._numbers[subscriber] = number
        self.order[number] = self._enrolled
        self._enrolled += 1
        return number

    def add_many(self, subscribers: Sequence[str]) -> Int64s:
        """Give new subscribers numbers, in their order."""
        if self._free:
            return np.array([self.add(each) for each in subscribers], np.int64)
        numbers = np.arange(len(self.names), len(self.names) + len(subscribers))
        self._make_room(len(self.names) + len(subscribers))
        self.names += subscribers
        self._numbers.update(zip(subscribers, numbers.tolist(), strict=True))
        self.order[numbers] = self._enrolled + np.arange(len(subscribers))
        self._enrolled += len(subscribers)
        return numbers

    def seat(self, number: int, cohort: int, row: int) -> None:
        """Say where the state of a subscriber is."""
        self.cohort[number], self.row[number] = cohort, row

    def remove(self, subscriber: str) -> None:
        """Forget a subscriber."""
        number = self._numbers.pop(subscriber)
        self.cohort[number] = -1
        self._free.append(number)

    def in_order(self) -> Int64s:
        """Give all numbers in the order of enrolment."""
        numbers = np.fromiter(self._numbers.values(), np.int64, len(self._numbers))
        return numbers[np.argsort(self.order[numbers])]

    def _make_room(self, wanted: int) -> None:
        """Let all columns hold so many; that which says how many there are grows last."""
        if wanted > len(self.cohort):
            size = max(wanted, len(self.cohort) + len(self.cohort) // 4)
            for column in (self.row, self.order, self.cohort):
                column.resize(size, refcheck=False)
