"""The chains of all rules of many subscribers, behind their windows; see `tidings.rules.chain`.

The kernel never fails half-way: before it passes on a pick or releases a list, it makes sure that
pools and buffers have room and that all periods are known. Where they have not, it stops, and the
caller provides what is missing and calls again.
"""

from typing import Final

from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, kernel
from tidings.compiled.simd import prefetch
from tidings.feed.columnar.kernels import layout as deliveries
from tidings.feed.columnar.kernels.layout import FAR, capacity_of
from tidings.feed.columnar.kernels.timing import fresh_rank
from tidings.feed.columnar.rules.kernels.different import is_compared, offer_different
from tidings.feed.columnar.rules.kernels.held_list import empty_list, list_cell, reserve_cells
from tidings.feed.columnar.rules.kernels.layout import (
    ARRIVAL,
    AT,
    BEFORE,
    CALENDAR,
    CELL_WIDTH,
    CHOICE,
    COPIED,
    DEADLINE,
    DIFFERENT,
    DISTANCES,
    DONE,
    EVENT,
    FILLS,
    HEAD_WIDTH,
    HELD,
    JUDGED,
    LIST_WIDTH,
    MISSING_US,
    MOST_CELLS,
    MOVED,
    NEXT,
    OUT,
    OWED,
    PASSED,
    PICK,
    PLACE,
    POSITION,
    PREFERRED,
    QUIET,
    QUIET_BEST,
    QUOTA,
    RANKS,
    REMEMBERED,
    RING,
    RING_CLASS,
    RING_WIDTH,
    ROOM,
    SENT,
    SIZE,
    SLAB,
    SLAB_CLASS,
    STOP,
    SUBSCRIBER,
    VERDICTS,
    WANTED,
    Picks,
    RuleArrays,
    RuleOutput,
    Turns,
    judge,
)
from tidings.feed.columnar.rules.kernels.quiet import drop_behind, offer_quiet
from tidings.feed.columnar.rules.kernels.quota import count_choice, may_hold, offer_quota
from tidings.feed.columnar.rules.kernels.rings import (
    is_writable,
    push_got,
    reserve_got,
    reserve_rank,
    ring_cell,
)
from tidings.feed.columnar.rules.kernels.spans import is_known, span_at

# Turns ahead for which lines are requested, then what they point to, and then a cell of that.
LINES_AHEAD: Final = 18
POOLS_AHEAD: Final = 12
CELLS_AHEAD: Final = 6
CACHE_LINE: Final = 64
VALUES_IN_LINE: Final = 8
SLOTS_IN_LINE: Final = 16


@inlined
def stop(output: RuleOutput, reason: int, place: int, wanted: int) -> bool:
    """Note why the kernel stops; return False."""
    progress = output.progress
    progress[STOP], progress[PLACE], progress[WANTED] = reason, place, wanted
    return False


@inlined
def periods_known(arrays: RuleArrays, output: RuleOutput, place: int, us: int) -> bool:
    """Return whether the rules from a place on can take an event at an instant."""
    codes = arrays.codes
    for later in range(place, len(codes.kind)):
        # Periods of a length are computed; those of a calendar are looked up.
        if codes.length[later] > 0 or codes.kind[later] not in (QUOTA, QUIET):
            continue
        if not is_known(arrays.spans, later, us):
            output.progress[MISSING_US] = us
            return stop(output, CALENDAR, later, 0)
    return True


@inlined
def can_hold(arrays: RuleArrays, row: int, place: int, us: int) -> bool:
    """Return whether a rule may hold an event at an instant.

    Most lines hold nothing most of the time, and have no slab until they do.
    """
    kind = arrays.codes.kind[place]
    if kind == QUIET:
        return span_at(arrays.spans, place, us) >= 0
    return kind == QUOTA and not arrays.codes.first[place] and may_hold(arrays, row, place, us)


@inlined
def most_held(arrays: RuleArrays, place: int) -> int:
    """Return how many events a rule holds at most: a worse one makes room for a better."""
    if arrays.codes.kind[place] == QUOTA:
        return arrays.codes.limit[place]
    return int64(arrays.chain.k) if arrays.chain.best_only else MOST_CELLS


