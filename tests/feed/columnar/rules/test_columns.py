"""The columns of rules in snapshots: they restore the state, and damaged ones are refused."""

from collections.abc import Callable
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

from tidings.errors import StateError
from tidings.feed.columnar.kernels.layout import FAR
from tidings.feed.columnar.rules.columns import NAMES, check_rules, fill_rules, rule_columns
from tidings.feed.columnar.rules.group import RuleGroup
from tidings.feed.columnar.rules.kernels.layout import REMEMBERED
from tidings.feed.columnar.snapshot_check import ReferencedCounts
from tidings.policy import Policy
from tidings.window import Pick

SECOND = 1_000_000
LATER = 30 * 1_440 * streams.MINUTE_US
EVENT_COUNT = 32
COUNTS = ReferencedCounts(EVENT_COUNT, 3)
ROWS = np.array([2, 0])
"""Those whose state is written, in this order."""


def saved(group: RuleGroup, rows: Any = ROWS) -> dict[str, Any]:
    """Return the columns as a snapshot has them: with the members of sets instead of handles."""
    part = rule_columns(group.rows, rows)
    handles = part.pop("handle")
    return part | {
        "sizes": np.zeros(len(handles), np.int64),
        "members": np.zeros(0, np.int64),
    }


def restored(group: RuleGroup, part: dict[str, Any], rows: Any) -> None:
    fill_rules(group.rows, rows, part, np.full(len(part["slot"]), -1, np.int32))


@settings(max_examples=60)
@given(streams.policies, streams.picks(), st.data())
def test_restored_rules_go_on_as_if_nothing_had_happened(
    policy: Policy, chosen: list[Pick], data: st.DataObject
) -> None:
    events, picks = slots_of(chosen)
    first, end = group_for(policy, events), chosen[-1].at_us + LATER
    cut = data.draw(st.integers(0, len(chosen)))
    if cut:
        play(first, picks, 0, cut)
    first.rows.paused[ROW] = data.draw(st.integers(0, 1))
    part = saved(first, np.array([ROW]))
    second = group_for(policy, events)
    check_rules(second.rows, part, 1, ReferencedCounts(len(events), 0))
    row = data.draw(st.integers(0, 2))
    restored(second, part, np.array([row]))
    again = saved(second, np.array([row]))
    assert {name: again[name].tolist() for name in again} == {
        name: part[name].tolist() for name in part
    }
    assert second.rows.deadline[row] == first.rows.deadline[ROW]
    results = []
    for group, own in ((first, ROW), (second, row)):
        parts = [play(group, picks, cut, len(chosen), row=own)] if cut < len(chosen) else []
        results.append(content_of(group, *parts, finish(group, end, row=own)))
    assert results[0] == results[1]


def test_columns_of_several_rows_follow_each_other() -> None:
    group = busy()
    both, one, other = saved(group), saved(group, ROWS[:1]), saved(group, ROWS[1:])
    for name, column in both.items():
        assert column.tolist() == [*one[name].tolist(), *other[name].tolist()]
    fresh = rule_group(RULES)
    restored(fresh, both, np.array([1, 2]))
    assert saved(fresh, np.array([1, 2]))["slot"].tolist() == both["slot"].tolist()
    assert saved(fresh, np.array([0]))["slot"].tolist() == []
    assert fresh.rows.is_restored.tolist()[:3] == [False, True, True]


def test_the_state_has_these_columns() -> None:
    assert saved(busy()).keys() == NAMES


def test_rows_of_which_nothing_is_known_have_an_empty_state() -> None:
    part = saved(rule_group(RULES))
    assert part["start"].tolist() == part["end"].tolist() == [-FAR] * 6
    for name in ("slot", "rank", "ranks", "got", "members"):
        assert len(part[name]) == 0
    check_rules(rule_group(RULES).rows, part, 2, COUNTS)


RULES: list[Any] = [
    "different",
    {"name": "quota", "n": 2, "per": "9s"},
    {"name": "quiet", "start": "00:00:13", "end": "00:00:40"},
]


def busy() -> RuleGroup:
    """Return rows that hold, remember and received something at 13 seconds."""
    group = rule_group(RULES)
    chosen = [
        *((0, 0, 0.9), (1, SECOND, 0.9), (6, SECOND, 0.9)),
        *((8, 9 * SECOND, 0.5), (13, 12 * SECOND, 0.1), (30, 16 * SECOND, 0.95)),
    ]
    for row in (0, 1, 2):
        play(group, picks_of(chosen), 0, len(chosen) - row % 2, row=row)
    part = rule_columns(group.rows, ROWS)
    assert len(part["slot"])
    assert len(part["ranks"])
    assert len(part["got"])
    return group


def test_what_is_sound_is_accepted() -> None:
    check_rules(rule_group(RULES).rows, saved(busy()), len(ROWS), COUNTS)


