"""The access-predicate index (ours): every conjunction waits under its most selective predicate.

An event stamps the predicates that hold, which are numbers, and is led only to the conjunctions
whose access predicate holds; their next check lies beside them, and the others are made only after
that. The lists are in order of the own scores, so that the best k are found without the rest.

Subscriptions are in segments of arrays, each larger than the next; new ones wait in a short list,
and a segment that is half dead is rebuilt. An addition costs O(log n) rebuilt rows.
"""

from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import Final

import numpy as np

from tidings.index.protocol import Score, has_ranges, own_score
from tidings.index.scan import Scan
from tidings.index.segment import Segment, encode, joined
from tidings.index.vocabulary import Vocabulary
from tidings.kernels.access import Said
from tidings.model import Event, Subscription

WAITING: Final = 32


class Access:
    """Looks at the conjunctions whose most selective predicate the event satisfies.

    Up to `waiting` new subscriptions are looked at one by one before they go to a segment.
    """

    def __init__(self, subscriptions: Iterable[Subscription] = (), waiting: int = WAITING) -> None:
        self._most_waiting = waiting
        self._subscriptions: dict[str, Subscription] = {}
        self.vocabulary = Vocabulary()
        self.segments: list[Segment] = []
        self._waiting: dict[str, Subscription] = {}
        self._looked = np.zeros(2, np.int64)
        for each in subscriptions:
            self.add(each)

    def add(self, subscription: Subscription) -> None:
        """Add a subscription."""
        self._subscriptions[subscription.id] = subscription
        self._waiting[subscription.id] = subscription

    def remove(self, subscription: str) -> None:
        """Remove a subscription by id."""
        gone = self._subscriptions.pop(subscription)
        if self._waiting.pop(subscription, None) is not None:
            return
        segment = next(each for each in self.segments if each.kill(gone))
        for parts in gone.conjunctions:
            for part in dict.fromkeys(parts):
                self.vocabulary.drop(part)
        if 2 * segment.dead >= len(segment):
            self._rebuild(segment)
        if not self.segments:
            self.vocabulary = Vocabulary()  # whose arrays only grow

    def matching(self, event: Event) -> list[Subscription]:
        """Give the subscriptions that cover the event, by id."""
        if has_ranges(event):
            return self._scan().matching(event)
        said = self._hear([event])
        found = [each for each in self._late() if each.matches(event)]
        for segment in self.segments:
            ranks = segment.matching(self.vocabulary.marks, said, self._looked)
            found += [segment.subscriptions[rank] for rank in ranks]
        return sorted(found, key=_id)

    def touching(self, event: Event) -> list[Subscription]:
        """Give the subscriptions of which at least one predicate holds, by id; O(n), compiled."""
        if has_ranges(event):
            return self._scan().touching(event)
        said = self._hear([event])
        found = [each for each in self._late() if each.touches(event)]
        for segment in self.segments:
            ranks = segment.touching(self.vocabulary.marks, said, self._looked)
            found += [segment.subscriptions[rank] for rank in ranks]
        return sorted(found, key=_id)

    def top(self, event: Event, k: int, score: Score | None = None) -> list[tuple[str, float]]:
        """Give the k best by `score`, ties by smaller id."""
        if score is not None:
            rated = ((each.id, score(event, each)) for each in self.touching(event))
            scored = [(name, value) for name, value in rated if value is not None]
            return nsmallest(k, scored, key=_best_first)
        return self.top_many([event], k)[0]

    def top_many(self, events: Sequence[Event], k: int) -> list[list[tuple[str, float]]]:
        """Give for each event the k best by their own scores; many a call cost less each."""
        if any(map(has_ranges, events)):
            return [self._scan().top(event, k) for event in events]
        said = self._hear(events)
        late = [[each for each in self._late() if each.matches(event)] for event in events]
        found = [[(each.id, own_score(each)) for each in hits] for hits in late]
        for segment in self.segments:
            best = segment.top(self.vocabulary.marks, said, k, self._looked)
            found = [one + other for one, other in zip(found, best, strict=True)]
        if len(self.segments) == 1 and not self._waiting:
            return found
        return [nsmallest(k, each, key=_best_first) for each in found]

    def counters(self) -> dict[str, int]:
        """Give how many predicates and subscriptions were looked at so far."""
        predicates, subscriptions = self._looked.tolist()
        return {"predicates": predicates, "subscriptions": subscriptions}

    def settle(self) -> None:
        """Put everything into one segment, by what the events so far say of the predicates."""
        self._store()
        if self.segments:
            parts = [each.encoded() for each in self.segments]
            self.segments = [Segment(joined(parts), self.vocabulary)]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and dicts; the subscriptions themselves belong to who made them."""
        return self.vocabulary.nbytes + sum(each.nbytes for each in self.segments)

    def _scan(self) -> Scan:
        """Give the plain index, for events with ranges, which have no place among the operands."""
        return Scan(self._subscriptions.values())

    def _hear(self, events: Sequence[Event]) -> Said:
        """Put events in numbers, for segments that are ready for them."""
        if len(self._waiting) > self._most_waiting:
            self._store()
        if self.vocabulary.epochs_end:
            self.vocabulary.restart_epochs()
            for segment in self.segments:
                segment.rows.taken[:] = 0
        return self.vocabulary.say(events)

    def _late(self) -> Iterable[Subscription]:
        for each in self._waiting.values():
            self._looked += (sum(map(len, each.conjunctions)), 1)
            yield each

    def _store(self) -> None:
        """Make a segment of what waits, with all earlier ones that are not larger."""
        if not self._waiting:
            return
        parts = [encode(self._waiting.values(), self.vocabulary.use)]
        size = len(self._waiting)
        while self.segments and len(self.segments[-1]) <= size:
            parts.append(self.segments.pop().encoded())
            size += len(parts[-1].owners)
        self.segments.append(Segment(joined(parts), self.vocabulary))
        self._waiting.clear()

    def _rebuild(self, segment: Segment) -> None:
        at = self.segments.index(segment)
        living = segment.encoded()
        self.segments[at : at + 1] = [Segment(living, self.vocabulary)] if living.owners else []


def _best_first(scored: tuple[str, float]) -> tuple[float, str]:
    return (-scored[1], scored[0])


def _id(subscription: Subscription) -> str:
    return subscription.id
