"""All rules of many subscribers in a row, behind their windows; see `tidings.rules.chain`.

The kernel never fails half-way: before it passes on a pick or releases a list, it makes sure that
pools and buffers have room and that all periods are known. Where they have not, it stops, and the
caller provides what is missing and calls again.
"""

from typing import Final

from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, kernel
from tidings.compiled.prefetch import prefetch
from tidings.feed.columnar.kernels import layout as deliveries
from tidings.feed.columnar.kernels.decay import fresh_rank
from tidings.feed.columnar.kernels.layout import FAR
from tidings.feed.columnar.rules.kernels.different import offer_different
from tidings.feed.columnar.rules.kernels.held_list import empty_list, reserve_cells
from tidings.feed.columnar.rules.kernels.layout import (
    ARRIVAL,
    AT,
    CALENDAR,
    CELL_WIDTH,
    CHOICE,
    COPIED,
    COUNT_WIDTH,
    DIFFERENT,
    DISTANCES,
    DONE,
    END,
    EVENT,
    FILLS,
    HELD,
    JUDGED,
    MISSING_US,
    MOVED,
    NEXT,
    OUT,
    OWED,
    PASSED,
    PICK,
    PLACE,
    POSITION,
    QUIET,
    QUIET_BEST,
    QUOTA,
    RING,
    RING_CLASS,
    ROOM,
    SIZE,
    SLAB,
    SLAB_CLASS,
    SPAN_WIDTH,
    STOP,
    VERDICTS,
    WANTED,
    Picks,
    RuleArrays,
    RuleOutput,
    Turns,
)
from tidings.feed.columnar.rules.kernels.quiet import drop_behind, offer_quiet
from tidings.feed.columnar.rules.kernels.quota import count_choice, may_hold, offer_quota
from tidings.feed.columnar.rules.kernels.rings import (
    push_got,
    reserve_got,
    reserve_rank,
    ring_cell,
)
from tidings.feed.columnar.rules.kernels.spans import is_known, span_at
from tidings.feed.columnar.rules.kernels.verdicts import judge

# Turns ahead for which lines are requested, and then what the lines point to.
NEAR_AHEAD: Final = 6
FAR_AHEAD: Final = 12


@inlined
def stop(output: RuleOutput, reason: int, place: int, wanted: int) -> bool:
    """Note why the kernel stops; return False."""
    progress = output.progress
    progress[STOP], progress[PLACE], progress[WANTED] = reason, place, wanted
    return False


@inlined
def periods_known(arrays: RuleArrays, output: RuleOutput, row: int, place: int, us: int) -> bool:
    """Return whether the rules from a place on can take an event at an instant."""
    codes, places = arrays.codes, len(arrays.codes.kind)
    for later in range(place, places):
        kind = codes.kind[later]
        if codes.length[later] > 0 or kind not in (QUOTA, QUIET):
            continue
        begun = kind == QUOTA and us < arrays.span[row * places + later, END]
        if not begun and not is_known(arrays.spans, later, us):
            output.progress[MISSING_US] = us
            return stop(output, CALENDAR, later, 0)
    return True


@inlined
def can_hold(arrays: RuleArrays, line: int, place: int, us: int) -> bool:
    """Return whether the rule of a line may hold an event at an instant.

    Most lines hold nothing most of the time, and have no slab until they do.
    """
    kind = arrays.codes.kind[place]
    if kind == QUIET:
        return span_at(arrays.spans, place, us) >= 0
    return kind == QUOTA and not arrays.codes.first[place] and may_hold(arrays, line, us)