def put(name: str, at: int, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(part: dict[str, Any]) -> None:
        part[name] = part[name].copy()
        part[name][at] = value

    return change


def shortened(name: str) -> Callable[[dict[str, Any]], None]:
    def change(part: dict[str, Any]) -> None:
        part[name] = part[name][:-1]

    return change


def without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda part: part.__delitem__(name)


# Lines are those of `different`, a quota and quiet hours, of each row.
OUT_OF_RANGE = "column {} has a number out of range"
DAMAGE: list[tuple[str, Any, str]] = [
    *(
        (f"no {name}", without(name), "the columns of rules are not complete")
        for name in ("sent", "end", "held", "slot", "rank", "gotus", "members")
    ),
    (
        "one too many",
        lambda part: part.update(x=part["sent"]),
        "the columns of rules are not complete",
    ),
    ("sent", put("sent", 0, -1), OUT_OF_RANGE),
    ("paused", put("paused", 1, 2), OUT_OF_RANGE),
    ("held", put("held", 1, -1), OUT_OF_RANGE),
    ("passed", put("passed", 1, (1 << 30) + 1), OUT_OF_RANGE),
    ("end", put("end", 0, (1 << 60) + 1), OUT_OF_RANGE),
    ("start", put("start", 0, -FAR - 1), OUT_OF_RANGE),
    ("slot", put("slot", 0, EVENT_COUNT), OUT_OF_RANGE),
    ("position", put("position", 0, 0), OUT_OF_RANGE),
    ("width", put("width", 0, -1), OUT_OF_RANGE),
    ("opened", put("opened", 0, 1 << 60), OUT_OF_RANGE),
    ("closed", put("closed", 0, -(1 << 60)), OUT_OF_RANGE),
    ("at", put("at", 0, (1 << 60) + 1), OUT_OF_RANGE),
    ("rank", put("rank", 0, -0.5), OUT_OF_RANGE),
    ("rank", put("rank", 0, float("nan")), OUT_OF_RANGE),
    ("score", put("score", 0, 1e201), OUT_OF_RANGE),
    ("ranks", put("ranks", 0, float("inf")), OUT_OF_RANGE),
    ("got", put("got", 0, EVENT_COUNT), OUT_OF_RANGE),
    ("got", put("got", 0, -1), OUT_OF_RANGE),
    ("gotus", put("gotus", 0, 1 << 61), OUT_OF_RANGE),
    ("held", put("held", 0, 1), "a rule holds events that cannot"),
    ("held", put("held", 1, 1 << 28), "a rule holds too much"),
    ("size", put("size", 0, 1 << 28), "a rule holds too much"),
    ("size", put("size", 1, REMEMBERED + 1), "a quota has too many ranks"),
    ("size", put("size", 2, 1), "a ring has no rule"),
    ("rank", shortened("rank"), "ranks are missing"),
    ("score", shortened("score"), "scores are missing"),
    ("ranks", shortened("ranks"), "rankss are missing"),
    ("sent", shortened("sent"), "column sent has 1 rows, not 2"),
    ("end", shortened("end"), "column end has 5 rows, not 6"),
    (
        "start",
        lambda part: part.update(start=part["start"] * 1.0),
        "column start does not hold integers",
    ),
    ("at", lambda part: part.update(at=part["at"][:, None]), "column at is not a flat array"),
]


@pytest.mark.parametrize(("name", "change", "message"), DAMAGE)
def test_damaged_columns_are_refused(name: str, change: Any, message: str) -> None:
    part = saved(busy())
    change(part)
    with pytest.raises(StateError) as error:
        check_rules(rule_group(RULES).rows, part, len(ROWS), COUNTS)
    assert str(error.value) == (
        f"a snapshot of feeds is damaged: {message.format(name)}; "
        "start from an earlier snapshot or checkpoint, or without any"
    )


@pytest.mark.parametrize("name", ["slot", "position", "at", "sizes", "got", "gotus"])
def test_columns_must_have_as_many_rows_as_lines_say(name: str) -> None:
    part = saved(busy())
    count = len(part[name])
    shortened(name)(part)
    with pytest.raises(StateError, match=f"column {name} has {count - 1} rows, not {count};"):
        check_rules(rule_group(RULES).rows, part, len(ROWS), COUNTS)


def test_members_are_subscriptions() -> None:
    part = saved(busy())
    part["sizes"][0], part["members"] = 2, np.array([0, 2])
    check_rules(rule_group(RULES).rows, part, len(ROWS), COUNTS)
    part["members"] = np.array([0, 3])
    with pytest.raises(StateError, match="column members has a number out of range"):
        check_rules(rule_group(RULES).rows, part, len(ROWS), COUNTS)
    part["members"] = np.array([0])
    with pytest.raises(StateError, match="column members has 1 rows, not 2"):
        check_rules(rule_group(RULES).rows, part, len(ROWS), COUNTS)


def test_held_events_are_written_in_the_order_in_which_they_came() -> None:
    """Their list is sorted, but rules that take them over need to know what came first."""
    group = rule_group([RULES[2]])
    came = [(20, 14 * SECOND, 0.2), (21, 15 * SECOND, 0.9), (22, 16 * SECOND, 0.5)]
    for row in (0, 2):
        play(group, picks_of(came), 0, 3, row=row)
    part = saved(group)
    assert part["slot"].tolist() == [20, 21, 22, 20, 21, 22]
    assert group.rows.held_cell[group.rows.held_cells(np.array([0])), 0].tolist() == [21, 22, 20]
    fresh = rule_group([RULES[2]])
    restored(fresh, part, ROWS)
    assert saved(fresh)["slot"].tolist() == part["slot"].tolist()
