"""The access-predicate index, which changes while it is read.

An event stamps the predicates that hold, as numbers, and is led only to the conjunctions whose
access predicate, the most selective one, holds. The posting says what the next check needs; the
record with all checks is read only after that. Postings are in order of the own scores, so that the
k best are found without the rest.

Subscriptions are in immutable segments, and the newest in a short memtable. A change makes a new
snapshot, which is swapped in; a reader keeps the snapshot that it started with.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from tidings.index.access.description import AccessDescription
from tidings.index.access.query import FoundHits, Query, Scored, ScratchBuffers
from tidings.index.access.snapshot import Listener, Snapshot
from tidings.index.access.writer import IndexWriter
from tidings.index.protocol import Score, best_found
from tidings.model.records import Event, Subscription


class Access:
    """Tests the conjunctions whose most selective predicate the event satisfies.

    Any number of threads may query while others change it: changes wait for each other, queries
    for nothing. A call sees all of a change or nothing of it. Up to `memtable_size` new
    subscriptions are tested one by one before they become a segment.
    """

    def __init__(
        self, subscriptions: Iterable[Subscription] = (), memtable_size: int | None = None
    ) -> None:
        self._writer = IndexWriter(memtable_size)
        self._idle: list[ScratchBuffers] = []
        self._buffers: list[ScratchBuffers] = []  # idle and in use
        self._retired = [0, 0]  # counters of buffers that are gone
        self.add_many(subscriptions)

    def __len__(self) -> int:
        return len(self._writer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, subscription: Subscription) -> None:
        self._writer.change((), (subscription,))

    def add_many(self, subscriptions: Iterable[Subscription]) -> None:
        """Add subscriptions at once: no query sees only some of them."""
        self._writer.change((), list(subscriptions))

    def remove(self, subscription: str) -> None:
        self._writer.change((subscription,), ())

    def remove_many(self, subscriptions: Iterable[str]) -> None:
        """Remove subscriptions at once."""
        self._writer.change(list(subscriptions), ())

    def replace(self, subscription: Subscription) -> None:
        """Replace the subscription that has this id."""
        self._writer.change((subscription.id,), (subscription,))

    def replace_many(self, subscriptions: Iterable[Subscription]) -> None:
        """Replace subscriptions at once."""
        new = list(subscriptions)
        self._writer.change([subscription.id for subscription in new], new)

    def rescore(self, subscription: str, score: float) -> None:
        """Change the score of a subscription, without encoding its condition again."""
        self._writer.rescore({subscription: score})

    def rescore_many(self, scores: dict[str, float]) -> None:
        """Change the scores of subscriptions at once."""
        self._writer.rescore(scores)

    def listen(self, listener: Listener) -> None:
        """Register a stage that follows which numbers are present, added and removed."""
        self._writer.listen(listener)

    def subscription(self, number: int) -> Subscription | None:
        """Return the subscription of a number; None if there is none now."""
        return self._writer.subscription(number)

    def ids(self, numbers: Iterable[int]) -> list[str]:
        """Return the ids of numbers that are present now."""
        ids = self._writer.snapshot.table.ids
        return [ids[number] for number in numbers]

    def matching(self, event: Event) -> list[Subscription]:
        return sorted(self.matching_many([event]).subscriptions(0), key=_id)

    def matching_many(self, events: Sequence[Event]) -> FoundHits:
        """Return for every event the numbers of the subscriptions that cover it, as columns."""
        with self._query(events) as query:
            return query.matching()

    def touching(self, event: Event) -> list[Subscription]:
        return sorted(self.touching_many([event]).subscriptions(0), key=_id)

    def touching_many(self, events: Sequence[Event]) -> FoundHits:
        """Return for every event the numbers of touched subscriptions, and which predicates hold.

        Every predicate has postings for this, which are built when it is first called.
        """
        with self._query(events) as query:
            return query.touching()

    def top(self, event: Event, k: int, score: Score | None = None) -> list[Scored]:
        return best_found(self, event, k, score) if score else self.top_many([event], k)[0]

    def top_many(self, events: Sequence[Event], k: int) -> list[list[Scored]]:
        """Return for each event the k best by their own scores; larger batches cost less each."""
        with self._query(events) as query:
            return query.tops(k)

    def top_relaxed(self, event: Event, k: int) -> list[Scored]:
        return self.top_relaxed_many([event], k)[0]

    def top_relaxed_many(self, events: Sequence[Event], k: int) -> list[list[Scored]]:
        """Return for each event the k best by the weights of the predicates that hold."""
        with self._query(events) as query:
            return query.relaxed(k)

    def counters(self) -> dict[str, int]:
        predicates, subscriptions = (
            self._retired[column] + sum(int(scratch.counters[column]) for scratch in self._buffers)
            for column in (0, 1)
        )
        return {"predicates": predicates, "subscriptions": subscriptions}

    def settle(self) -> None:
        """Merge everything into one segment, ordered by how often predicates held so far."""
        self._writer.settle()

    def close(self) -> None:
        """Wait for a merge that is running."""
        self._writer.join()

    def describe(self) -> AccessDescription:
        """Describe what the current snapshot consists of, and why; `print` it to read it."""
        return self._writer.describe()

    @property
    def snapshot(self) -> Snapshot:
        """The current snapshot."""
        return self._writer.snapshot

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and dicts; the subscriptions themselves belong to the caller."""
        return self._writer.nbytes

    @contextmanager
    def _query(self, events: Sequence[Event]) -> Iterator[Query]:
        """Open a query of the current snapshot, with scratch buffers that no other query uses."""
        try:
            buffers = self._idle.pop()
        except IndexError:
            buffers = ScratchBuffers()
            self._buffers.append(buffers)
        reusable = False
        try:
            yield Query(self._writer.snapshot, events, buffers)
            reusable = not buffers.exhausted
        finally:
            if reusable:
                self._idle.append(buffers)
            else:  # also if a query failed half-way
                self._buffers.remove(buffers)
                self._retired = [
                    self._retired[column] + int(buffers.counters[column]) for column in (0, 1)
                ]


def _id(subscription: Subscription) -> str:
    return subscription.id