@inlined
def has_room(
    arrays: RuleArrays, output: RuleOutput, row: int, place: int, more: int, us: int
) -> bool:
    """Reserve room for more events at an instant in the rules from a place on, and in the buffers.

    A verdict may be written for all that is held, and for each event by each rule: up to three,
    since it may be held, released, and take the place of another.
    """
    codes, count, places = arrays.codes, arrays.counts, len(arrays.codes.kind)
    verdicts, fits = 0, output.progress[OUT] + more <= len(output.ranks)
    for each in range(places):
        line, kind = row * places + each, codes.kind[each]
        verdicts += count[line, HELD] + 3 * more
        if kind == DIFFERENT:
            fits = fits and reserve_got(arrays, line, more)
        elif kind == QUOTA and place == 0:
            fits = fits and reserve_rank(arrays, line)
        if each >= place and can_hold(arrays, line, each, us):
            fits = fits and reserve_cells(arrays, line, more)
    if fits and output.progress[VERDICTS] + verdicts <= len(output.verdicts):
        return True
    return stop(output, ROOM, place, more)


@inlined
def emit(arrays: RuleArrays, output: RuleOutput, row: int, order: int, cell: int) -> None:
    """Write a delivery."""
    columns, index = output.columns, output.progress[OUT]
    arrays.sent[row] += 1
    columns[index, deliveries.ORDER], columns[index, deliveries.ROW] = order, row
    columns[index, deliveries.NUMBER] = arrays.sent[row]
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
    emit(arrays, output, row, order, cell)
    # What is dropped by a pause, behind the rules, was not got.
    if not arrays.paused[row]:
        for each in range(len(kinds)):
            if kinds[each] == DIFFERENT:
                us, slot = arrays.held.cell[cell, AT], arrays.held.cell[cell, EVENT]
                push_got(arrays, row * len(kinds) + each, us, slot)


@inlined
def set_deadline(arrays: RuleArrays, output: RuleOutput, row: int) -> None:
    """Set the first end of the lines of a row that hold something."""
    places, first = len(arrays.codes.kind), FAR
    for line in range(row * places, (row + 1) * places):
        if arrays.counts[line, HELD] > 0:
            first = min(first, arrays.span[line, END])
    if arrays.deadline[row] != first:
        arrays.deadline[row] = first
        output.progress[MOVED] += 1


@inlined
def due_place(arrays: RuleArrays, row: int) -> int:
    """Return the last place that is due at the deadline.

    The later rule goes first, so that it is empty when the earlier one passes its events on.
    """
    places, last = len(arrays.codes.kind), 0
    for place in range(places):
        line = row * places + place
        if arrays.counts[line, HELD] > 0 and arrays.span[line, END] == arrays.deadline[row]:
            last = place
    return last


@inlined
def release(arrays: RuleArrays, output: RuleOutput, row: int, place: int, order: int) -> bool:
    """Pass on what a line releases at its end; return False if the kernel has to stop."""
    count, pool, chain = arrays.counts, arrays.held, arrays.chain
    line, kind = row * len(arrays.codes.kind) + place, arrays.codes.kind[place]
    end, held = arrays.span[line, END], count[line, HELD] + 0
    # The caller puts the chosen ones first, and says how many in SIZE.
    if kind == QUIET and not chain.best_only and count[line, SIZE] == 0:
        return stop(output, CHOICE, place, 0)
    if kind != OWED and not periods_known(arrays, output, row, place + 1, end):
        return False
    if not has_room(arrays, output, row, place + 1, held, end):
        return False
    if kind == QUIET:
        held = min(chain.k, held) if chain.best_only else count[line, SIZE] - 1
        drop_behind(arrays, output, row, place, held, end)
        count[line, SIZE] = 0
    # A later rule may take a slab meanwhile, which moves none: the cells stay where they are.
    for nth in range(held):
        cell = arrays.span[line, SLAB] + nth
        if kind == OWED:
            emit(arrays, output, row, order, cell)
            continue
        pool.cell[cell, POSITION], pool.cell[cell, AT] = nth + 1, end
        if kind == QUIET:
            us = arrays.events.us[pool.cell[cell, EVENT]]
            pool.rank[cell] = fresh_rank(chain.decay, pool.score[cell], us, end)
        else:
            count[line, PASSED] += 1
        judge(arrays, output, row, place, cell, QUIET_BEST if kind == QUIET else FILLS)
        pass_on(arrays, output, row, place + 1, order, cell)
    empty_list(arrays, line)
    return True


