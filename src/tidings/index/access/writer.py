"""Who changes the index: one writer at a time, and one thread that rebuilds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock, Thread
from typing import Final

import numpy as np

from tidings.errors import InvalidSubscription, TidingsError
from tidings.index.access.encoded import encode
from tidings.index.access.rebuild import Job, carry_deaths, due, settled
from tidings.index.access.segment import Segment
from tidings.index.access.state import Listener, State
from tidings.index.access.tail import RECORDS, Row, Tail, rows_in, rows_of
from tidings.index.access.vocabulary import Vocabulary
from tidings.index.protocol import own_score
from tidings.model import Subscription

SMALL: Final = 8192
"""Up to so many subscriptions are merged at once, while the change waits; more by the thread."""

MOST_SEGMENTS: Final = 48
"""With so many segments, changes wait for the rebuild that is under way."""

FEW: Final = 64
"""Up to so many subscriptions go to the tail, one by one; more are a segment of their own."""


class Writer:
    """Makes new states out of changes, and swaps them in."""

    def __init__(self, waiting: int | None = None) -> None:
        self._most = RECORDS if waiting is None else min(waiting, RECORDS)
        self._lock = Lock()
        self._numbers: dict[str, int] = {}
        self._homes: dict[int, Segment] = {}
        self._serial = 0
        self._listeners: list[Listener] = []
        self._thread: Thread | None = None
        self._job: Job | None = None
        self._failure: Exception | None = None
        self._rebuilds = 0
        self.state = State.empty()

    def __len__(self) -> int:
        return len(self._numbers)

    def change(self, gone: Sequence[str], come: Sequence[Subscription]) -> None:
        """Remove some and add others, in one state; a wrong id is refused, and nothing changes."""
        self._wait()
        with self._lock:
            self._refuse(gone, come)
            dead = self._bury(gone)
            state = self._few(come) if len(come) <= FEW else self._many(come)
            self._publish(state, dead, come)

    def rescore(self, scores: Mapping[str, float]) -> None:
        """Give some other scores: their records are copied, not made again."""
        self._wait()
        with self._lock:
            self._refuse([*scores], ())
            table, state = self.state.table, self.state
            rows = [self._rows(self._numbers[name]) for name in scores]
            owners = [table.owners[self._numbers[name]] for name in scores]
            new = [
                replace(owner, score=score)
                for owner, score in zip(owners, scores.values(), strict=True)
                if owner is not None
            ]
            dead = self._bury([*scores])
            for each, found in zip(new, rows, strict=True):
                state = self._put(state, each, found)
            self._publish(state, dead, new)

    def listen(self, listener: Listener) -> None:
        """Tell a listener what is there, and then what comes and goes."""
        with self._lock:
            owners = self.state.table.owners
            numbers = sorted(self._numbers.values())
            listener.came(numbers, [each for each in map(owners.__getitem__, numbers) if each])
            self._listeners.append(listener)

    def subscription(self, number: int) -> Subscription | None:
        """Give the subscription that has a number now."""
        owners = self.state.table.owners
        owner = owners[number] if 0 <= number < len(owners) else None
        there = owner is not None and self._numbers.get(owner.id) == number
        return owner if there else None

    def settle(self) -> None:
        """Put everything into one segment, in a vocabulary of what is used."""
        self._wait(all_of_it=True)
        with self._lock:
            self.state = self._flushed(self.state, self.state.version)
            job = Job(self.state, self.state.segments, everything=True)
            if job.segments:
                self._swap(job, *job.build())

    def join(self) -> None:
        """Wait for the rebuild that is under way."""
        thread = self._thread
        if thread is not None:
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
        held = state.vocabulary.nbytes + state.table.nbytes + state.tail.nbytes
        return held + sum(each.nbytes for each in state.segments)

    def _wait(self, all_of_it: bool = False) -> None:
        """Wait while there is too much to rebuild, and tell what went wrong with the last one."""
        while self._thread and (all_of_it or len(self.state.segments) > MOST_SEGMENTS):
            self.join()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise TidingsError(f"a rebuild failed: {failure!r}") from failure

    def _refuse(self, gone: Sequence[str], come: Sequence[Subscription]) -> None:
        for name in gone:
            if name not in self._numbers:
                raise InvalidSubscription(f"there is no subscription {name!r}")
        if len({*gone}) < len(gone):
            raise InvalidSubscription("a subscription can go only once")
        names = {each.id for each in come}
        there = self._numbers.keys() & names
        if len(names) < len(come) or (there and not there <= {*gone}):
            twice = next(iter(there - {*gone}), "")
            raise InvalidSubscription(
                f"subscription {twice!r} is there already; replace it instead"
            )

    def _bury(self, gone: Sequence[str]) -> list[int]:
        """Stamp some as dead from the next version on; give their numbers."""
        numbers = [self._numbers.pop(name) for name in gone]
        table, version = self.state.table, self.state.version + 1
        if len(numbers) <= FEW:
            for number in numbers:
                home = self._homes.get(int(table.home[number]), self.state.tail)
                home.kill(int(table.place[number]), version)
            return numbers
        homes, places = table.home[numbers], table.place[numbers]
        for serial in np.unique(homes).tolist():
            home = self._homes.get(serial, self.state.tail)
            home.kill(places[homes == serial], version)
        return numbers

    def _rows(self, number: int) -> list[Row]:
        """Give the records of a number, where it lives."""
        table = self.state.table
        home = self._homes.get(int(table.home[number]), self.state.tail)
        return rows_in(home, int(table.place[number]))

    def _few(self, come: Sequence[Subscription]) -> State:
        state = self.state
        for each in come:
            state = self._put(state, each, rows_of(each, state.vocabulary))
        return state

    def _put(self, state: State, new: Subscription, rows: list[Row]) -> State:
        """Write a subscription to the tail, if need be a new one."""
        number = state.table.take(new)
        self._numbers[new.id] = number
        if state.tail.count >= self._most or not state.tail.fits(rows):
            state = self._flushed(state, self.state.version + 1)
        if self._most and state.tail.fits(rows):
            state.table.home[number] = -1
            state.table.place[number] = state.tail.put(number, own_score(new), rows)
            return state
        return self._with(state, [new], [number])

    def _many(self, come: Sequence[Subscription]) -> State:
        numbers = [self.state.table.take(each) for each in come]
        self._numbers.update(zip([each.id for each in come], numbers, strict=True))
        return self._with(self.state, come, numbers)

    def _with(self, state: State, come: Sequence[Subscription], numbers: list[int]) -> State:
        """Give the state with a new segment."""
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
        """Give the state with these segments, the larger ones first; note who is where."""
        for each in segments:
            if each.serial < 0:
                each.serial = self._serial
                self._serial += 1
                state.table.home[each.numbers] = each.serial
                state.table.place[each.numbers] = np.arange(len(each))
        segments.sort(key=len, reverse=True)
        kept = {each.serial: each for each in segments}
        building = self._job.segments if self._job else ()
        self._homes = {each.serial: each for each in building} | kept
        return state._replace(segments=tuple(segments))

    def _publish(self, state: State, dead: Sequence[int], come: Sequence[Subscription]) -> None:
        """Swap the next state in; the listeners hear what comes before, and what goes after."""
        new = [self._numbers[each.id] for each in come]
        for each in self._listeners:
            if new:
                each.came(new, come)
        self.state = state.seen(state.version + 1 if dead else state.version)
        for each in self._listeners:
            if dead:
                each.went(dead)
        self._tend()

    def _tend(self) -> None:
        """Build anew what is due: at once if it is small, else by the thread."""
        if not self._numbers:
            self._clear()
        while (job := self._due()) is not None:
            if job.size <= SMALL:
                self._swap(job, *job.build())
                continue
            if self._thread is not None:  # it builds for nobody, and will look again
                return
            self._job = job
            self._thread = Thread(target=self._run, args=(job,), daemon=True)
            self._thread.start()
            return

    def _due(self) -> Job | None:
        """Give what is to be built anew and is not being built."""
        state = self.state
        dead = sum(each.dead for each in state.segments)
        total = sum(map(len, state.segments))
        everything = 2 * dead > total
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
        try:
            made, vocabulary = job.build()
        except Exception as failure:  # noqa: BLE001 - whatever it is, a writer gets to know it
            self._failure, self._job, self._thread = failure, None, None
            return
        with self._lock:
            if self._job is job:
                self._swap(job, made, vocabulary)
            self._job = self._thread = None
            self._tend()

    def _swap(self, job: Job, made: Segment, vocabulary: Vocabulary) -> None:
        """Put the new segment in the place of the old ones."""
        carry_deaths(made, self.state.table, self._homes)
        others = [each for each in self.state.segments if each not in job.segments]
        self._rebuilds += 1
        if not job.everything:
            self.state = self._housed(self.state, [*others, *([made] if len(made) else [])])
            return
        version = self.state.version
        young = [each.numbers[each.died > version] for each in others]
        tail = self.state.tail
        notes = tail.rows.notes[: 2 * tail.count].reshape(-1, 2)
        young.append(notes[notes[:, 1] > version, 0])
        state = settled(self.state, made, vocabulary, np.concatenate(young))
        self._job = None
        self.state = self._housed(state, list(state.segments))

    def _clear(self) -> None:
        """Give everything back, once nobody is left; what is being built is for nobody."""
        if self.state.table.owners:
            self._job = None
            self._homes = {}
            self.state = State.empty(self.state.version)
