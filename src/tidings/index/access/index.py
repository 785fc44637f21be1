"""The access-predicate index (ours), which changes while it is served.

An event stamps the predicates that hold, which are numbers, and is led only to the conjunctions
whose access predicate holds; their next check lies beside them, and the others are made only after
that. The lists are in order of the own scores, so that the best k are found without the rest.

Subscriptions are in segments that do not change, and the newest in a short tail. A change makes a
new state, which is swapped in; whoever asks takes the state of that moment and keeps it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from tidings.index.access.query import Found, Holding, Question, Scored
from tidings.index.access.scratch import Desk
from tidings.index.access.snapshot import Listener, State
from tidings.index.access.writer import Writer
from tidings.index.protocol import Score, best_found
from tidings.model.records import Event, Subscription


class Access:
    """Looks at the conjunctions whose most selective predicate the event satisfies.

    Any number of threads may ask while others change it: changes wait for each other, questions
    for nobody. A call sees all of a change or nothing of it. Up to `waiting` new subscriptions are
    looked at one by one before they go to a segment.
    """

    def __init__(
        self, subscriptions: Iterable[Subscription] = (), waiting: int | None = None
    ) -> None:
        self._writer = Writer(waiting)
        self._desks: list[Desk] = []
        self._made: list[Desk] = []
        self._looked = [0, 0]  # at desks that are gone
        self.add_many(subscriptions)

    def __len__(self) -> int:
        return len(self._writer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, subscription: Subscription) -> None:
        """Add a subscription."""
        self._writer.change((), (subscription,))

    def add_many(self, subscriptions: Iterable[Subscription]) -> None:
        """Add subscriptions at once: nobody sees only some of them."""
        self._writer.change((), list(subscriptions))

    def remove(self, subscription: str) -> None:
        """Remove a subscription by id."""
        self._writer.change((subscription,), ())

    def remove_many(self, subscriptions: Iterable[str]) -> None:
        """Remove subscriptions at once."""
        self._writer.change(list(subscriptions), ())

    def replace(self, subscription: Subscription) -> None:
        """Put a subscription in the place of the one that has its id."""
        self._writer.change((subscription.id,), (subscription,))

    def replace_many(self, subscriptions: Iterable[Subscription]) -> None:
        """Replace subscriptions at once."""
        new = list(subscriptions)
        self._writer.change([each.id for each in new], new)

    def rescore(self, subscription: str, score: float) -> None:
        """Give a subscription another score; its condition is not looked at again."""
        self._writer.rescore({subscription: score})

    def rescore_many(self, scores: dict[str, float]) -> None:
        """Give subscriptions other scores at once."""
        self._writer.rescore(scores)

    def listen(self, listener: Listener) -> None:
        """Tell a stage of the numbers that are there, and from now on of those that come and go."""
        self._writer.listen(listener)

    def subscription(self, number: int) -> Subscription | None:
        """Give the subscription of a number; None if there is none now."""
        return self._writer.subscription(number)

    def named(self, numbers: Iterable[int]) -> list[str]:
        """Give the ids of numbers that are there now."""
        ids = self._writer.state.table.ids
        return [ids[number] for number in numbers]

    def matching(self, event: Event) -> list[Subscription]:
        """Give the subscriptions that cover the event, by id."""
        return sorted(self.matching_many([event]).subscriptions(0), key=_id)

    def matching_many(self, events: Sequence[Event]) -> Found:
        """Give for every event the numbers of the subscriptions that cover it, in arrays."""
        with self._question(events) as question:
            return question.matching()

    def touching(self, event: Event) -> list[Subscription]:
        """Give the subscriptions of which at least one predicate holds, by id."""
        return sorted(self.touching_many([event]).found.subscriptions(0), key=_id)

    def touching_many(self, events: Sequence[Event]) -> Holding:
        """Give for every event the numbers of those, and which of their predicates hold.

        What is looked at are predicates that hold, found in lists of their own, which are made
        when this is first asked.
        """
        with self._question(events) as question:
            return question.touching()

    def top(self, event: Event, k: int, score: Score | None = None) -> list[Scored]:
        """Give the k best by `score`, ties by smaller id."""
        return best_found(self, event, k, score) if score else self.top_many([event], k)[0]

    def top_many(self, events: Sequence[Event], k: int) -> list[list[Scored]]:
        """Give for each event the k best by their own scores; many a call cost less each."""
        with self._question(events) as question:
            return question.tops(k)

    def top_relaxed(self, event: Event, k: int) -> list[Scored]:
        """Give the k best by the sum of the weights that hold, ties by smaller id."""
        return self.top_relaxed_many([event], k)[0]

    def top_relaxed_many(self, events: Sequence[Event], k: int) -> list[list[Scored]]:
        """Give that for each event."""
        with self._question(events) as question:
            return question.relaxed(k)

    def counters(self) -> dict[str, int]:
        """Give how many predicates and subscriptions were looked at so far."""
        predicates, subscriptions = (
            self._looked[at] + sum(int(desk.looked[at]) for desk in self._made) for at in (0, 1)
        )
        return {"predicates": predicates, "subscriptions": subscriptions}

    def settle(self) -> None:
        """Put everything into one segment, by what the events so far say of the predicates."""
        self._writer.settle()

    def close(self) -> None:
        """Wait for a rebuild that is under way."""
        self._writer.join()

    def describe(self) -> str:
        """Tell what the present state is made of."""
        return self._writer.describe()

    @property
    def state(self) -> State:
        """The present state."""
        return self._writer.state

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and dicts; the subscriptions themselves belong to who made them."""
        return self._writer.nbytes

    @contextmanager
    def _question(self, events: Sequence[Event]) -> Iterator[Question]:
        """Put events to the present state, at a desk where nobody works."""
        try:
            desk = self._desks.pop()
        except IndexError:
            desk = Desk()
            self._made.append(desk)
        fit = False
        try:
            yield Question(self._writer.state, events, desk)
            fit = not desk.worn
        finally:
            if fit:
                self._desks.append(desk)
            else:  # of no use any more, also if a question failed half-way
                self._made.remove(desk)
                self._looked = [self._looked[at] + int(desk.looked[at]) for at in (0, 1)]


def _id(subscription: Subscription) -> str:
    return subscription.id
