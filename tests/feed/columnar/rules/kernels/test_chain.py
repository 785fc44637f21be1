"""The kernel of all rules against rules by definition, and what it stops for."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.rules.groups import (
    CELLS,
    EVENTS,
    ROW,
    picks_of,
    rule_group,
    slots_of,
    turns_of,
)
from tests.rules import streams

from tidings.diversify.distance import Jaccard
from tidings.feed.columnar.kernels import layout as deliveries
from tidings.feed.columnar.kernels.layout import FAR
from tidings.feed.columnar.rules.group import RuleGroup, RunBuffers
from tidings.feed.columnar.rules.kernels import layout
from tidings.feed.columnar.rules.kernels.chain import apply_rules
from tidings.feed.columnar.rules.kernels.layout import (
    CALENDAR,
    CHOICE,
    DISTANCES,
    DONE,
    MISSING_US,
    MOVED,
    NEXT,
    OUT,
    PICK,
    PLACE,
    RANKS,
    ROOM,
    STOP,
    VERDICTS,
    WANTED,
    Picks,
    Turns,
)
from tidings.policy import Policy
from tidings.rules.different import Different
from tidings.rules.plain import plain_rules
from tidings.window import Pick

SECOND = 1_000_000
LATER = 30 * 1_440 * streams.MINUTE_US


def drive(
    group: RuleGroup, turns: Turns, picks: Picks, size: int = 500
) -> tuple[list[int], RunBuffers]:
    """Run the kernel, and provide what it stops for; return all reasons to stop."""
    group._compared.prepare(turns.row, picks)
    buffers, stops = RunBuffers(size, size, len(turns.row)), list[int]()
    buffers.progress[layout.JUDGED] = -1
    while True:
        apply_rules(group.arrays, turns, picks, buffers.output)
        if buffers.progress[NEXT] == len(turns.row):
            assert buffers.progress[STOP] == DONE
            return stops, buffers
        stops.append(int(buffers.progress[STOP]))
        group._provide(int(turns.row[buffers.progress[NEXT]]), buffers, picks)


def columns_of(buffers: RunBuffers) -> list[list[Any]]:
    columns, ranks, verdicts, figures = buffers.written()
    return [columns.tolist(), ranks.tolist(), verdicts.tolist(), figures.tolist()]


@settings(max_examples=120)
@given(streams.policies, streams.picks(), st.booleans(), st.data())
def test_it_delivers_what_the_definition_delivers(
    policy: Policy, chosen: list[Pick], paused: bool, data: st.DataObject
) -> None:
    """Pools and buffers may be empty at first: the kernel continues where it stopped."""
    end, left, turns = chosen[-1].at_us + LATER, len(chosen), list[tuple[int, int]]()
    while left:
        size = data.draw(st.integers(1, left))
        last = chosen[len(chosen) - left + size - 1].at_us
        left -= size
        until = chosen[len(chosen) - left].at_us if left else last
        turns.append((size, data.draw(st.integers(last, until))))
    turns.append((0, end))
    events, picks = slots_of(chosen)
    results = []
    for cells, size in ((CELLS, 500), (0, 0)):
        group = rule_group(
            policy.rules,
            events=events,
            cells=cells,
            k=policy.k,
            decay=policy.decay,
            diversify=policy.diversify,
        )
        group.rows.paused[ROW] = paused
        _, buffers = drive(group, turns_of(*turns), picks, size)
        results.append(columns_of(buffers))
        assert group.rows.deadline[ROW] == FAR  # nothing is left
        assert group.rows.sent.tolist()[:3] == [0, len(results[0][0]), 0]
    assert results[0] == results[1]
    columns, ranks, _, _ = results[0]
    expected = plain_rules(
        policy.rules, streams.chooser(policy), chosen, end, is_paused=lambda _: paused
    )
    found = [
        (group._tables.events.id(row[deliveries.EVENT]), row[deliveries.DECIDED], rank)
        for row, rank in zip(columns, ranks, strict=True)
    ]
    assert found == [(each.match.event.id, each.at_us, each.rank) for each in expected]
    nth_of = {pick.match.event.id: nth for nth, pick in enumerate(chosen)}
    for number, (row, each) in enumerate(zip(columns, expected, strict=True), start=1):
        nth = nth_of[each.match.event.id]
        assert row[deliveries.START : deliveries.WIDTH + 1] == [100 + nth, 200 + nth, 300 + nth]
        assert row[deliveries.POSITION] == each.position  # new ones for what was held
        assert (row[deliveries.ROW], row[deliveries.NUMBER]) == (ROW, number)


QUOTA: dict[str, Any] = {"name": "quota", "n": 1, "per": "3s"}
NIGHT: dict[str, Any] = {"name": "quiet", "start": "00:00:02", "end": "00:00:07"}
THREE = [(0, 0, 0.5), (1, SECOND, 0.5), (2, SECOND, 0.5)]
"""Three picks of different ids in the first two seconds."""


def stopped(group: RuleGroup, turns: Turns, picks: Picks, buffers: RunBuffers) -> list[int]:
    """Return why, for which rule and for how many events the kernel stops."""
    group._compared.prepare(turns.row, picks)
    buffers.progress[layout.JUDGED] = -1
    apply_rules(group.arrays, turns, picks, buffers.output)
    reason: list[int] = buffers.progress[[STOP, PLACE, WANTED]].tolist()
    return reason


def test_it_stops_before_an_unknown_rank_changes_anything() -> None:
    group, picks, buffers = rule_group([QUOTA]), picks_of(THREE), RunBuffers(9, 9, 1)
    before = group.rows.rings.copy()
    assert stopped(group, turns_of((3, 9)), picks, buffers) == [RANKS, 0, 0]
    assert (group.rows.rings == before).all()
    assert buffers.progress[[NEXT, PICK, OUT, VERDICTS]].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(("size", "verdicts"), [(0, 99), (99, 2)])
def test_it_stops_where_buffers_are_full(size: int, verdicts: int) -> None:
    group, picks = rule_group([QUOTA]), picks_of(THREE)
    group.rows.packed.learn(np.array([0.5]))
    buffers = RunBuffers(size, verdicts, 1)
    assert stopped(group, turns_of((3, 9)), picks, buffers) == [ROOM, 0, 1]
    assert buffers.progress[[OUT, VERDICTS]].tolist() == [0, 0]


def test_it_continues_at_the_pick_at_which_it_stopped() -> None:
    group, picks, buffers = rule_group([QUOTA]), picks_of(THREE), RunBuffers(1, 99, 1)
    group.rows.packed.learn(np.array([0.5]))
    turns = turns_of((3, SECOND))
    assert stopped(group, turns, picks, buffers) == [ROOM, 0, 1]
    assert buffers.progress[[NEXT, PICK, OUT]].tolist() == [0, 1, 1]
    buffers.make_room(5, 0)
    apply_rules(group.arrays, turns, picks, buffers.output)
    assert buffers.progress[[NEXT, STOP]].tolist() == [1, DONE]
    columns, _, verdicts, _ = buffers.written()
    assert columns[:, deliveries.EVENT].tolist() == [0]
    assert verdicts[:, layout.VERDICT_EVENT].tolist() == [1, 2]


@pytest.mark.parametrize("rules", [[NIGHT], [QUOTA, NIGHT]])
def test_it_stops_for_hours_that_are_not_known(rules: list[Any]) -> None:
    group, picks, buffers = rule_group(rules), picks_of(THREE[1:]), RunBuffers(99, 99, 1)
    group.rows.packed.learn(np.array([0.5]))
    assert stopped(group, turns_of((2, 9)), picks, buffers) == [CALENDAR, len(rules) - 1, 0]
    assert buffers.progress[MISSING_US] == SECOND


def test_it_stops_for_the_choice_of_a_diversifier() -> None:
    group = rule_group([NIGHT], k=1, diversify="divrank")
    night = [(slot, at + 2 * SECOND, rank) for slot, at, rank in THREE]
    stops, buffers = drive(group, turns_of((3, 4 * SECOND), (0, 7 * SECOND)), picks_of(night))
    assert stops == [CALENDAR, CHOICE]
    columns, _, verdicts, _ = buffers.written()
    assert len(columns) == 1
    assert columns[0, [deliveries.DECIDED, deliveries.POSITION]].tolist() == [7 * SECOND, 1]
    assert verdicts[:, layout.REASON].tolist() == [
        *[layout.QUIET_HOURS] * 3,
        *[layout.QUIET_OUTRANKED] * 2,
        layout.QUIET_BEST,
    ]


class Own(Jaccard):
    """A distance without a kernel."""

    name = "own"


def test_it_stops_for_distances_that_kernels_lack_once_for_each_pick() -> None:
    group = rule_group([Different(min=0.5, distance=Own())])
    stops, buffers = drive(group, turns_of((3, SECOND)), picks_of(THREE))
    assert stops == [DISTANCES] * 3
    columns, _, verdicts, _ = buffers.written()
    own = Own()
    assert own.between(EVENTS[0], EVENTS[1]) == own.between(EVENTS[1], EVENTS[2]) == 0.5
    assert own.between(EVENTS[0], EVENTS[2]) == 1
    assert columns[:, deliveries.EVENT].tolist() == [0, 1, 2]
    assert not len(verdicts)


def test_rules_with_everything_at_hand_do_not_stop() -> None:
    group = rule_group([{"name": "quota", "n": 2, "per": "3s"}, "different"])
    group.rows.packed.learn(np.array([0.5]))
    stops, buffers = drive(group, turns_of((3, SECOND)), picks_of(THREE))
    assert stops == []
    assert buffers.written()[0][:, deliveries.EVENT].tolist() == [0, 1]


def test_only_rows_whose_deadlines_move_are_written() -> None:
    group, picks = rule_group([NIGHT]), picks_of([(0, 3 * SECOND, 0.5), (1, 4 * SECOND, 0.4)])
    _, buffers = drive(group, turns_of((1, 3 * SECOND), (1, 4 * SECOND)), picks)
    assert buffers.progress[MOVED] == 1  # the second one is due at the same time
    assert buffers.moved[0] == ROW
    assert group.rows.deadline.tolist()[:3] == [FAR, 7 * SECOND, FAR]
    assert group.rows.sent.tolist()[:3] == [0, 0, 0]


def test_more_moved_deadlines_than_there_is_room_for_are_counted() -> None:
    group = rule_group([NIGHT])
    turns = turns_of((1, 3 * SECOND))
    picks = picks_of([(0, 3 * SECOND, 0.5)])
    buffers = RunBuffers(9, 9, 1)
    group._span_tables.load(0)
    group._compared.prepare(turns.row, picks)
    output = buffers.output._replace(moved=np.zeros(0, np.int32))
    apply_rules(group.arrays, turns, picks, output)
    assert output.progress[[NEXT, MOVED]].tolist() == [1, 1]


def test_of_equal_deadlines_the_later_rule_goes_first() -> None:
    """So it is empty when the earlier one passes its events on, at the same time."""
    quota = {"name": "quota", "n": 2, "per": "9s"}
    quiet = {"name": "quiet", "start": "00:00:10", "end": "00:00:18"}
    chosen = [(0, 0, 1.0), (1, 0, 1.0), (2, 9 * SECOND, 0.1), (3, 10 * SECOND, 1.0)]
    group = rule_group([quota, quiet])
    _, buffers = drive(group, turns_of((4, 10 * SECOND), (0, 18 * SECOND)), picks_of(chosen))
    columns = buffers.written()[0]
    assert columns[:, deliveries.EVENT].tolist() == [0, 1, 3, 2]
    assert columns[:, deliveries.DECIDED].tolist() == [0, 0, 18 * SECOND, 18 * SECOND]


def test_what_old_rules_let_pass_is_due_at_once_and_as_it_was() -> None:
    group = rule_group([QUOTA], owed=True)
    group.rows.packed.learn(np.array([0.5, 1.0]))
    line, rows = ROW * 2 + 1, group.rows
    start = rows.take_slab(rows.held, line, 2)
    for nth, slot in enumerate((7, 3)):
        rows.held_cell[start + nth] = [slot, -1, nth + 5, 1, 2, 3, SECOND, nth]
        rows.held_rank[start + nth] = 0.25
    rows.end[line], rows.deadline[ROW] = SECOND, SECOND
    _, buffers = drive(group, turns_of((1, 2 * SECOND)), picks_of([(9, 2 * SECOND, 1.0)]))
    columns, ranks, verdicts, _ = buffers.written()
    assert columns[:, deliveries.EVENT].tolist() == [7, 3, 9]
    assert columns[:, deliveries.POSITION].tolist() == [5, 6, 1]
    assert columns[:, deliveries.DECIDED].tolist() == [SECOND, SECOND, 2 * SECOND]
    assert columns[:, deliveries.NUMBER].tolist() == [1, 2, 3]
    assert ranks.tolist() == [0.25, 0.25, 1.0]
    assert not len(verdicts)


def test_turns_of_several_rows_do_not_mix() -> None:
    group = rule_group([QUOTA])
    group.rows.packed.learn(np.array([0.5]))
    turns = turns_of((1, 0), (1, SECOND), (1, SECOND))
    turns.row[:], turns.subscriber[:] = (2, 0, 2), (12, 10, 12)
    _, buffers = drive(group, turns, picks_of(THREE))
    columns, _, verdicts, _ = buffers.written()
    assert columns[:, [deliveries.ORDER, deliveries.ROW, deliveries.EVENT]].tolist() == [
        [0, 12, 0],
        [2, 10, 1],
    ]
    assert columns[:, deliveries.NUMBER].tolist() == [1, 1]
    assert verdicts[:, [layout.VERDICT_SUBSCRIBER, layout.VERDICT_EVENT]].tolist() == [[12, 2]]


@pytest.mark.parametrize(("paused", "slots"), [(0, [0]), (1, [0, 4])])
def test_what_is_dropped_by_a_pause_was_not_received(paused: int, slots: list[int]) -> None:
    group = rule_group(["different"])
    group.rows.paused[ROW] = paused
    same = [(0, 0, 0.5), (4, SECOND, 0.5)]
    _, buffers = drive(group, turns_of((2, SECOND)), picks_of(same))
    assert buffers.written()[0][:, deliveries.EVENT].tolist() == slots