@inlined
def has_room(
    arrays: RuleArrays, output: RuleOutput, row: int, place: int, more: int, us: int
) -> bool:
    """Reserve room for more events at an instant in the rules from a place on, and in the buffers.

    A verdict may be written for all that is held, and for each event by each rule: up to three,
    since it may be held, released, and take the place of another.
    """
    codes, places, ringed = arrays.codes, len(arrays.codes.kind), arrays.chain.ringed
    verdicts, fits = 0, output.progress[OUT] + more <= len(output.ranks)
    # Earlier rules too: `different` remembers what is delivered at the end of the chain.
    for rule in range(places):
        line, kind = row * places + rule, codes.kind[rule]
        verdicts += 3 * more
        if kind == DIFFERENT:
            fits = fits and reserve_got(arrays, row * ringed + rule, more)
        elif kind == QUOTA and place == 0:  # what another rule releases was chosen before
            fits = fits and reserve_rank(arrays, row * ringed + rule)
        if rule < arrays.chain.holding:
            continue
        verdicts += arrays.lists[line, HELD]
        if rule >= place and can_hold(arrays, row, rule, us):
            wanted = min(arrays.lists[line, HELD] + more, most_held(arrays, rule))
            fits = fits and reserve_cells(arrays, line, wanted)
    if fits and output.progress[VERDICTS] + verdicts <= len(output.verdicts):
        return True
    return stop(output, ROOM, place, more)


@inlined
def emit(arrays: RuleArrays, output: RuleOutput, row: int, order: int, cell: int) -> None:
    """Write a delivery."""
    columns, index = output.columns, output.progress[OUT]
    arrays.heads[row, SENT] += 1
    columns[index, deliveries.ORDER] = order
    # The caller wants to know whose it is, and would have to look that up by row.
    columns[index, deliveries.ROW] = output.progress[SUBSCRIBER]
    columns[index, deliveries.NUMBER] = arrays.heads[row, SENT]
    columns[index, deliveries.DECIDED] = arrays.held.cell[cell, AT]
    for column in range(COPIED):
        columns[index, deliveries.EVENT + column] = arrays.held.cell[cell, column]
    output.ranks[index] = arrays.held.rank[cell]
    output.progress[OUT] = index + 1


@inlined
def pass_on(
    arrays: RuleArrays, output: RuleOutput, row: int, place: int, order: int, cell: int
) -> None:
    """Offer an event to the rules from a place on; deliver it if it passes them all."""
    kinds = arrays.codes.kind
    for later in range(place, len(kinds)):
        passes = True
        if kinds[later] == QUOTA:
            passes = offer_quota(arrays, output, row, later, cell)
        elif kinds[later] == QUIET:
            passes = offer_quiet(arrays, output, row, later, cell)
        elif kinds[later] == DIFFERENT:
            passes = offer_different(arrays, output, row, later, cell)
        if not passes:
            return
    deliver(arrays, output, row, order, cell)


@inlined
def deliver(arrays: RuleArrays, output: RuleOutput, row: int, order: int, cell: int) -> None:
    """Write a delivery, and tell the rules that the event was received."""
    kinds, slot = arrays.codes.kind, arrays.held.cell[cell, EVENT]
    emit(arrays, output, row, order, cell)
    # What is dropped by a pause, behind the rules, was not got.
    if not arrays.paused[row]:
        for rule in range(len(kinds)):
            if kinds[rule] == DIFFERENT and is_compared(arrays, row * len(kinds) + rule, slot):
                ring = row * arrays.chain.ringed + rule
                push_got(arrays, ring, arrays.held.cell[cell, AT], slot)


@inlined
def set_deadline(arrays: RuleArrays, output: RuleOutput, row: int) -> None:
    """Set the first end of the lines of a row that hold something."""
    places, first = len(arrays.codes.kind), FAR
    for line in range(row * places + arrays.chain.holding, (row + 1) * places):
        if arrays.lists[line, HELD] > 0:
            first = min(first, arrays.end[line])
    # The caller looks for moved deadlines only if there are any, since most turns move none.
    if arrays.heads[row, DEADLINE] != first:
        arrays.heads[row, DEADLINE] = first
        if output.progress[MOVED] < len(output.moved):
            output.moved[output.progress[MOVED]] = row
        output.progress[MOVED] += 1


@inlined
def due_place(arrays: RuleArrays, row: int) -> int:
    """Return the last place that is due at the deadline.

    The later rule goes first, so that it is empty when the earlier one passes its events on.
    """
    places, last = len(arrays.codes.kind), 0
    for place in range(places):
        line = row * places + place
        if arrays.lists[line, HELD] > 0 and arrays.end[line] == arrays.heads[row, DEADLINE]:
            last = place
    return last


