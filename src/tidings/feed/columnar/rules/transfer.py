"""The rules of one subscriber as objects, and back: for changes of rules, which are rare.

A held event keeps the cell that it had: its pick carries the number of a copy in `window`.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.feed.columnar.deliveries import IdTables
from tidings.feed.columnar.event_table import EventTable
from tidings.feed.columnar.kernels.layout import FAR
from tidings.feed.columnar.rules.group import RuleGroup
from tidings.feed.columnar.rules.kernels.layout import (
    ARRIVAL,
    AT,
    BEFORE,
    CELL_WIDTH,
    CHOSEN,
    EVENT,
    HANDLE,
    HELD,
    PASSED,
    POSITION,
)
from tidings.feed.columnar.rules.rows import ReceivedEvents, RuleRows
from tidings.feed.single import PolicyChooser, fast_choice
from tidings.model.calendar import Period
from tidings.model.records import Event, Match
from tidings.model.values import moment
from tidings.policy import Policy
from tidings.rules import RuleChain
from tidings.rules.different import DifferentState, GotEvent
from tidings.rules.quiet import QuietState
from tidings.rules.quota import REMEMBERED, QuotaState
from tidings.window import Pick

_CELL: Final = "cell"


class ChainCopy(NamedTuple):
    """Rules as objects, and copies of the cells that their picks refer to."""

    chain: RuleChain
    cells: Int64s
    scores: Float64s

    @classmethod
    def empty(cls, policy: Policy) -> "ChainCopy":
        """Return new rules."""
        chain = RuleChain(policy.rules, PolicyChooser(policy, fast_choice))
        return cls(chain, np.zeros((0, CELL_WIDTH), np.int64), np.zeros(0))


def load_chain(group: RuleGroup, row: int, tables: IdTables) -> ChainCopy:
    """Return the rules of a row as objects."""
    rows, chain = group.rows, RuleChain(group.policy.rules, group.chooser)
    chain.paused = bool(rows.paused[row])
    lines = rows.lines(np.array([row]))
    held = rows.held_cells(lines).tolist()
    number = {cell: nth for nth, cell in enumerate(held)}
    name = tables.subscribers.names[int(rows.subscriber[row])]
    for place, state in enumerate([*chain.states, *([None] if group.owed else [])]):
        line = int(lines[place])
        cells = sorted(
            rows.held_cells(lines[place : place + 1]).tolist(),
            key=lambda cell: int(rows.held_cell[cell, ARRIVAL]),
        )
        picks = [_pick(rows, tables, name, cell, number[cell]) for cell in cells]
        if state is None:
            chain.owed = picks
        else:
            _load(rows, line, row * rows.ringed + place, state, picks, tables.events)
    return ChainCopy(chain, rows.held_cell[held], rows.held_score[held])


def _pick(rows: RuleRows, tables: IdTables, name: str, cell: int, number: int) -> Pick:
    row = rows.held_cell[cell]
    event, score = _event(tables.events, int(row[EVENT])), float(rows.held_score[cell])
    match = Match(name, event, score, tables.matched.ids(int(row[HANDLE])))
    rank, at = float(rows.held_rank[cell]), int(row[AT])
    return Pick(match, rank, int(row[POSITION]), {_CELL: number}, at)


def _event(events: EventTable, slot: int) -> Event:
    """Return an event; without attributes if only its id is known, and no rule compares it."""
    if not events.is_described(slot):
        return Event(events.id(slot), {}, moment(int(events.us[slot])))
    return events.event(slot)


def _load(
    rows: RuleRows, line: int, ring: int, state: Any, picks: list[Pick], events: EventTable
) -> None:
    end = int(rows.end[line])
    if isinstance(state, QuotaState):
        state.period = Period(int(rows.starts(np.array([line]))[0]), end)
        counts = rows.rings[ring].tolist()
        state.passed, state.count, state.count_before = (
            counts[column] for column in (PASSED, CHOSEN, BEFORE)
        )
        ranks = rows.packed.get(rows.rank_cells(np.array([ring])))
        state.ranks = deque(ranks.tolist(), REMEMBERED)
        state.waiting = state.in_order(picks)
    elif isinstance(state, QuietState):
        state.end, state.waiting = (end if picks else None), picks
    else:
        assert isinstance(state, DifferentState)
        cells = rows.got_cells(np.array([ring]))
        got = zip(*(column.tolist() for column in rows.received(cells)), strict=True)
        state.received = deque(GotEvent(us, _event(events, slot)) for slot, us in got)
        state.since_us = end


def store_chain(group: RuleGroup, row: int, copy: ChainCopy, events: EventTable) -> None:
    """Write rules that are objects to an empty row."""
    rows = group.rows
    lines = range(row * rows.places, (row + 1) * rows.places)
    for place, state in enumerate(copy.chain.states):
        line, ring = lines[place], row * rows.ringed + place
        if isinstance(state, QuotaState):
            rows.end[line] = state.period.end
            _store_ranks(rows, ring, state)
            _store_held(rows, line, state.waiting, copy, events)
        elif isinstance(state, QuietState):
            rows.end[line] = -FAR if state.end is None else state.end
            _store_held(rows, line, state.waiting, copy, events)
        elif isinstance(state, DifferentState):
            rows.end[line] = state.since_us
            _store_got(rows, ring, state, events)
    if group.owed:
        _store_held(rows, lines[-1], copy.chain.owed, copy, events)
    ends = [int(rows.end[line]) for line in lines if rows.lists[line, HELD]]
    rows.deadline[row], rows.paused[row] = min(ends, default=FAR), copy.chain.paused
    rows.note_restored(np.array([row]))


def _store_ranks(rows: RuleRows, ring: int, state: QuotaState) -> None:
    counts = (state.passed, state.count, state.count_before)
    rows.rings[ring, [PASSED, CHOSEN, BEFORE]] = counts
    start = rows.take_slab(rows.ranks, ring, len(state.ranks))
    rows.packed.put(start + np.arange(len(state.ranks)), np.array(state.ranks))


def _store_got(rows: RuleRows, ring: int, state: DifferentState, events: EventTable) -> None:
    size = len(state.received)
    start = rows.take_slab(rows.got, ring, size)
    slots = np.array([events.slot_of(got.event.id) for got in state.received], np.int32)
    us = np.array([got.us for got in state.received], np.int64)
    rows.put_received(start + np.arange(size), ReceivedEvents(slots, us))


def _store_held(
    rows: RuleRows, line: int, picks: Sequence[Pick], copy: ChainCopy, events: EventTable
) -> None:
    size = len(picks)
    numbers = np.array([pick.window[_CELL] for pick in picks], np.int64)
    start = rows.take_slab(rows.held, line, size)
    cells, scores = copy.cells[numbers], copy.scores[numbers]
    cells[:, POSITION] = [pick.position for pick in picks]
    cells[:, AT] = [pick.at_us for pick in picks]
    cells[:, ARRIVAL] = rows.arrivals(size)
    ranks = np.array([pick.rank for pick in picks], np.float64)
    order = rows.list_order(np.full(size, line), cells, ranks, scores)
    rows.held_cell[start : start + size] = cells[order.places]
    rows.held_rank[start : start + size] = ranks[order.places]
    rows.held_score[start : start + size] = scores[order.places]
    rows.held_value[start : start + size] = order.values
