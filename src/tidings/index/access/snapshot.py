"""What a reader of the index holds: one version of it, for as long as it reads."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from sys import getsizeof
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tidings.index.access.attribute_terms import FLOAT, NUMBER
from tidings.index.access.memtable import Tail
from tidings.index.access.segment import Segment
from tidings.index.access.vocabulary import Vocabulary
from tidings.index.protocol import own_score
from tidings.model.records import Subscription

SURE: Final = 1e99
"""Scores below this are right, whatever the limit of the model is."""


class Owners(Sequence[Subscription | None]):
    """Subscriptions by number. One that was rescored is made, once, when somebody asks for it."""

    def __init__(self, held: Iterable[Subscription | None] = ()) -> None:
        self.held = list(held)  # as they were given
        self.scores: dict[int, float] = {}  # of those that are still to be made

    def __len__(self) -> int:
        return len(self.held)

    def __getitem__(self, number: Any) -> Any:
        score, owner = self.scores.get(number), self.held[number]
        if score is None or owner is None:
            return owner
        made = self.held[number] = replace(owner, score=score)
        self.scores.pop(number, None)
        return made


class Table:
    """Subscriptions by number. A number is given again only in a later table."""

    def __init__(self, owners: Iterable[Subscription | None] = (), ids: Iterable[str] = ()) -> None:
        self.owners = Owners(owners)
        self.ids = list(ids)
        self.free: list[int] = []
        self.home = np.full(max(64, len(self.ids)), -1, np.int32)  # the serial of a segment
        self.place = np.zeros(max(64, len(self.ids)), np.int32)  # the rank there

    def take(self, subscriptions: Sequence[Subscription]) -> list[int]:
        """Give subscriptions numbers."""
        held, ids = self.owners.held, self.ids
        again = min(len(self.free), len(subscriptions))
        numbers = [self.free.pop() for _ in range(again)]
        for number, each in zip(numbers, subscriptions, strict=False):
            held[number], ids[number] = each, each.id
        numbers += range(len(ids), len(ids) + len(subscriptions) - again)
        held += subscriptions[again:]
        ids += [each.id for each in subscriptions[again:]]
        if len(ids) > len(self.home):
            more = max(len(self.home) // 8, len(ids) - len(self.home))
            self.home = np.concatenate([self.home, np.full(more, -1, np.int32)])
            self.place = np.concatenate([self.place, np.zeros(more, np.int32)])
        return numbers

    def take_again(self, old: Sequence[int], scores: Sequence[float]) -> list[int]:
        """Give subscriptions that are there other numbers, and other scores."""
        numbers = self.take([self.owners.held[each] for each in old])  # type: ignore[misc]
        self.owners.scores.update(zip(numbers, scores, strict=True))
        return numbers

    def kept(self, alive: npt.NDArray[np.bool_]) -> "Table":
        """Give a table of some, with the same numbers; those of the others are free."""
        last = int(alive.nonzero()[0].max(initial=-1)) + 1
        there = alive[:last].tolist()
        made = Table(
            [each if kept else None for each, kept in zip(self.owners.held, there, strict=False)],
            [each if kept else "" for each, kept in zip(self.ids, there, strict=False)],
        )
        scores = list(self.owners.scores.items())  # readers take from it
        made.owners.scores = {each: score for each, score in scores if each < last and there[each]}
        made.free = np.flatnonzero(~alive[:last])[::-1].tolist()
        return made

    @property
    def nbytes(self) -> int:
        """Bytes of arrays, lists and dicts, with the numbers that these hold."""
        lists = getsizeof(self.owners.held) + getsizeof(self.ids)
        scores = getsizeof(self.owners.scores) + (FLOAT + NUMBER) * len(self.owners.scores)
        free = getsizeof(self.free) + NUMBER * len(self.free)
        return self.home.nbytes + self.place.nbytes + lists + scores + free


class State(NamedTuple):
    """Segments, the larger ones first, and a tail, as they are seen at a version."""

    vocabulary: Vocabulary
    table: Table
    segments: tuple[Segment, ...]
    tail: Tail
    size: int  # words of the tail
    version: int

    @classmethod
    def empty(cls, version: int = 0) -> "State":
        """Give the state of an index without subscriptions."""
        return cls(Vocabulary(), Table(), (), Tail(), 0, version)

    def seen(self, version: int | None = None) -> "State":
        """Give the same with all that the tail has by now, at a version."""
        return self._replace(
            size=self.tail.size, version=self.version if version is None else version
        )


class Listener(Protocol):
    """A stage that keeps arrays by number. It is told while the index waits."""

    def came(self, numbers: Sequence[int], subscriptions: Sequence[Subscription]) -> None:
        """Hear of new numbers, before any answer has them."""

    def went(self, numbers: Sequence[int]) -> None:
        """Hear of numbers that no later state has; earlier ones may still be read."""


def checked(
    owners: Sequence[Subscription | None], scores: Iterable[float]
) -> npt.NDArray[np.float64]:
    """Give the new scores of subscriptions; what may be wrong is left to the model to judge."""
    found = []
    for owner, score in zip(owners, scores, strict=True):
        plain = type(score) is float and 0 <= score < SURE
        found.append(score if plain or owner is None else own_score(replace(owner, score=score)))
    return np.array(found, np.float64)
