"""Ours: boxes that change while they are served; rebuilds happen in the background."""

from functools import partial
from typing import Any, ClassVar, Final, Self

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.errors import TidingsError, shown
from tidings.index import arguments
from tidings.index.background import Rebuild
from tidings.index.boxes.aggregate import named_aggregate
from tidings.index.boxes.exact_blocks import ExactBlocks
from tidings.index.boxes.live.runs import (
    NEVER,
    Entries,
    Make,
    Run,
    State,
    behind,
    empty_pile,
    how_of,
    in_pile,
    merge,
    put,
    run_of,
)
from tidings.index.boxes.protocol import Answer, Answers, Boxes, boxes_of, event_of, events_of
from tidings.index.boxes.relaxed_blocks import MOST, RelaxedBlocks
from tidings.index.boxes.search_base import Fast, empty_found, one_answer, sorted_found
from tidings.index.boxes.sparse import Sparse

LEAST: Final = 1024
"""Fewer boxes than this in the pile are never a reason to build."""
BACKLOG: Final = 8
"""A writer that finds so many times the bound in the pile waits until they are built in."""
DEAD: Final = 4
"""A run of which one in so many is dead is built anew."""
FILL: Final = 1 / 16
"""Below this share of constrained attributes, runs are lists, as `auto` has it."""


