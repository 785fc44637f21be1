"""Verdicts as columns become the same objects, counts and sentences as those of the rules."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.columnar.rules.groups import EVENTS, tables_of

from tidings.feed.columnar.rules.kernels import layout
from tidings.feed.columnar.rules.kernels.layout import (
    EXPECTED,
    FILLS,
    NONE,
    OUTRANKED,
    QUIET_BEST,
    QUIET_HOURS,
    QUIET_OUTRANKED,
    TOO_NEAR,
    USED_UP,
    VERDICT_WIDTH,
)
from tidings.feed.columnar.rules.verdicts import FATES, VerdictColumns
from tidings.policy import Policy
from tidings.rules import Verdict

SECOND = 1_000_000
POLICY = Policy(rules=[{"name": "different", "min": 0.4}, {"name": "quota", "n": 3}, "quiet"])
DIFFERENT, QUOTA, QUIET = range(3)
COLUMNS = {
    "subscriber": layout.VERDICT_SUBSCRIBER,
    "place": layout.VERDICT_PLACE,
    "reason": layout.REASON,
    "event": layout.VERDICT_EVENT,
    "at": layout.VERDICT_AT,
    "until": layout.UNTIL,
    "other": layout.OTHER,
    "detail": layout.DETAIL,
    "left": layout.LEFT,
}


def columns_of(*rows: dict[str, Any]) -> VerdictColumns:
    """Return verdicts with these columns; the others are empty."""
    columns, figures = np.zeros((len(rows), VERDICT_WIDTH), np.int64), np.zeros(len(rows))
    columns[:, [layout.UNTIL, layout.OTHER, layout.DETAIL]] = NONE
    for number, row in enumerate(rows):
        figures[number] = row.get("figure", 0.0)
        for name, value in row.items():
            if name != "figure":
                columns[number, COLUMNS[name]] = value
    return VerdictColumns(
        columns[:, layout.VERDICT_SUBSCRIBER].copy(), columns, figures, POLICY.rules
    )


CASES: list[tuple[dict[str, Any], str]] = [
    (
        {
            "place": DIFFERENT,
            "reason": TOO_NEAR,
            "event": 4,
            "at": 3 * SECOND,
            "other": 2,
            "detail": 2 * SECOND,
            "figure": 0.25,
        },
        (
            "dropped by different at 1970-01-01T00:00:03Z: its distance to e02, got at "
            "1970-01-01T00:00:02Z, is 0.25, below 0.4"
        ),
    ),
    (
        {
            "place": QUOTA,
            "reason": EXPECTED,
            "event": 4,
            "at": SECOND,
            "until": 9 * SECOND,
            "detail": 1,
            "left": 2,
            "figure": 1.5,
        },
        (
            "held by quota at 1970-01-01T00:00:01Z until 1970-01-01T00:00:09Z: 1 that is held "
            "ranks higher and 1.5 better ones are expected, with 2 left of the quota"
        ),
    ),
    (
        {"place": QUOTA, "reason": OUTRANKED, "event": 1, "other": 8, "left": 2},
        (
            "dropped by quota at 1970-01-01T00:00:00Z: better ones take all 2 left of the quota "
            "since e08 came"
        ),
    ),
    (
        {"place": QUOTA, "reason": OUTRANKED, "event": 1, "left": 1},
        "dropped by quota at 1970-01-01T00:00:00Z: better ones take all 1 left of the quota",
    ),
    (
        {"place": QUOTA, "reason": OUTRANKED, "event": 1, "other": 3, "left": 0},
        "dropped by quota at 1970-01-01T00:00:00Z: e03 took the last of the quota",
    ),
    (
        {"place": QUOTA, "reason": USED_UP, "event": 1, "detail": 9 * SECOND},
        (
            "dropped by quota at 1970-01-01T00:00:00Z: 3 have passed in the period that ends at "
            "1970-01-01T00:00:09Z"
        ),
    ),
    (
        {"place": QUOTA, "reason": FILLS, "event": 1},
        (
            "released by quota at 1970-01-01T00:00:00Z: the period ended, and it was among the "
            "best that were held"
        ),
    ),
    (
        {"place": QUIET, "reason": QUIET_HOURS, "event": 1, "until": SECOND},
        "held by quiet at 1970-01-01T00:00:00Z until 1970-01-01T00:00:01Z: the hours are quiet",
    ),
    (
        {"place": QUIET, "reason": QUIET_OUTRANKED, "event": 1, "detail": 7},
        "dropped by quiet at 1970-01-01T00:00:00Z: the quiet hours held better ones: e07",
    ),
    (
        {"place": QUIET, "reason": QUIET_BEST, "event": 1},
        (
            "released by quiet at 1970-01-01T00:00:00Z: the quiet hours ended, and it was among "
            "the best of them"
        ),
    ),
]


@pytest.mark.parametrize(("row", "sentence"), CASES)
def test_each_reason_has_its_sentence(row: dict[str, Any], sentence: str) -> None:
    tables = tables_of(EVENTS)
    columns = columns_of({**row, "subscriber": 1})
    [(subscriber, place, verdict)] = columns.objects(tables)
    assert (subscriber, place) == (1, row["place"])
    assert str(verdict) == sentence
    assert verdict.event == EVENTS[row["event"]].id
    assert verdict.fate == FATES[row["reason"]]
    [reason] = columns.reasons(tables)
    assert reason == verdict.account == f"{verdict.rule}: {verdict.reason}"


def test_all_reasons_are_among_these() -> None:
    assert {row["reason"] for row, _ in CASES} == {*FATES}


verdict_rows = st.lists(
    st.builds(
        lambda case, subscriber, event: {**case, "subscriber": subscriber, "event": event},
        st.sampled_from([row for row, _ in CASES]),
        st.integers(0, 2),
        st.integers(0, 9),
    ),
    max_size=20,
)


@settings(max_examples=40)
@given(verdict_rows)
def test_counts_reasons_and_fates_are_those_of_the_objects(rows: list[dict[str, Any]]) -> None:
    tables, columns = tables_of(EVENTS), columns_of(*rows)
    objects = [*columns.objects(tables)]
    counts = dict[tuple[int, str], int]()
    for subscriber, _, verdict in objects:
        key = (subscriber, verdict.rule)
        counts[key] = counts.get(key, 0) + 1
    assert columns.counts() == counts
    assert columns.reasons(tables) == [verdict.account for _, _, verdict in objects]
    for fate in ("held", "released", "dropped"):
        selected = [each for each in objects if each[2].fate == fate]
        assert [*columns.of_fate(fate).objects(tables)] == selected
    for number in range(3):
        others = [each for each in objects if each[0] != number]
        assert [*columns.without(number).objects(tables)] == others


@settings(max_examples=40)
@given(verdict_rows)
def test_all_events_that_are_named_are_marked(rows: list[dict[str, Any]]) -> None:
    alive = np.zeros(len(EVENTS), np.int32)
    columns_of(*rows).mark_slots(alive)
    named = {row["event"] for row in rows} | {row["other"] for row in rows if "other" in row}
    named |= {row["detail"] for row in rows if row["reason"] == QUIET_OUTRANKED}
    assert {*np.flatnonzero(alive).tolist()} == named


def test_a_drop_at_the_end_of_the_quiet_hours_may_name_none() -> None:
    columns = columns_of({"place": QUIET, "reason": QUIET_OUTRANKED, "event": 1})
    [(_, _, verdict)] = columns.objects(tables_of(EVENTS))
    assert str(verdict.reason) == "the quiet hours held better ones: "
    alive = np.zeros(len(EVENTS), np.int32)
    columns.mark_slots(alive)
    assert np.flatnonzero(alive).tolist() == [1]


def test_rules_of_one_name_are_counted_together() -> None:
    rules = Policy(rules=[{"name": "quota", "n": 1}, {"name": "quota", "n": 2}]).rules
    columns = columns_of(
        *({"place": place, "reason": USED_UP, "detail": 0} for place in (0, 1, 1))
    )._replace(rules=rules)
    assert columns.counts() == {(0, "quota"): 3}
    [first, second, third] = columns.reasons(tables_of(EVENTS))
    assert first.startswith("quota: 1 has passed")
    assert second == third
    assert second.startswith("quota: 2 have passed")


def test_verdicts_have_a_json_form_of_their_own() -> None:
    columns = columns_of(CASES[0][0])
    [(_, _, verdict)] = columns.objects(tables_of(EVENTS))
    again = Verdict.from_dict(verdict.event, verdict.to_dict())
    assert again.to_dict() == verdict.to_dict()
    assert again.other == "e02"


@pytest.mark.parametrize("name", ["other", "left", "detail", "figure"])
def test_reasons_that_differ_in_one_figure_are_told_apart(name: str) -> None:
    reason = {"other": OUTRANKED, "left": OUTRANKED, "detail": USED_UP, "figure": EXPECTED}[name]
    base = {"place": QUOTA, "reason": reason, "detail": 5 * SECOND, "left": 2, "other": 1}
    values = {"other": (3, 8), "left": (1, 2), "detail": (0, SECOND), "figure": (0.5, 1.5)}[name]
    columns = columns_of(*(base | {name: value} for value in (*values, values[0])))
    first, second, third = columns.reasons(tables_of(EVENTS))
    assert first == third != second
