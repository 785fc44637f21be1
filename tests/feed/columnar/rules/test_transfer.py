"""The rules of one subscriber become objects and arrays again, with all that they know."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.rules.groups import (
    ROW,
    content_of,
    finish,
    group_for,
    picks_of,
    play,
    rule_group,
    slots_of,
)
from tests.rules import streams

from tidings.feed.columnar.kernels.layout import FAR
from tidings.feed.columnar.rules.group import RuleGroup
from tidings.feed.columnar.rules.kernels.layout import HELD, SLAB_CLASS
from tidings.feed.columnar.rules.transfer import ChainCopy, load_chain, store_chain
from tidings.policy import Policy
from tidings.rules import RuleChain
from tidings.rules.different import DifferentState
from tidings.rules.quiet import QuietState
from tidings.rules.quota import QuotaState
from tidings.window import Pick

SECOND = 1_000_000
LATER = 30 * 1_440 * streams.MINUTE_US


def shown(pick: Pick) -> list[Any]:
    """Return a pick without its window, which is a cell here."""
    return [pick.match.event.id, pick.match.score, pick.rank, pick.position, pick.at_us]


def known(chain: RuleChain) -> list[Any]:
    """Return all that rules know, without the windows of picks."""
    states: list[Any] = []
    for state in chain.states:
        if isinstance(state, QuotaState):
            counts = (state.passed, state.count, state.count_before)
            held = [shown(pick) for pick in state.waiting]
            states.append((state.period, counts, list(state.ranks), held))
        elif isinstance(state, QuietState):
            states.append((state.end, [shown(pick) for pick in state.waiting]))
        else:
            assert isinstance(state, DifferentState)
            got = [(got.us, got.event.id) for got in state.received]
            states.append((state.since_us, got))
    return [states, [shown(pick) for pick in chain.owed], chain.paused]


def loaded(group: RuleGroup, row: int = ROW) -> ChainCopy:
    return load_chain(group, row, group._tables)


@settings(max_examples=60)
@given(streams.policies, streams.picks(), st.booleans())
def test_arrays_know_what_the_states_of_one_subscriber_know(
    policy: Policy, chosen: list[Pick], paused: bool
) -> None:
    events, picks = slots_of(chosen)
    group, chain = group_for(policy, events), RuleChain(policy.rules, streams.chooser(policy))
    group.rows.paused[ROW] = chain.paused = paused
    play(group, picks, 0, len(chosen))
    chain.offer(chosen, chosen[-1].at_us)
    assert known(loaded(group).chain) == known(chain)
    assert known(loaded(group, 0).chain) == known(RuleChain(policy.rules, streams.chooser(policy)))


@settings(max_examples=60)
@given(streams.policies, streams.picks(), st.data())
def test_stored_rules_go_on_as_if_nothing_had_happened(
    policy: Policy, chosen: list[Pick], data: st.DataObject
) -> None:
    events, picks = slots_of(chosen)
    first, second = group_for(policy, events), group_for(policy, events)
    cut, end = data.draw(st.integers(1, len(chosen))), chosen[-1].at_us + LATER
    play(first, picks, 0, cut)
    copy = loaded(first)
    store_chain(second, 2, copy, second._tables.events)
    assert known(loaded(second, 2).chain) == known(copy.chain)
    assert second.rows.deadline[2] == first.rows.deadline[ROW]
    assert second.rows.is_restored[2]
    results = []
    for group, row in ((first, ROW), (second, 2)):
        parts = [play(group, picks, cut, len(chosen), row=row)] if cut < len(chosen) else []
        results.append(content_of(group, *parts, finish(group, end, row=row)))
    ids = [row[0] for row in results[0]]
    assert [row[0] for row in results[1]] == ids
    # The number of deliveries so far is not a part of the rules.
    assert [_without_number(row) for row in results[1]] == [
        _without_number(row) for row in results[0]
    ]


def _without_number(row: list[Any]) -> list[Any]:
    if len(row) == 2:  # a verdict
        return row
    event, (position, start, stop, width, _, decided), rank = row
    return [event, position, start, stop, width, decided, rank]


NIGHT: dict[str, Any] = {"name": "quiet", "start": "00:00:02", "end": "00:00:07"}
HELD_AT_NIGHT = [(12, 3 * SECOND, 0.2), (13, 4 * SECOND, 0.9), (14, 5 * SECOND, 0.5)]


def test_cells_of_held_events_stay_as_they_were() -> None:
    """Their windows and matches are in no object, so the copy has the cells."""
    group = rule_group([NIGHT])
    play(group, picks_of(HELD_AT_NIGHT), 0, 3)
    group.rows.held_cell[:, 1] = 5  # the handle
    group._tables.matched.hold(["a", "b", "c", "d", "e", "f"])
    copy = loaded(group)
    [state] = copy.chain.states
    assert isinstance(state, QuietState)
    assert [pick.match.matched for pick in state.waiting] == [("f",)] * 3
    assert copy.cells[:, :6].tolist() == [
        [13, 5, 2, 101, 201, 301],
        [14, 5, 3, 102, 202, 302],
        [12, 5, 1, 100, 200, 300],
    ]
    fresh = rule_group([NIGHT])
    store_chain(fresh, 0, copy, fresh._tables.events)
    cells = fresh.rows.held_cells(np.array([0]))
    assert fresh.rows.held_cell[cells, :6].tolist() == copy.cells[:, :6].tolist()
    assert fresh.rows.held_score[cells].tolist() == [0.9, 0.5, 0.2]


@pytest.mark.parametrize("rules", [[], [NIGHT]])
def test_what_is_owed_is_due_at_its_time(rules: list[Any]) -> None:
    group = rule_group([NIGHT])
    play(group, picks_of(HELD_AT_NIGHT), 0, 3)
    old = loaded(group)
    policy = Policy(rules=rules)
    new = ChainCopy.empty(policy)
    new.chain.owed = old.chain.states[0].hand_over(5 * SECOND)
    fresh = rule_group(rules, owed=True)
    store_chain(fresh, ROW, old._replace(chain=new.chain), fresh._tables.events)
    assert [shown(pick)[0] for pick in loaded(fresh).chain.owed] == ["e13", "e14", "e12"]


def test_empty_rules_are_stored_as_a_new_row() -> None:
    group = rule_group([NIGHT, "different", {"name": "quota", "n": 1}])
    copy = ChainCopy.empty(group.policy)
    store_chain(group, ROW, copy, group._tables.events)
    assert group.rows.deadline[ROW] == FAR
    lines = slice(ROW * 3, ROW * 3 + 3)
    assert group.rows.lists[lines, HELD].tolist() == [0, 0, 0]
    assert group.rows.lists[lines, SLAB_CLASS].tolist() == [-1, -1, -1]
    assert group.rows.end[lines].tolist() == [-FAR] * 3
    assert known(loaded(group).chain) == known(copy.chain)


def test_an_event_of_which_only_the_id_is_known_has_no_attributes() -> None:
    group = rule_group(["different"])
    play(group, picks_of([(0, 0, 0.5)]), 0, 1)
    group._tables.events.objects[0] = None
    [state] = loaded(group).chain.states
    assert isinstance(state, DifferentState)
    [got] = state.received
    assert (got.event.id, dict(got.event.attributes), got.event.published_us) == ("e00", {}, 0)


def test_a_rule_knows_since_when_it_compares() -> None:
    group = rule_group(["different"])
    group.rows.end[ROW] = 3 * SECOND
    copy = loaded(group)
    [state] = copy.chain.states
    assert isinstance(state, DifferentState)
    assert state.since_us == 3 * SECOND
    store_chain(group, 2, copy, group._tables.events)
    assert group.rows.end.tolist()[:3] == [-FAR, 3 * SECOND, 3 * SECOND]