@inlined
def release(arrays: RuleArrays, output: RuleOutput, row: int, place: int, order: int) -> bool:
    """Pass on what a line releases at its end; return False if the kernel has to stop."""
    pool, chain, progress = arrays.held, arrays.chain, output.progress
    line, kind = row * len(arrays.codes.kind) + place, arrays.codes.kind[place]
    end, held = arrays.end[line], arrays.lists[line, HELD] + 0
    # The caller puts the chosen ones first, and says how many.
    if kind == QUIET and not chain.best_only and progress[PREFERRED] == 0:
        return stop(output, CHOICE, place, 0)
    if kind != OWED and not periods_known(arrays, output, place + 1, end):
        return False
    if not has_room(arrays, output, row, place + 1, held, end):
        return False
    if kind == QUIET:
        held = min(chain.k, held) if chain.best_only else progress[PREFERRED] - 1
        drop_behind(arrays, output, row, place, held, end)
        progress[PREFERRED] = 0
    # A later rule may take a slab meanwhile, which moves none: the cells stay where they are.
    for nth in range(held):
        cell = list_cell(arrays, line, nth)
        if kind == OWED:
            deliver(arrays, output, row, order, cell)
            continue
        pool.cell[cell, POSITION], pool.cell[cell, AT] = nth + 1, end
        if kind == QUIET:
            us = arrays.events.us[pool.cell[cell, EVENT]]
            pool.rank[cell] = fresh_rank(chain.decay, pool.score[cell], us, end)
        else:
            arrays.rings[row * chain.ringed + place, PASSED] += 1
        judge(arrays, output, place, cell, QUIET_BEST if kind == QUIET else FILLS)
        pass_on(arrays, output, row, place + 1, order, cell)
    empty_list(arrays, line)
    return True


@inlined
def release_until(arrays: RuleArrays, output: RuleOutput, row: int, order: int, us: int) -> bool:
    """Release what is due by an instant, in order of time; return False to stop."""
    while arrays.heads[row, DEADLINE] <= us:
        if not release(arrays, output, row, due_place(arrays, row), order):
            return False
        set_deadline(arrays, output, row)
    return True


@inlined
def take_pick(
    arrays: RuleArrays, output: RuleOutput, row: int, order: int, picks: Picks, pick: int
) -> bool:
    """Release what is due by the time of a pick, and pass the pick on; return False to stop."""
    pool, kinds, at = arrays.held, arrays.codes.kind, picks.columns[pick, deliveries.DECIDED]
    # Whatever stops the kernel comes before the first change: the pick is taken again from here.
    if not release_until(arrays, output, row, order, at):
        return False
    if not periods_known(arrays, output, 0, at):
        return False
    if arrays.chain.remembers and not is_writable(arrays.ranks, picks.rank[pick]):
        return stop(output, RANKS, 0, 0)
    if not has_room(arrays, output, row, 0, 1, at):
        return False
    for column in range(COPIED):
        pool.cell[0, column] = picks.columns[pick, deliveries.EVENT + column]
    pool.cell[0, AT], pool.cell[0, ARRIVAL] = at, 0
    pool.rank[0], pool.score[0] = picks.rank[pick], picks.score[pick]
    if arrays.chain.asks and output.progress[JUDGED] != pick:
        return stop(output, DISTANCES, 0, 0)
    pass_on(arrays, output, row, 0, order, 0)
    # A quota counts what the window chose, even what an earlier rule has dropped.
    for place in range(len(kinds)):
        if kinds[place] == QUOTA:
            count_choice(arrays, row, place, 0)
    set_deadline(arrays, output, row)
    return True


@inlined
def prefetch_ring(arrays: RuleArrays, ring: int, place: int) -> None:
    """Prefetch the cells that reading the ring of a rule needs."""
    rings, ranks, got = arrays.rings, arrays.ranks, arrays.got
    if rings[ring, RING_CLASS] < 0:
        return
    start, size = int64(rings[ring, RING]), rings[ring, SIZE]
    if arrays.codes.kind[place] == DIFFERENT:
        prefetch(got.slot, ring_cell(arrays, got.slabs, ring, 0))
        prefetch(got.slot, ring_cell(arrays, got.slabs, ring, size))
        # The same event is likely to be picked then, and may be near to none.
        if arrays.kept.least[0] < arrays.codes.least[place]:
            last = start + got.slabs.capacity[rings[ring, RING_CLASS]] - 1
            for cell in range(start, last, SLOTS_IN_LINE):
                prefetch(got.slot, cell)
            prefetch(got.slot, last)
        return
    # A full ring overwrites the oldest, any other one writes behind the newest.
    written = ring_cell(arrays, ranks.slabs, ring, 0 if size == REMEMBERED else size)
    prefetch(ranks.packed, written * ranks.bits[0] >> 3)
    # All ranks are read if something may be held; a short run is over before the CPU sees it.
    if rings[ring, BEFORE] > 0:
        first, length = start * ranks.bits[0], size * ranks.bits[0]
        for byte in range(first >> 3, (first + length) >> 3, CACHE_LINE):
            prefetch(ranks.packed, byte)


