"""Who changes the index: one writer at a time, and one thread that rebuilds."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock, Thread
from typing import Final

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.errors import InvalidSubscription, TidingsError
from tidings.index.access.encoding import Encoded, encode
from tidings.index.access.id_table import Names
from tidings.index.access.memtable import RECORDS, Row, Tail, rows_in, rows_of
from tidings.index.access.merge import Job, carry_deaths, due, renumbered, settled
from tidings.index.access.segment import Segment
from tidings.index.access.snapshot import Listener, State, checked
from tidings.index.access.vocabulary import Vocabulary
from tidings.index.protocol import own_score
from tidings.model.records import Subscription

SMALL: Final = 8192
"""Up to so many subscriptions are merged at once, while the change waits; more by the thread."""

MOST_SEGMENTS: Final = 48
"""With so many segments, changes wait for the rebuild that is under way."""

FEW: Final = 64
"""Up to so many subscriptions go to the tail, one by one; more are a segment of their own."""


NUMBERS: Final = 1024
"""So many numbers may be left over, beyond as many as there are subscriptions."""


class Writer:
    """Makes new states out of changes, and swaps them in."""

    def __init__(self, waiting: int | None = None) -> None:
        self._most = RECORDS if waiting is None else min(waiting, RECORDS)
        self._lock = Lock()
        self._names = Names()
        self._homes: dict[int, Segment] = {}
        self._serial = 0
        self._listeners: list[Listener] = []
        self._thread: Thread | None = None
        self._job: Job | None = None
        self._failure: Exception | None = None
        self._rebuilds = 0
        self.state = State.empty()

    def __len__(self) -> int:
        return len(self._names)

    def change(self, gone: Sequence[str], come: Sequence[Subscription]) -> None:
        """Remove some and add others, in one state; a wrong id is refused, and nothing changes."""
        self._wait()
        with self._lock:
            dead = self._found(gone)
            self._refuse(gone, come)
            few = len(come) <= FEW
            # What may fail comes first: nothing has changed by then.
            rows = [rows_of(each, self.state.vocabulary) for each in come] if few else []
            self._bury(gone, dead)
            numbers = self.state.table.take(come)
            self._names.put([each.id for each in come], numbers, self.state.table.ids)
            try:
                state = self._few(come, numbers, rows) if few else self._with(come, numbers)
            except BaseException:
                for each in come:
                    self._names.pop(each.id, self.state.table.ids)
                raise
            self._publish(state, dead, numbers)

    def rescore(self, scores: Mapping[str, float]) -> None:
        """Give some other scores: their records are copied, not made again."""
        self._wait()
        with self._lock:
            table, names = self.state.table, [*scores]
            dead = self._found(names)
            new = checked([table.owners.held[each] for each in dead], scores.values())
            rows = [self._rows(each) for each in dead] if len(dead) <= FEW else []
            given = self._picked(dead) if len(dead) > FEW else ()
            self._bury(names, dead)
            numbers = table.take_again(dead, new.tolist())
            self._names.put(names, numbers, table.ids)
            state = self.state
            for number, score, found in zip(numbers, new.tolist(), rows, strict=False):
                state = self._put(state, number, score, found)
            if given:
                made = renumbered(given, numbers, new, table.ids)
                state = self._housed(state, [*state.segments, Segment(made, state.vocabulary)])
            self._publish(state, dead, numbers)

    def listen(self, listener: Listener) -> None:
        """Tell a listener what is there, and then what comes and goes."""
        with self._lock:
            owners, numbers = self.state.table.owners, self._names.numbers().tolist()
            listener.came(numbers, [owners[each] for each in numbers])
            self._listeners.append(listener)

    def subscription(self, number: int) -> Subscription | None:
        """Give the subscription that has a number now."""
        table = self.state.table
        there = 0 <= number < len(table.ids)
        if not there or self._names.find(table.ids[number], table.ids) != number:
            return None
        owner: Subscription | None = table.owners[number]
        return owner

    def settle(self) -> None:
        """Put everything into one segment, in a vocabulary of what is used."""
        self._wait(all_of_it=True)
        with self._lock:
            self.state = self._flushed(self.state, self.state.version)
            job = Job(self.state, self.state.segments, everything=True)
            if job.segments:
                self._swap(job, *job.build())

    def join(self) -> None:
        """Wait until no rebuild is under way; one may begin the next."""
        while (thread := self._running()) is not None:
            thread.join()

    def describe(self) -> str:
        """Tell what the present state is made of."""
        state = self.state
        sizes = ", ".join(f"{len(each):,}" for each in state.segments) or "none"
        dead = sum(each.dead for each in state.segments) + state.tail.dead
        running = "a rebuild is under way" if self._thread else "no rebuild is under way"
        return (
            f"access: {len(self):,} subscriptions; segments {sizes}; tail {state.tail.count:,}; "
            f"dead {dead:,}; {running}, {self._rebuilds:,} done."
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the present state."""
        state = self.state
        held = state.vocabulary.nbytes + state.table.nbytes + state.tail.nbytes + self._names.nbytes
        return held + sum(each.nbytes for each in state.segments)

    def _wait(self, all_of_it: bool = False) -> None:
        """Wait while there is too much to rebuild, and tell what went wrong with the last one."""
        while self._thread and (all_of_it or len(self.state.segments) > MOST_SEGMENTS):
            self.join()
        with self._lock:
            failure, self._failure = self._failure, None
        if failure is not None:
            raise TidingsError(f"a rebuild failed: {failure!r}") from failure

    def _running(self) -> Thread | None:
        """Give the thread that builds; who holds the lock may be about to start it."""
        with self._lock:
            return self._thread

    def _found(self, names: Sequence[str]) -> list[int]:
        """Give the numbers of ids, all of which must be there."""
        ids, find = self.state.table.ids, self._names.find
        numbers = [find(name, ids) for name in names]
        if -1 in numbers:
            name = names[numbers.index(-1)]
            raise InvalidSubscription(f"there is no subscription {name!r}")
        return numbers

    def _refuse(self, gone: Sequence[str], come: Sequence[Subscription]) -> None:
        left, ids, names = {*gone}, self.state.table.ids, [each.id for each in come]
        for each in (gone, names):
            if len({*each}) < len(each):
                name = min(name for name, count in Counter(each).items() if count > 1)
                raise InvalidSubscription(f"{name!r} is given twice; a change takes an id once")
        there = [name for name in {*names} - left if self._names.find(name, ids) >= 0]
        if there:
            raise InvalidSubscription(
                f"subscription {min(there)!r} is there already; replace it instead"
            )

    def _bury(self, gone: Sequence[str], numbers: list[int]) -> None:
        """Stamp some as dead from the next version on."""
        table, version = self.state.table, self.state.version + 1
        for name in gone:
            self._names.pop(name, table.ids)
        if len(numbers) <= FEW:
            for number in numbers:
                home = self._homes.get(int(table.home[number]), self.state.tail)
                home.kill(int(table.place[number]), version)
            return
        for home, _, places in self._at(numbers):
            home.kill(places, version)

    def _at(self, numbers: Sequence[int]) -> Iterator[tuple[Segment | Tail, Int64s, Int64s]]:
        """Give who lives together: where, which of the numbers, and their places there."""
        homes, places = self.state.table.home[numbers], self.state.table.place[numbers]
        for serial in np.unique(homes).tolist():
            which = np.flatnonzero(homes == serial)
            yield self._homes.get(serial, self.state.tail), which, places[which].astype(np.int64)

    def _picked(self, numbers: Sequence[int]) -> list[tuple[Int64s, Encoded]]:
        """Give subscriptions as they are kept, with which of the numbers they have."""
        ids = self.state.table.ids
        return [(which, home.picked(places, ids)) for home, which, places in self._at(numbers)]

    def _rows(self, number: int) -> list[Row]:
        """Give the records of a number, where it lives."""
        table = self.state.table
        home = self._homes.get(int(table.home[number]), self.state.tail)
        return rows_in(home, int(table.place[number]))

    def _few(
        self, come: Sequence[Subscription], numbers: list[int], rows: list[list[Row]]
    ) -> State:
        state = self.state
        for number, each, found in zip(numbers, come, rows, strict=True):
            state = self._put(state, number, own_score(each), found)
        return state

    def _put(self, state: State, number: int, score: float, rows: list[Row]) -> State:
        """Write a subscription to the tail, if need be a new one."""
        fits = state.tail.fits(rows)
        if state.tail.count >= self._most or not fits:
            state = self._flushed(state, self.state.version + 1)
            fits = state.tail.fits(rows)
        if self._most and fits:
            state.table.home[number] = -1
            state.table.place[number] = state.tail.put(number, score, rows)
            return state
        given = encode([state.table.owners[number]], [number], state.vocabulary)
        return self._housed(state, [*state.segments, Segment(given, state.vocabulary)])

    def _with(self, come: Sequence[Subscription], numbers: list[int]) -> State:
        """Give the state with a new segment."""
        state = self.state
        made = Segment(encode(come, numbers, state.vocabulary), state.vocabulary)
        return self._housed(state, [*state.segments, made])

    def _flushed(self, state: State, version: int) -> State:
        """Give the state with a segment in place of its tail."""
        if not state.tail.count:
            return state
        given = state.tail.encoded(version, state.table.ids)
        state = state._replace(tail=Tail(), size=0)
        if not len(given):
            return state
        state.vocabulary.note_uses(given.entry, given.slot)
        return self._housed(state, [*state.segments, Segment(given, state.vocabulary)])

    def _housed(self, state: State, segments: list[Segment]) -> State:
        """Give the state with these segments, the larger ones first; note who is where.

        What takes room comes first: if there is none, nothing has changed.
        """
        new = [each for each in segments if each.serial < 0]
        seats = [(each.numbers.astype(np.intp), np.arange(len(each))) for each in new]
        serials = range(self._serial, self._serial + len(new))
        building = self._job.segments if self._job else ()
        homes = {each.serial: each for each in (*building, *segments) if each.serial >= 0}
        homes |= dict(zip(serials, new, strict=True))
        found = state._replace(segments=tuple(sorted(segments, key=len, reverse=True)))
        for serial, each, (numbers, places) in zip(serials, new, seats, strict=True):
            each.serial = serial
            state.table.home[numbers], state.table.place[numbers] = serial, places
        self._serial, self._homes = serials.stop, homes
        return found

    def _publish(self, state: State, dead: Sequence[int], new: Sequence[int]) -> None:
        """Swap the next state in; the listeners hear what comes before, and what goes after."""
        for each in self._listeners:
            if new:
                each.came(new, [state.table.owners[number] for number in new])
        self.state = state.seen(state.version + 1 if dead else state.version)
        for each in self._listeners:
            if dead:
                each.went(dead)
        self._tend()

    def _tend(self) -> None:
        """Build anew what is due: at once if it is small, else by the thread.

        The change is made by now, so what fails is told to the next writer.
        """
        if not len(self._names):
            self._clear()
        try:
            while (job := self._due()) is not None and job.size <= SMALL:
                self._swap(job, *job.build())
            if job is not None and self._thread is None:  # else it will look again
                thread = Thread(target=self._run, args=(job,), daemon=True)
                thread.start()  # it waits for the lock before it looks at these
                self._job, self._thread = job, thread
        except Exception as failure:  # noqa: BLE001 - whatever it is, a writer gets to know it
            self._failure = failure

    def _due(self) -> Job | None:
        """Give what is to be built anew and is not being built."""
        state = self.state
        dead = sum(each.dead for each in state.segments)
        total = sum(map(len, state.segments))
        # Subscriptions that came and went within the tail left no dead behind, but their numbers.
        numbers = len(state.table.ids) - len(state.table.free)
        everything = 2 * dead > total or numbers > 2 * len(self._names) + NUMBERS
        busy = self._job.segments if self._job else ()
        if everything and not busy:
            self.state = state = self._flushed(state, state.version)
            return Job(state, state.segments, everything=True)
        chosen = due([each for each in state.segments if each not in busy])
        if not chosen or (busy and sum(map(len, chosen)) > SMALL):
            return None
        return Job(state, chosen, everything=False)

    def _run(self, job: Job) -> None:
        """Build in the background, then swap; what fails is told to the next writer."""
        failure: Exception | None = None
        try:
            built = job.build()
            with self._lock:
                if self._job is job:
                    self._swap(job, *built)
        except Exception as error:  # noqa: BLE001 - whatever it is, a writer gets to know it
            failure = error
        with self._lock:
            self._job = self._thread = None
            if failure is None:
                self._tend()
            else:
                self._failure = failure

    def _swap(self, job: Job, made: Segment, vocabulary: Vocabulary) -> None:
        """Put the new segment in the place of the old ones; if that fails, nothing has changed."""
        carry_deaths(made, self.state.table, self._homes)
        others = [each for each in self.state.segments if each not in job.segments]
        if job.everything:
            self.state = self._settled(made, vocabulary, others)
        else:
            self.state = self._housed(self.state, [*others, *([made] if len(made) else [])])
        self._rebuilds += 1

    def _settled(self, made: Segment, vocabulary: Vocabulary, others: Sequence[Segment]) -> State:
        """Give the state after everything was built anew but what has come since."""
        version = self.state.version
        young = [each.numbers[each.died > version] for each in others]
        tail = self.state.tail
        notes = tail.rows.notes[: 2 * tail.count].reshape(-1, 2)
        young.append(notes[notes[:, 1] > version, 0])
        state = settled(self.state, made, vocabulary, np.concatenate(young))
        self._job = None
        return self._housed(state, list(state.segments))

    def _clear(self) -> None:
        """Give everything back, once nobody is left; what is being built is for nobody."""
        if self.state.table.ids:
            self._job = None
            self._homes = {}
            self._names = Names()
            self.state = State.empty(self.state.version)
