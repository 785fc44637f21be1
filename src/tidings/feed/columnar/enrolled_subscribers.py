"""The enrolled subscribers: their numbers, cohorts and rows, and the order of enrolment."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.errors import InvalidSubscription

_FIRST_SIZE: Final = 16


class EnrolledSubscribers:
    """Subscribers by number; the number of one that is removed is reused."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.cohort = np.full(_FIRST_SIZE, -1, np.int32)
        self.row = np.zeros(_FIRST_SIZE, np.int32)
        self.order = np.zeros(_FIRST_SIZE, np.int64)
        self.generation = 0
        self._numbers: dict[str, int] = {}
        self._free: list[int] = []
        self._enrolled = 0

    def __contains__(self, subscriber: str) -> bool:
        return subscriber in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, subscriber: str) -> int:
        """Return the number of a subscriber, which must be enrolled."""
        if subscriber not in self._numbers:
            raise InvalidSubscription(f"there is no subscriber {subscriber!r}")
        return self._numbers[subscriber]

    def add(self, subscriber: str) -> int:
        """Return a number for a new subscriber, the last in the order of enrolment."""
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
        """Return numbers for new subscribers, in their order."""
        if self._free:
            return np.array([self.add(subscriber) for subscriber in subscribers], np.int64)
        numbers = np.arange(len(self.names), len(self.names) + len(subscribers))
        self._make_room(len(self.names) + len(subscribers))
        self.names += subscribers
        self._numbers.update(zip(subscribers, numbers.tolist(), strict=True))
        self.order[numbers] = self._enrolled + np.arange(len(subscribers))
        self._enrolled += len(subscribers)
        return numbers

    def assign(self, number: int, cohort: int, row: int) -> None:
        """Set the cohort and row that hold the window of a subscriber."""
        self.cohort[number], self.row[number] = cohort, row

    def remove(self, subscriber: str) -> None:
        """Remove a subscriber."""
        number = self._numbers.pop(subscriber)
        self.cohort[number] = -1
        self._free.append(number)

    def in_order(self) -> Int64s:
        """Return all numbers in the order of enrolment."""
        numbers = np.fromiter(self._numbers.values(), np.int64, len(self._numbers))
        return numbers[np.argsort(self.order[numbers])]

    def _make_room(self, count: int) -> None:
        """Lengthen all columns; `cohort`, by whose length they are measured, is the last."""
        if count > len(self.cohort):
            size = max(count, len(self.cohort) + len(self.cohort) // 4)
            for column in (self.row, self.order, self.cohort):
                column.resize(size, refcheck=False)
