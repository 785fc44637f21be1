"""What every window does with its entries: take a match in, choose, and hand out deliveries."""

from tidings.compiled.jit import inlined
from tidings.feed.columnar.kernels.decay import fresh_rank, order_key
from tidings.feed.columnar.kernels.layout import (
    AT,
    AXIS,
    CAPPED,
    DONE,
    END,
    ENDS,
    EVENT,
    FIRST,
    HANDLE,
    HELD,
    LEAVE,
    LIST,
    MARK,
    MATCHED,
    NEVER,
    NUMBER,
    OUT,
    POSITION,
    PRUNE,
    ROW,
    SENT,
    SIZE,
    SLOT,
    START,
    STOP,
    WAIT,
    WHEN,
    WIDTH,
    K,
    Match,
    Sink,
    World,
)
from tidings.feed.columnar.kernels.ranked_list import (
    list_beaten,
    list_insert,
    list_place,
    list_remove,
)
from tidings.feed.columnar.kernels.ring_buffer import place_of, ring_oldest_us


@inlined
def hand_out(
    world: World, sink: Sink, row: int, at: int, nth: int, extent: tuple[int, int, int, int]
) -> None:
    """Write the n-th entry as a delivery; extent is (start, stop, width, time of the decision)."""
    book, events, plan = world
    head, who = book[0], book[3]
    out, ranks, progress = sink[0], sink[1], sink[3]
    entry, to = head[row, LIST] + head[row, FIRST] + nth, progress[OUT]
    slot = who[entry, SLOT]
    head[row, SENT] += 1
    out[to, AT] = at
    out[to, ROW] = row
    out[to, EVENT] = slot
    out[to, HANDLE] = who[entry, MATCHED]
    out[to, POSITION] = nth + 1
    out[to, START], out[to, STOP], out[to, WIDTH], out[to, WHEN] = extent
    out[to, NUMBER] = head[row, SENT]
    ranks[to] = fresh_rank(plan[1], book[2][entry], events[0][slot], extent[3])
    progress[OUT] = to + 1


@inlined
def hand_out_new(
    world: World, sink: Sink, row: int, at: int, extent: tuple[int, int, int, int]
) -> None:
    """Deliver those of the k best that are not done yet; then they are."""
    head, who = world[0][0], world[0][3]
    for nth in range(min(world[2][0][K], head[row, SIZE])):
        entry = head[row, LIST] + head[row, FIRST] + nth
        if not who[entry, MARK] & DONE:
            hand_out(world, sink, row, at, nth, extent)
            who[entry, MARK] |= DONE


@inlined
def note_end(world: World, sink: Sink, row: int, before: int) -> None:
    """Write down an end that was set, so that it can be found when it has passed."""
    end, ends, progress = world[0][0][row, END], sink[2], sink[3]
    if end != before and end != NEVER:  # noqa: PLR1714 - compiled
        ends[progress[ENDS], 0] = row
        ends[progress[ENDS], 1] = end
        progress[ENDS] += 1


@inlined
def take_in(world: World, row: int, match: Match, last: bool) -> int:
    """Put a match among the entries, and drop those that k newer and better ones have beaten.

    Gives its place, or -1 if it can never be chosen. `last` says that it leaves the window last.
    """
    book, events, plan = world
    slot, score, handle, _ = match
    key = order_key(plan[1], score, events[0][slot])
    place = list_place(book, events, row, key, slot)
    if plan[0][CAPPED] and place >= plan[0][K]:
        return -1
    beaten = 0
    if plan[0][PRUNE]:
        if last:
            list_beaten(book, row, place, plan[0][K])
        else:
            beaten = meet_out_of_order(world, row, place, slot)
            if beaten >= plan[0][K]:
                return -1
    list_insert(book, row, place, (key, score, slot, handle, 2 * beaten))
    return place


@inlined
def meet_out_of_order(world: World, row: int, place: int, slot: int) -> int:
    """Count who beats whom where a match does not leave the window last; give by how many it is."""
    book, events, plan = world
    head, who = book[0], book[3]
    axis, beaten = plan[0][AXIS], 0
    own = place_of(events, axis, slot)
    for nth in range(head[row, SIZE] - 1, -1, -1):
        entry = head[row, LIST] + head[row, FIRST] + nth
        other = place_of(events, axis, who[entry, SLOT])
        if nth < place:
            beaten += other >= own
        elif other <= own:
            who[entry, MARK] += 2
            if who[entry, MARK] >> 1 >= plan[0][K]:
                list_remove(book, row, nth)
    return beaten


@inlined
def choose(world: World, sink: Sink, row: int, at: int, now_us: int) -> bool:
    """Choose the k best of the window and deliver what is new; tell whether there were enough.

    With `leave`, only what is not delivered yet is listed, and what is chosen leaves the list.
    """
    book, events, plan = world
    head, numbers = book[0], plan[0]
    size, held = head[row, SIZE], head[row, HELD]
    there = size if numbers[LEAVE] else held
    if size == 0 or (numbers[WAIT] and there < numbers[K]):
        return False
    hand_out_new(world, sink, row, at, (ring_oldest_us(book, events, row), now_us, held, now_us))
    if numbers[LEAVE]:
        gone = min(numbers[K], size)
        head[row, FIRST] += gone
        head[row, SIZE] -= gone
    return True