@inlined
def prefetch_lines(arrays: RuleArrays, row: int) -> None:
    """Prefetch the state of a row and of its rules."""
    places, ringed = len(arrays.codes.kind), arrays.chain.ringed
    prefetch(arrays.heads, row * HEAD_WIDTH)
    prefetch(arrays.paused, row)
    prefetch(arrays.end, row * places)
    for line in range(row * places + arrays.chain.holding, (row + 1) * places):
        prefetch(arrays.lists, line * LIST_WIDTH)
    for ring in range(row * ringed, (row + 1) * ringed):
        # A row may lie in two lines of the cache, and all of it is read.
        prefetch(arrays.rings, ring * RING_WIDTH)
        prefetch(arrays.rings, (ring + 1) * RING_WIDTH - 1)


@inlined
def prefetch_pools(arrays: RuleArrays, row: int) -> None:
    """Prefetch the rings of a row, and the values that its lists are sorted by."""
    lists, held_pool, codes = arrays.lists, arrays.held, arrays.codes
    for place in range(arrays.chain.ringed):
        prefetch_ring(arrays, row * arrays.chain.ringed + place, place)
    for line in range(row * len(codes.kind) + arrays.chain.holding, (row + 1) * len(codes.kind)):
        if lists[line, SLAB_CLASS] >= 0:
            start, held = int64(lists[line, SLAB]), lists[line, HELD]
            # A search may read any of the values, and begins in the middle.
            for position in range(0, held, VALUES_IN_LINE):
                prefetch(held_pool.value, start + position)
            prefetch(held_pool.value, start + held)
            prefetch(held_pool.nth, start)
            prefetch(held_pool.nth, start + held)


@inlined
def prefetch_cells(arrays: RuleArrays, row: int) -> None:
    """Prefetch the cells to which the lists of a row would copy an event.

    A list that is as long as it may be drops its worst, and takes that cell.
    """
    lists, held, places = arrays.lists, arrays.held, len(arrays.codes.kind)
    for line in range(row * places + arrays.chain.holding, (row + 1) * places):
        if lists[line, SLAB_CLASS] >= 0:
            last = capacity_of(held.slabs, lists[line, SLAB_CLASS]) - 1
            position = min(int64(lists[line, HELD]), last)
            if position == most_held(arrays, line - row * places):
                position -= 1
            cell = list_cell(arrays, line, position)
            prefetch(held.cell, cell * CELL_WIDTH)
            prefetch(held.cell, (cell + 1) * CELL_WIDTH - 1)
            prefetch(held.rank, cell)
            prefetch(held.score, cell)


@inlined
def has_picks(turns: Turns, turn: int) -> bool:
    """Return whether windows chose something for a turn; most others have nothing due."""
    return turns.first[turn] < turns.first[turn + 1]


@inlined
def prefetch_ahead(arrays: RuleArrays, turns: Turns, turn: int) -> None:
    """Prefetch the data of the turns a little ahead."""
    if turn + LINES_AHEAD >= len(turns.row):
        return
    if has_picks(turns, turn + LINES_AHEAD):
        prefetch_lines(arrays, int64(turns.row[turn + LINES_AHEAD]))
    if has_picks(turns, turn + POOLS_AHEAD):
        prefetch_pools(arrays, int64(turns.row[turn + POOLS_AHEAD]))
    if has_picks(turns, turn + CELLS_AHEAD):
        prefetch_cells(arrays, int64(turns.row[turn + CELLS_AHEAD]))


@kernel
def apply_rules(arrays: RuleArrays, turns: Turns, picks: Picks, output: RuleOutput) -> None:
    """Take turns from `progress[NEXT]` on, until all are taken or the kernel has to stop."""
    progress = output.progress
    for turn in range(progress[NEXT], len(turns.row)):
        # Written before anything can stop, so that the next call continues here.
        progress[NEXT] = turn
        prefetch_ahead(arrays, turns, turn)
        row, order = turns.row[turn], turns.order[turn]
        progress[SUBSCRIBER] = turns.subscriber[turn]
        for pick in range(max(progress[PICK], turns.first[turn]), turns.first[turn + 1]):
            progress[PICK] = pick
            if not take_pick(arrays, output, row, order, picks, pick):
                return
            progress[PICK] = pick + 1
        if not release_until(arrays, output, row, order, turns.us[turn]):
            return
    progress[NEXT], progress[STOP] = len(turns.row), DONE
