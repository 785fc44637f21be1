"""The rules of a few subscribers, with pools that are large enough for all that a test does."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tidings.feed.columnar.deliveries import IdTables
from tidings.feed.columnar.event_table import EventTable, FeatureCache
from tidings.feed.columnar.id_tables import EnrolledSubscribers, MatchedSets
from tidings.feed.columnar.kernels import layout as deliveries
from tidings.feed.columnar.rules.group import RuleGroup, RuleResult, RunBuffers
from tidings.feed.columnar.rules.kernels import layout
from tidings.feed.columnar.rules.kernels.layout import Picks, RuleArrays, RuleOutput, Turns
from tidings.model.records import Event, Match
from tidings.policy import Policy
from tidings.window import Pick

CELLS = 4_000
ROW = 1
"""The row that most tests use."""
NAMES = ("u", "v", "w")
VALUES = [{"genre": "drama"}, {"genre": "drama", "mood": "dark"}, {"mood": "dark"}, {}]
EVENTS = [Event(f"e{number:02d}", VALUES[number % 4], number // 4) for number in range(32)]
"""Four events of each second, of which some are at distance 0."""


def tables_of(events: list[Event]) -> IdTables:
    """Return tables with three subscribers, and events in the slots of their places."""
    tables = IdTables(EnrolledSubscribers(), EventTable(), MatchedSets())
    tables.subscribers.add_many([*NAMES])
    slots = [tables.events.slot(event, lambda _: None) for event in events]
    assert slots == list(range(len(events)))
    return tables


def rule_group(
    rules: Sequence[Any],
    *,
    owed: bool = False,
    events: list[Event] = EVENTS,
    cells: int = CELLS,
    **policy: Any,
) -> RuleGroup:
    """Return the rules of three subscribers; subscriber n has row n."""
    tables = tables_of(events)
    group = RuleGroup(Policy(rules=rules, **policy), owed, tables, FeatureCache())
    assert group.rows.enrol_many(np.arange(len(NAMES))).tolist() == [0, 1, 2]
    for pool in (group.rows.held, group.rows.ranks, group.rows.got):
        group.rows._lengthen(pool, cells)
    return group


def room(deliveries: int = 400, verdicts: int = 800) -> RuleOutput:
    """Return empty buffers."""
    output = RunBuffers(deliveries, verdicts, 8).output
    output.progress[layout.JUDGED] = -1
    return output


def put(arrays: RuleArrays, cell: int, slot: int, at: int, rank: float, score: float) -> None:
    """Write an event to a cell, as if a window had just chosen it."""
    arrays.held.cell[cell] = 0
    arrays.held.cell[cell, layout.EVENT], arrays.held.cell[cell, layout.AT] = slot, at
    arrays.held.rank[cell], arrays.held.score[cell] = rank, score


def pick_of(slot: int, at: int, rank: float, events: list[Event] = EVENTS) -> Pick:
    """Return the same event as the rules by definition take it."""
    return Pick(Match("u", events[slot], rank, ("s",)), rank, 1, {}, at)


def picks_of(chosen: list[tuple[int, int, float]]) -> Picks:
    """Return picks of slots, times and ranks, with window columns that differ."""
    columns = np.zeros((len(chosen), deliveries.DELIVERY_WIDTH), np.int64)
    for number, (slot, at, _) in enumerate(chosen):
        columns[number, deliveries.EVENT], columns[number, deliveries.DECIDED] = slot, at
        columns[number, deliveries.HANDLE], columns[number, deliveries.POSITION] = (
            -1,
            1 + number % 3,
        )
        window = (100 + number, 200 + number, 300 + number)
        columns[number, [deliveries.START, deliveries.STOP, deliveries.WIDTH]] = window
    ranks = np.array([rank for _, _, rank in chosen])
    return Picks(columns, ranks, ranks.copy())


def turns_of(*turns: tuple[int, int], row: int = ROW) -> Turns:
    """Return the turns of one row, by their number of picks and their time."""
    count = len(turns)
    return Turns(
        np.full(count, row, np.int32),
        np.full(count, row),
        np.array([us for _, us in turns]),
        np.arange(count) * 2,
        np.cumsum([0, *(size for size, _ in turns)]),
    )


def slots_of(chosen: Sequence[Pick]) -> tuple[list[Event], Picks]:
    """Return the events of picks in order of time, which is that of their slots, and the picks."""
    events = [pick.match.event for pick in chosen]
    order = sorted(range(len(events)), key=lambda place: events[place].published_us)
    slot_of = {place: slot for slot, place in enumerate(order)}
    picks = [(slot_of[number], pick.at_us, pick.rank) for number, pick in enumerate(chosen)]
    return [events[place] for place in order], picks_of(picks)


def group_for(policy: Policy, events: list[Event]) -> RuleGroup:
    """Return the rules of a policy, with pools that are empty."""
    return rule_group(
        policy.rules,
        events=events,
        cells=0,
        k=policy.k,
        decay=policy.decay,
        diversify=policy.diversify,
    )


def play(group: RuleGroup, picks: Picks, first: int, last: int, row: int = ROW) -> RuleResult:
    """Take the picks of one row from a place to another, each as a turn of its own."""
    columns, ranks, scores = picks
    part = Picks(columns[first:last], ranks[first:last], scores[first:last])
    at = part.columns[:, deliveries.DECIDED].tolist()
    return group.run(turns_of(*((1, us) for us in at), row=row), part)


def finish(group: RuleGroup, us: int, row: int = ROW) -> RuleResult:
    """Move the clock of a row, so that what is due is released."""
    return group.run(turns_of((0, us), row=row), picks_of([]))


def content_of(group: RuleGroup, *results: RuleResult) -> list[list[Any]]:
    """Return deliveries and verdicts with the ids of events, without orders and numbers."""
    events, found = group._tables.events, list[list[Any]]()
    for result in results:
        columns, ranks = result.delivered.columns[:, deliveries.POSITION :], result.delivered.rank
        ids = map(events.id, result.delivered.columns[:, deliveries.EVENT].tolist())
        found += map(list, zip(ids, columns.tolist(), ranks.tolist(), strict=True))
        found += [[place, verdict] for _, place, verdict in result.verdicts.objects(group._tables)]
    return found
