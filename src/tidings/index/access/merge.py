"""Segments built anew: merged, without the dead, and in a vocabulary without what nobody uses."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.index.access.encoding import Encoded, encode, joined, renamed
from tidings.index.access.kernels.records import NEVER
from tidings.index.access.memtable import Tail
from tidings.index.access.segment import Segment
from tidings.index.access.snapshot import State, Table
from tidings.index.access.vocabulary import Vocabulary


@dataclass(frozen=True)
class Job:
    """Segments of a state that become one; of everything, the vocabulary is made anew, too."""

    state: State
    segments: tuple[Segment, ...]
    everything: bool

    @property
    def size(self) -> int:
        """How many subscriptions there are to read."""
        return sum(map(len, self.segments))

    def build(self) -> tuple[Segment, Vocabulary]:
        """Build; O(n log n). Nothing of the state is changed."""
        version, vocabulary = self.state.version, self.state.vocabulary
        given = joined([each.encoded(version) for each in self.segments], self.state.table.ids)
        if self.everything:
            given, vocabulary = fresh(given, vocabulary)
        made = Segment(given, vocabulary)
        if any(each.posts_all for each in self.segments):
            made.partial(version)  # who asks next need not wait for it
        return made, vocabulary


def fresh(given: Encoded, vocabulary: Vocabulary) -> tuple[Encoded, Vocabulary]:
    """Give the same in a vocabulary of what is used."""
    stamped = given.entry >= 0
    entries = np.unique(np.concatenate([given.entry[stamped], given.members]))
    slots = np.unique(given.slot[~stamped & (given.slot >= 0)])
    codes = np.unique(given.low[given.differs]).view(np.float64)
    made, moves = vocabulary.kept(entries, slots, codes)
    found = renamed(given, moves)
    made.note_uses(np.concatenate([found.entry, found.members]), found.slot[found.entry < 0])
    return found, made


def renumbered(
    given: Sequence[tuple[Int64s, Encoded]],
    numbers: Sequence[int],
    scores: Float64s,
    ids: Sequence[str],
) -> Encoded:
    """Put subscriptions together, each of which is one of the numbers and has one of the scores."""
    new = np.array(numbers, np.int32)
    parts = [replace(each, numbers=new[at], scores=scores[at]) for at, each in given]
    return joined(parts, ids)


def due(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Give the segments to merge, if it is time: each shall be more than double of all after it.

    A segment that is half dead is built anew with them.
    """
    after = 0
    found: tuple[Segment, ...] = ()
    for at in range(len(segments) - 1, -1, -1):
        each = segments[at]
        if (after and len(each) <= 2 * after) or 2 * each.dead > len(each):
            found = tuple(segments[at:])
        after += len(each)
    return found


def carry_deaths(made: Segment, table: Table, homes: dict[int, Segment]) -> None:
    """Stamp as dead in a new segment who died in its old one while it was built."""
    numbers = made.numbers
    home, place = table.home[numbers], table.place[numbers]
    for serial in np.unique(home).tolist():
        there = np.flatnonzero(home == serial)
        made.rows.notes[2 * there + 1] = homes[serial].rows.notes[2 * place[there] + 1]
    made.dead = int(np.count_nonzero(made.died < NEVER))


def settled(state: State, made: Segment, vocabulary: Vocabulary, young: Int32s) -> State:
    """Give the state after everything was built anew; who came meanwhile is encoded again."""
    old = state.table
    alive = np.zeros(len(old.owners), np.bool_)
    alive[made.numbers[made.died > state.version]] = True
    alive[young] = True
    table = old.kept(alive)
    segments = [made] if len(made) else []
    if len(young):
        owners = [each for each in map(table.owners.__getitem__, young.tolist()) if each]
        segments.append(Segment(encode(owners, young.tolist(), vocabulary), vocabulary))
    return State(vocabulary, table, tuple(segments), Tail(), 0, state.version)
