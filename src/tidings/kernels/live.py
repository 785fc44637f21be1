"""Queries and changes of an index that is served while it changes.

A state is two runs, a buffer and a tail. A run is a SOPT-R-tree as `wide` has it, but with notes in
place of ids; the buffer is sorted by score; the tail is what came last, in no order. Nothing that a
reader may see is moved: a change appends to the tail, or stamps the version from which on an
entry is dead. A reader of version v therefore sees exactly what was there at v.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from tidings.kernels.bits import lowest_bit, without_lowest
from tidings.kernels.ir import ordered, slots_stabbed
from tidings.kernels.ir_store import table_drop, table_place
from tidings.kernels.numbers import int64
from tidings.kernels.policy import inlined, inner, kernel
from tidings.kernels.wide import FAN, INTERVALS, LEVELS, STATE, rounded, wide_enter

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Run = tuple[Singles, Ints, Floats, Ids, Floats, Ints]
"""A tree of `wide`, but with rows (id, died) in place of its ids; and the keys, by place."""
Pile = tuple[Floats, Ints, Ids]
"""A row of lows and one of highs, 64 longer than the rest; keys; rows (id, died, born)."""
Entry = tuple[float, float, float, int, int]
"""Low, high, score, id, and the version in which it is born."""
Seen = tuple[int, int, int]
"""What a reader sees: entries of the buffer, entries of the tail, and the version."""
Best = tuple[Ints, Ints, Ints]
"""The best ids so far; their keys, which are never above 0, or their places in the main run and 1,
as long as nobody asked for the key; and the keys of the main run. The last key is always known."""
Parts = tuple[Run, Run, Pile, Pile]
"""The main run, the middle run, the buffer and the tail."""
Young = tuple[Ints, Ints]
"""A table of the ids in buffer and tail: ids, and the negative of their keys, or -1."""
Listed = tuple[Ids, Ids]
"""The ids of a run in ascending order, and their places."""

TOGETHER: Final = 128
"""So many queries are answered together."""

NEVER: Final = (1 << 31) - 1
ID, DIED, BORN = range(3)


@inlined
def comes_late(best: Best, found: int, key: int, id: int) -> bool:
    """Say whether the best are full, and all before this one."""
    ids, keys = best[0], best[1]
    if found < len(ids):
        return False
    return keys[found - 1] < key or (keys[found - 1] == key and ids[found - 1] < id)


@inlined
def known_key(best: Best, at: int) -> int:
    """Give a key, and note it if only the place was."""
    keys, main_keys = best[1], best[2]
    if keys[at] > 0:
        keys[at] = main_keys[keys[at] - 1]
    return keys[at]


@inlined
def know_last(keys: Ints, counts: Ints, main_keys: Ints) -> None:
    """Note the last key of each row; on its own, so that the cache misses overlap."""
    for row in range(len(counts)):
        last = counts[row] - 1
        if last >= 0 and keys[row, last] > 0:
            keys[row, last] = main_keys[keys[row, last] - 1]


@inlined
def offer(best: Best, found: int, key: int, id: int) -> int:
    """Put an entry that does not come late where it belongs; give how many there are."""
    ids, keys = best[0], best[1]
    at = min(found, len(ids) - 1)
    while at > 0:
        before = known_key(best, at - 1)
        if before < key or (before == key and ids[at - 1] < id):
            break
        keys[at], ids[at] = before, ids[at - 1]
        at -= 1
    keys[at], ids[at] = key, id
    return min(found + 1, len(ids))


@inlined
def run_leaf(run: Run, q: float, version: int, state: Ints, best: Best, found: int) -> int:
    """Offer the entries of the current leaf; give how many are found, or -1 - that at the end.

    Stabbed entries come in order: the first that comes late is the end.
    """
    exact, notes, keys = run[2], run[3], run[5]
    first, mask, sure = state[LEVELS] * FAN, state[LEVELS + 1], state[LEVELS + 2]
    while mask != 0:
        entry = lowest_bit(mask)
        mask = without_lowest(mask)
        place = first + entry
        state[INTERVALS] += 1
        if notes[place, DIED] <= version:
            continue
        if (sure >> entry) & 1 or exact[place, 0] <= q <= exact[place, 1]:
            id = int64(notes[place, ID])
            if comes_late(best, found, keys[place], id):
                return -1 - found
            found = offer(best, found, keys[place], id)
    return found


@inlined
def run_walk(run: Run, q: float, version: int, state: Ints, best: Best, found: int) -> int:
    """Offer the stabbed entries of a run, best first, while they can be of use; give how many."""
    top, limits = len(run[1]) - 2, rounded(run[4], q)
    level = top
    wide_enter(run, limits, top, 0, state)  # type: ignore[arg-type]
    while level <= top:
        at = LEVELS + 3 * level
        if level == 0:
            found = run_leaf(run, q, version, state, best, found)
            if found < 0:
                return -1 - found
            level = 1
        elif state[at + 1] == 0:
            level += 1
        else:
            block = state[at] * FAN + lowest_bit(state[at + 1])
            state[at + 1] = without_lowest(state[at + 1])
            level -= 1
            wide_enter(run, limits, level, block, state)  # type: ignore[arg-type]
    return found


@inlined
def main_leaf(run: Run, q: float, version: int, state: Ints, best: Best, found: int) -> int:
    """Take the entries of the current leaf until it or the room is used up."""
    exact, notes = run[2], run[3]
    ids, keys = best[0], best[1]
    first, mask, sure = state[LEVELS] * FAN, state[LEVELS + 1], state[LEVELS + 2]
    while mask != 0 and found < len(ids):
        entry = lowest_bit(mask)
        mask = without_lowest(mask)
        place = first + entry
        state[INTERVALS] += 1
        if (sure >> entry) & 1 or exact[place, 0] <= q <= exact[place, 1]:
            ids[found], keys[found] = notes[place, ID], place + 1
            found += notes[place, DIED] > version
    return found


@inlined
def main_walk(run: Run, q: float, version: int, state: Ints, best: Best) -> int:
    """Take the best of the main run, when nothing else was looked at; give how many."""
    top, limits, found = len(run[1]) - 2, rounded(run[4], q), int64(0)
    level = top
    wide_enter(run, limits, top, 0, state)  # type: ignore[arg-type]
    while found < len(best[0]) and level <= top:
        at = LEVELS + 3 * level
        if level == 0:
            found = main_leaf(run, q, version, state, best, found)
            level = 1
        elif state[at + 1] == 0:
            level += 1
        else:
            block = state[at] * FAN + lowest_bit(state[at + 1])
            state[at + 1] = without_lowest(state[at + 1])
            level -= 1
            wide_enter(run, limits, level, block, state)  # type: ignore[arg-type]
    return found


@inlined
def pile_scan(pile: Pile, q: float, size: int, version: int, best: Best, found: int) -> int:
    """Offer the stabbed entries of the tail: it has no order, so all of it is looked at."""
    bounds, keys, notes = pile
    for first in range(0, size, FAN):
        mask = slots_stabbed(bounds, first, q)
        while mask != 0:
            place = first + lowest_bit(mask)
            mask = without_lowest(mask)
            if place >= size:
                break
            id = int64(notes[place, ID])
            late = comes_late(best, found, keys[place], id)
            if not late and notes[place, DIED] > version:
                found = offer(best, found, keys[place], id)
    return found


@inlined
def pile_walk(pile: Pile, q: float, size: int, version: int, best: Best, found: int) -> int:
    """Offer the stabbed entries of the buffer until one comes late, stabbed or not."""
    bounds, keys, notes = pile
    for first in range(0, size, FAN):
        if comes_late(best, found, keys[first], int64(notes[first, ID])):
            return found
        mask = slots_stabbed(bounds, first, q)
        while mask != 0:
            place = first + lowest_bit(mask)
            mask = without_lowest(mask)
            if notes[place, DIED] <= version:
                continue
            id = int64(notes[place, ID])
            if comes_late(best, found, keys[place], id):
                return found
            found = offer(best, found, keys[place], id)
    return found


@kernel
def live_top(parts: Parts, seen: Seen, q: float, state: Ints, out: Ints) -> int:
    """Answer one query; `state` counts what was looked at."""
    main, middle, buffer, tail = parts
    best, version, found = (out, np.empty(len(out), np.int64), main[5]), seen[2], int64(0)
    if len(out) == 0:
        return found
    if len(main[5]) > 0:
        found = main_walk(main, q, version, state, best)
    if found > 0:
        known_key(best, found - 1)
    if len(middle[5]) > 0:
        found = run_walk(middle, q, version, state, best, found)
    found = pile_walk(buffer, q, seen[0], version, best, found)
    state[INTERVALS] += seen[1]
    return pile_scan(tail, q, seen[1], version, best, found)


@kernel
def live_top_many(parts: Parts, seen: Seen, qs: Floats, out: Ints, counts: Ints) -> None:
    """Answer each query in its row of `out`: some rows at a time, one part after the other."""
    main, middle, buffer, tail = parts
    version, width = seen[2], out.shape[1]
    state, keys = np.zeros(STATE, np.int64), np.empty((TOGETHER, width), np.int64)
    counts[:] = 0
    if width == 0:
        return
    for start in range(0, len(qs), TOGETHER):
        end = min(start + TOGETHER, len(qs))
        if len(main[5]) > 0:
            for row in range(start, end):
                best = (out[row], keys[row - start], main[5])
                counts[row] = main_walk(main, qs[row], version, state, best)
            know_last(keys, counts[start:end], main[5])
        if len(middle[5]) > 0:
            for row in range(start, end):
                best = (out[row], keys[row - start], main[5])
                counts[row] = run_walk(middle, qs[row], version, state, best, counts[row])
        for row in range(start, end):
            best = (out[row], keys[row - start], main[5])
            counts[row] = pile_walk(buffer, qs[row], seen[0], version, best, counts[row])
        for row in range(start, end):
            best = (out[row], keys[row - start], main[5])
            counts[row] = pile_scan(tail, qs[row], seen[1], version, best, counts[row])


@kernel
def pile_append(pile: Pile, young: Young, at: int, entry: Entry) -> None:
    """Write an entry that no reader sees yet, and note its id."""
    bounds, keys, notes = pile
    low, high, score, id, born = entry
    bounds[0, at], bounds[1, at], keys[at] = low, high, -ordered(score)
    notes[at, ID], notes[at, DIED], notes[at, BORN] = id, NEVER, born
    young_note(young, id, keys[at])


@inner
def young_note(young: Young, id: int, key: int) -> None:
    """Note an id with its key."""
    place = table_place(young[0], young[1], id)  # type: ignore[arg-type]
    young[0][place], young[1][place] = id, -key


@kernel
def young_note_many(young: Young, ids: Ints, keys: Ints) -> None:
    """Note ids with their keys."""
    for each in range(len(ids)):
        young_note(young, ids[each], keys[each])


@inner
def place_listed(listed: Listed, id: int) -> int:
    """Give the place of an id in a run, or -1; O(log n)."""
    ids, places = listed
    below, above = int64(-1), int64(len(ids))
    while above - below > 1:
        middle = (below + above) >> 1
        if ids[middle] <= id:
            below = middle
        else:
            above = middle
    return int64(places[below]) if below >= 0 and ids[below] == id else int64(-1)


@kernel
def run_kill(listed: Listed, notes: Ids, id: int, version: int) -> int:
    """Stamp an entry of a run as dead from `version` on; give its place, or -1 if none lives."""
    place = place_listed(listed, id)
    if place < 0 or notes[place, DIED] != NEVER:
        return int64(-1)
    notes[place, DIED] = version
    return place


@kernel
def run_kill_all(listed: Listed, notes: Ids, ids: Ints, version: int) -> int:
    """Stamp those of the ids that live in the run; give how many."""
    killed = 0
    for id in ids:
        killed += run_kill(listed, notes, id, version) >= 0
    return killed


@inner
def pile_place(pile: Pile, size: int, key: int, id: int) -> int:
    """Give the place of an entry in the buffer, or -1; O(log n)."""
    keys, notes = pile[1], pile[2]
    below, above = int64(-1), int64(size)
    while above - below > 1:
        middle = (below + above) >> 1
        if keys[middle] < key or (keys[middle] == key and notes[middle, ID] <= id):
            below = middle
        else:
            above = middle
    return below if below >= 0 and keys[below] == key and notes[below, ID] == id else int64(-1)


@kernel
def young_kill(piles: tuple[Pile, Pile], seen: Seen, young: Young, id: int) -> int:
    """Stamp an entry of buffer or tail; give its place, in the tail -2 - place, or -1.

    An entry with the same key and id may be dead already: rescored away and back.
    """
    at = table_place(young[0], young[1], id)  # type: ignore[arg-type]
    if young[1][at] < 0:
        return int64(-1)
    key = -young[1][at]
    table_drop(young[0], young[1], at)  # type: ignore[arg-type]
    buffer, tail = piles
    place = pile_place(buffer, seen[0], key, id)
    if place >= 0 and buffer[2][place, DIED] == NEVER:
        buffer[2][place, DIED] = seen[2]
        return place
    place = seen[1] - 1
    while tail[2][place, ID] != id or tail[2][place, DIED] != NEVER:
        place -= 1
    tail[2][place, DIED] = seen[2]
    return -2 - place


@kernel
def kill_many(
    parts: Parts, lists: tuple[Listed, Listed], seen: Seen, young: Young, ids: Ints, bounds: Floats
) -> tuple[int, int, int]:
    """Stamp entries as dead from version `seen[2]` on, wherever they are, and write their bounds.

    Ends at the first that does not live; gives how many did, and how many of these in each run.
    """
    dead_main, dead_middle = 0, 0
    for done in range(len(ids)):
        id = ids[done]
        place = run_kill(lists[0], parts[0][3], id, seen[2])
        if place >= 0:
            bounds[0, done], bounds[1, done] = parts[0][2][place, 0], parts[0][2][place, 1]
            dead_main += 1
            continue
        place = run_kill(lists[1], parts[1][3], id, seen[2])
        if place >= 0:
            bounds[0, done], bounds[1, done] = parts[1][2][place, 0], parts[1][2][place, 1]
            dead_middle += 1
            continue
        place = young_kill((parts[2], parts[3]), seen, young, id)
        if place == -1:
            return done, dead_main, dead_middle
        pile = parts[2][0] if place >= 0 else parts[3][0]
        place = place if place >= 0 else -2 - place
        bounds[0, done], bounds[1, done] = pile[0, place], pile[1, place]
    return len(ids), dead_main, dead_middle


@kernel
def merge_piles(one: Pile, other: Pile, sizes: tuple[int, int], born: int, out: Pile) -> int:
    """Merge the living entries, born after `born`, of two sorted piles; give how many. O(n)."""
    at, also, count = int64(0), int64(0), int64(0)
    while at < sizes[0] or also < sizes[1]:
        first = also == sizes[1]
        if at < sizes[0] and also < sizes[1]:
            first = one[1][at] < other[1][also]
            if one[1][at] == other[1][also]:
                first = one[2][at, ID] < other[2][also, ID]
        if first:
            count = copy_entry(one, at, born, out, count)
            at += 1
        else:
            count = copy_entry(other, also, born, out, count)
            also += 1
    return count


@inner
def copy_entry(pile: Pile, at: int, born: int, out: Pile, count: int) -> int:
    """Copy an entry, if it lives and was born after `born`; give the new count."""
    if pile[2][at, DIED] != NEVER or pile[2][at, BORN] <= born:
        return count
    out[0][0, count], out[0][1, count] = pile[0][0, at], pile[0][1, at]
    out[1][count] = pile[1][at]
    out[2][count, ID], out[2][count, DIED] = pile[2][at, ID], NEVER
    out[2][count, BORN] = pile[2][at, BORN]
    return count + 1