class Live:
    """Boxes that come and go while readers on other threads are answered.

    What there was at the last rebuild is a run, an index whose dead are stamped; what came since
    lies in a pile that is looked through. Once the pile has more than `bound` boxes, a thread
    builds a run of it and of all runs that are no larger than twice what they are joined with, so
    that there are O(log n) runs. A writer that outruns it waits, so that the pile stays short.
    Readers work on the state that they took, are never blocked, and
    see either all of a change or nothing of it. `over` is `blocks`, `sparse` or `auto`.
    """

    name: ClassVar[str] = "live"

    def __init__(
        self, boxes: Boxes, aggregate: Any = "sum", over: str = "auto", bound: int = LEAST
    ) -> None:
        arguments.count("bound", bound)
        self._how = how_of(boxes, named_aggregate(aggregate, self.name))
        self._make = maker(boxes, aggregate, over)
        self._bound, self._matching, self.attributes = bound, boxes.matching, boxes.attributes
        self._rebuild = Rebuild()
        ids = np.arange(len(boxes))
        run = run_of(self._make, Entries(boxes, ids), np.full(len(ids), NEVER, np.int32))
        self._state = State((run,), *empty_pile(boxes.attributes, 0), 0, 0)
        self._given = self._count = len(boxes)
        self._young: dict[int, int] = {}
        self._dead = 0

    def __len__(self) -> int:
        return self._count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays of the present state."""
        return self._state.nbytes

    def top(self, row: Any, k: int) -> Answer:
        """Give the k best: a batch of one."""
        most = min(arguments.count("k", k), self._given)
        return one_answer(self.top_many(event_of(self.attributes, row), most))

    def top_many(self, rows: Any, k: int) -> Answers:
        """Answer all events from one state."""
        state, events = self._state, events_of(self.attributes, rows)
        found = empty_found(len(events), arguments.width(k, len(events)))
        state.search(events, self._how, found)
        return sorted_found(found)

    def counters(self) -> dict[str, int]:
        """Give what a question looks at, and how many rebuilds there were."""
        state = self._state
        return {"runs": len(state.runs), "pile": state.size, "rebuilds": self._rebuild.count}

    def describe(self) -> str:
        """Tell what the present state is made of."""
        state, running = self._state, "a" if self._rebuild.running else "no"
        runs = ", ".join(f"{len(run):,}" for run in state.runs)
        return (
            f"live: {self._count:,} subscriptions over {self.attributes} attributes, "
            f"{self._matching}; runs of {runs}, pile {state.size:,}, "
            f"{running} rebuild is under way, {self._rebuild.count} were done."
        )

    def insert(self, low: Any, high: Any, worth: Any) -> int:
        """Insert a box; give its id."""
        return int(self.insert_many([low], [high], [worth])[0])

    def insert_many(self, low: Any, high: Any, worth: Any) -> Int64s:
        """Insert boxes, seen all at once; give their ids. All are refused if one is wrong."""
        boxes = self._checked(low, high, worth)
        with self._rebuild.lock:
            self._rebuild.writable()
            ids = np.arange(self._given, self._given + len(boxes))
            self._put(Entries(boxes, ids))
            self._given, self._count = self._given + len(ids), self._count + len(ids)
            self._tend()
        self._await_rebuild()
        return ids

    def delete(self, id: int) -> None:
        """Delete a box by id."""
        self.delete_many([id])

    def delete_many(self, ids: Any) -> None:
        """Delete boxes by id, seen all at once; none is deleted if one is not there."""
        wanted = distinct(ids)
        with self._rebuild.lock:
            self._rebuild.writable()
            self._kill(self._find(wanted))
            self._state = self._state._replace(version=self._state.version + 1)
            for id in wanted.tolist():
                self._young.pop(id, None)
            self._count -= len(wanted)
            self._tend()

    def replace(self, id: int, low: Any, high: Any, worth: Any) -> None:
        """Give a box other bounds and another score or other weights."""
        self.replace_many([id], [low], [high], [worth])

    def replace_many(self, ids: Any, low: Any, high: Any, worth: Any) -> None:
        """Give boxes other bounds and worths, seen all at once; none, if an id is not there."""
        wanted, boxes = distinct(ids), self._checked(low, high, worth)
        if len(wanted) != len(boxes):
            raise TidingsError(f"{len(wanted)} ids and {len(boxes)} boxes are not of one length")
        with self._rebuild.lock:
            self._rebuild.writable()
            self._kill(self._find(wanted))
            self._put(Entries(boxes, wanted))
            self._tend()
        self._await_rebuild()

    def rescore(self, id: int, worth: Any) -> None:
        """Give a box another score, or other weights."""
        self.rescore_many([id], [worth])

    def rescore_many(self, ids: Any, worth: Any) -> None:
        """Give boxes other scores or weights, seen all at once; none, if an id is not there."""
        wanted = distinct(ids)
        with self._rebuild.lock:
            self._rebuild.writable()
            found = self._find(wanted)
            low, high = self._bounds(found, len(wanted))
            boxes = self._checked(low, high, worth)
            self._kill(found)
            self._put(Entries(boxes, wanted))
            self._tend()
        self._await_rebuild()

    def rebuild(self) -> None:
        """Begin to build one run of everything in the background, unless one is under way."""
        with self._rebuild.lock:
            self._rebuild.writable()
            self._begin(everything=True)

    def settle(self) -> None:
        """Wait until no rebuild is under way."""
        self._rebuild.settle()

    def close(self) -> None:
        """Wait for a rebuild under way and take no more changes; queries are still answered."""
        self._rebuild.close()

    def _checked(self, low: Any, high: Any, worth: Any) -> Boxes:
        boxes = boxes_of(low, high, worth)
        if boxes.attributes != self.attributes or boxes.matching != self._matching:
            raise TidingsError(
                f"{self.attributes} attributes, {self._matching}, are wanted, not "
                f"{boxes.attributes}, {boxes.matching}"
            )
        return boxes

    def _find(self, ids: Int64s) -> list[tuple[Run | None, Int64s, Int64s]]:
        """Give for the pile and for each run which of the ids live there, and where."""
        at = np.fromiter((self._young.get(id, -1) for id in ids.tolist()), np.int64, len(ids))
        places: list[tuple[Run | None, Int64s]] = [(None, at)]
        places += [(run, run.find(ids)) for run in self._state.runs]
        missing = np.logical_and.reduce([at < 0 for _, at in places])
        if missing.any():
            raise TidingsError(f"there is no subscription {ids[np.argmax(missing)]}")
        return [(run, np.flatnonzero(at >= 0), at[at >= 0]) for run, at in places]

    def _bounds(
        self, found: list[tuple[Run | None, Int64s, Int64s]], count: int
    ) -> tuple[Any, Any]:
        low, high = np.empty((count, self.attributes)), np.empty((count, self.attributes))
        for run, which, at in found:
            boxes = self._held(run, at)
            low[which], high[which] = boxes.low, boxes.high
        return low, high

    def _held(self, run: Run | None, at: Int64s) -> Boxes:
        if run is None:
            return in_pile(self._state.pile, at, self._how)
        return run.index.held(run.places[at])

    def _kill(self, found: list[tuple[Run | None, Int64s, Int64s]]) -> None:
        """Stamp boxes as dead from the next version on."""
        for run, _, at in found:
            if run is None:
                self._state.died[at] = self._state.version + 1
            else:
                run.died[run.places[at]] = self._state.version + 1
                self._dead += len(at)

    def _put(self, new: Entries) -> None:
        """Put boxes into the pile and publish them, with all that was stamped before."""
        size = self._state.size
        self._state = put(self._state, new, self._how)
        self._young.update(zip(new.ids.tolist(), range(size, self._state.size), strict=True))

    def _await_rebuild(self) -> None:
        """Wait while the pile has more than a backlog of changes."""
        while self._rebuild.running and self._state.size > BACKLOG * max(self._bound, 1):
            self.settle()

    def _tend(self) -> None:
        if self._state.size > self._bound or self._too_dead():
            self._begin()

    def _too_dead(self) -> bool:
        return self._dead > max(self._bound, sum(map(len, self._state.runs)) // DEAD)

    def _begin(self, everything: bool = False) -> None:
        self._rebuild.begin(partial(self._work, everything))

    def _work(self, everything: bool) -> None:
        """Build until there is nothing to build."""
        more = True
        while more:
            more = self._build(everything)
            everything = False

    def _build(self, everything: bool) -> bool:
        """Build one run and swap; say whether there is more to do, or end the thread."""
        with self._rebuild.lock:
            frozen, everything = self._state, everything or self._too_dead()
        first = 0 if everything else first_to_join(frozen)
        stamped = merge(self._make, frozen, first, self._how)
        with self._rebuild.lock:
            state = self._state
            rest = behind(state, frozen.size)
            young = {
                id: place - frozen.size for id, place in self._young.items() if place >= frozen.size
            }
            runs = (*state.runs[:first], stamped(state))
            self._state, self._young = rest._replace(runs=runs), young
            self._rebuild.count += 1
            self._dead = sum(run.dead for run in self._state.runs)
            if rest.size > self._bound and not self._rebuild.closed:
                return True
            self._rebuild.done()
        return False


def first_to_join(state: State) -> int:
    """Give the first run that is joined: none that follows is more than twice what comes after."""
    size, first = state.size, len(state.runs)
    while first > 0 and len(state.runs[first - 1]) <= 2 * size:
        first -= 1
        size += len(state.runs[first])
    return first


def distinct(ids: Any) -> Int64s:
    """Give ids, if none is given twice."""
    wanted = arguments.ids_of("subscription", ids)
    if len(np.unique(wanted)) < len(wanted):
        raise TidingsError("an id is given twice; a change takes each once")
    return wanted


def maker(boxes: Boxes, aggregate: Any, over: Any) -> Make:
    """Give what builds a run; `auto` chooses lists where few attributes are constrained."""
    if not isinstance(over, str) or over not in ("auto", "blocks", "sparse"):
        raise TidingsError(f"over is 'auto', 'blocks' or 'sparse', not {shown(over)}")
    if boxes.matching == "exact":
        return ExactBlocks
    fill = float(boxes.constrained().mean()) if len(boxes) else 1.0
    few = fill < FILL or boxes.attributes > MOST
    kind = Sparse if over == "sparse" or (over == "auto" and few) else RelaxedBlocks

    def make(some: Boxes, names: Int64s) -> Fast:
        return kind(some, aggregate, names)

    return make