@inlined
def release_until(arrays: RuleArrays, output: RuleOutput, row: int, order: int, us: int) -> bool:
    """Release what is due by an instant, in order of time; return False to stop."""
    while arrays.deadline[row] <= us:
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
    if not periods_known(arrays, output, row, 0, at):
        return False
    if not has_room(arrays, output, row, 0, 1, at):
        return False
    for column in range(COPIED):
        pool.cell[0, column] = picks.columns[pick, deliveries.EVENT + column]
    pool.cell[0, AT], pool.cell[0, ARRIVAL] = at, 0
    pool.rank[0], pool.score[0] = picks.rank[pick], picks.score[pick]
    if arrays.chain.asks and output.progress[JUDGED] != pick:
        return stop(output, DISTANCES, 0, 0)
    pass_on(arrays, output, row, 0, order, 0)
    for place in range(len(kinds)):
        if kinds[place] == QUOTA:
            count_choice(arrays, row * len(kinds) + place, place, 0)
    set_deadline(arrays, output, row)
    return True


@inlined
def prefetch_pools(arrays: RuleArrays, line: int, kind: int) -> None:
    """Request the ends of the ring and of the list of a line; what is between follows in order."""
    count, held = arrays.counts, arrays.held
    if count[line, RING_CLASS] >= 0 and kind == QUOTA:
        # The ranks are read in order, or only the next cell is written.
        size, slabs = count[line, SIZE] + 0, arrays.ranks.slabs
        prefetch(arrays.ranks.rank, ring_cell(arrays, slabs, line, 0))
        prefetch(arrays.ranks.rank, ring_cell(arrays, slabs, line, size - 1))
    elif count[line, RING_CLASS] >= 0 and kind == DIFFERENT:
        oldest = ring_cell(arrays, arrays.got.slabs, line, 0)
        prefetch(arrays.got.us, oldest)
        prefetch(arrays.got.slot, oldest)
        prefetch(arrays.got.slot, int64(arrays.span[line, RING]))
    if count[line, SLAB_CLASS] >= 0:
        start = int64(arrays.span[line, SLAB])
        behind = start + count[line, HELD]
        prefetch(held.value, start)
        for cell in (start, behind - 1, behind):
            prefetch(held.cell, cell * CELL_WIDTH)
        prefetch(held.rank, behind)
        prefetch(held.score, behind)


@inlined
def prefetch_ahead(arrays: RuleArrays, turns: Turns, turn: int) -> None:
    """Request what the turns a little ahead will need, if windows chose something for them."""
    places = len(arrays.codes.kind)
    if turn + FAR_AHEAD >= len(turns.row):
        return
    if turns.first[turn + FAR_AHEAD] < turns.first[turn + FAR_AHEAD + 1]:
        line = turns.row[turn + FAR_AHEAD] * places
        for place in range(places):
            prefetch(arrays.span, (line + place) * SPAN_WIDTH)
            prefetch(arrays.counts, (line + place) * COUNT_WIDTH)
    if turns.first[turn + NEAR_AHEAD] < turns.first[turn + NEAR_AHEAD + 1]:
        line = turns.row[turn + NEAR_AHEAD] * places
        for place in range(places):
            prefetch_pools(arrays, line + place, arrays.codes.kind[place])


@kernel
def apply_rules(arrays: RuleArrays, turns: Turns, picks: Picks, output: RuleOutput) -> None:
    """Take turns from `progress[NEXT]` on, until all are taken or the kernel has to stop."""
    progress = output.progress
    for turn in range(progress[NEXT], len(turns.row)):
        progress[NEXT] = turn
        prefetch_ahead(arrays, turns, turn)
        row, order = turns.row[turn], turns.order[turn]
        for pick in range(max(progress[PICK], turns.first[turn]), turns.first[turn + 1]):
            progress[PICK] = pick
            if not take_pick(arrays, output, row, order, picks, pick):
                return
            progress[PICK] = pick + 1
        if not release_until(arrays, output, row, order, turns.us[turn]):
            return
    progress[NEXT], progress[STOP] = len(turns.row), DONE
