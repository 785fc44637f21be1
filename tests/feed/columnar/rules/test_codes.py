"""Rules as numbers, in the order in which they apply, and the slabs that their lists need."""

import math
from typing import Any

import numpy as np
import pytest

from tidings.diversify.distance import Jaccard
from tidings.feed.columnar.policy_codes import LONGEST
from tidings.feed.columnar.rules.codes import (
    FIRST_CELL,
    KINDS,
    got_slabs,
    held_slabs,
    rank_slabs,
    rule_set,
)
from tidings.feed.columnar.rules.kernels.layout import (
    DIFFERENT,
    OWED,
    QUIET,
    QUOTA,
    REMEMBERED,
)
from tidings.model.calendar import DailySpans, LocalPeriods
from tidings.policy import Policy
from tidings.rules.chain import ORDER
from tidings.rules.different import Different

SECOND = 1_000_000
ALL: list[Any] = [
    {"name": "quiet", "urgent": 0.9},
    {"name": "quota", "n": 3, "per": "4s", "pick": "first"},
    {"name": "different", "min": 0.4, "within": "2h"},
    {"name": "quota", "n": 7, "per": "week", "urgent": 0.5},
]


class Own(Jaccard):
    """A distance without a kernel."""

    name = "own"


def test_each_parameter_has_its_column() -> None:
    rules = rule_set(Policy(rules=ALL), owed=False)
    codes = rules.codes
    assert codes.kind.tolist() == [DIFFERENT, QUOTA, QUOTA, QUIET]
    assert codes.limit.tolist() == [0, 3, 7, 0]
    assert codes.first.tolist() == [0, 1, 0, 0]
    assert codes.urgent.tolist() == [math.inf, math.inf, 0.5, 0.9]
    assert codes.length.tolist() == [0, 4 * SECOND, 0, 0]
    assert codes.least.tolist() == [0.4, 0, 0, 0]
    assert codes.within.tolist() == [7_200 * SECOND, 0, 0, 0]
    assert codes.measured.tolist() == [0, 0, 0, 0]
    assert [type(calendar) for calendar in rules.calendars] == [
        *(type(None), type(None)),
        *(LocalPeriods, DailySpans),
    ]


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        *(("kind", np.int64), ("limit", np.int64), ("length", np.int64), ("within", np.int64)),
        *(("first", np.int8), ("measured", np.int8)),
        *(("urgent", np.float64), ("least", np.float64)),
    ],
)
@pytest.mark.parametrize("rules", [ALL, ["quiet"], [{"name": "quota", "n": 1}], ["different"]])
def test_kernels_always_get_columns_of_one_type(column: str, dtype: Any, rules: list[Any]) -> None:
    for owed in (False, True):
        assert getattr(rule_set(Policy(rules=rules), owed).codes, column).dtype == dtype


def test_what_is_owed_has_the_last_line_and_no_calendar() -> None:
    rules = rule_set(Policy(rules=ALL), owed=True)
    assert rules.codes.kind.tolist() == [DIFFERENT, QUOTA, QUOTA, QUIET, OWED]
    assert all(len(column) == 5 for column in rules.codes)
    assert [column[-1] for column in rules.codes] == [OWED, 0, 0, 0, 0, 0, 0, 0]
    assert len(rules.calendars) == 5
    assert rules.calendars[-1] is None


def test_a_subscriber_may_have_nothing_but_what_is_owed() -> None:
    rules = rule_set(Policy(), owed=True)
    assert rules.codes.kind.tolist() == [OWED]
    assert (rules.chain.ringed, rules.chain.holding, rules.chain.remembers) == (0, 0, False)


@pytest.mark.parametrize(
    ("names", "ringed", "holding", "remembers"),
    [
        (["quiet"], 0, 0, False),
        (["quota"], 1, 0, True),
        (["different"], 1, 1, False),
        (["different", "quiet"], 1, 1, False),
        (["quiet", "quota", "different", "different"], 3, 2, True),
    ],
)
def test_only_some_rules_remember_and_the_first_hold_nothing(
    names: list[str], ringed: int, holding: int, remembers: bool
) -> None:
    rules = [{"name": name} | ({"n": 1} if name == "quota" else {}) for name in names]
    chain = rule_set(Policy(rules=rules), owed=False).chain
    assert (chain.ringed, chain.holding, chain.remembers) == (ringed, holding, remembers)


@pytest.mark.parametrize(("diversify", "best_only"), [("none", True), ("divrank", False)])
def test_rank_alone_decides_without_a_diversifier(diversify: str, best_only: bool) -> None:
    chain = rule_set(Policy(k=4, diversify=diversify, rules=["quiet"]), owed=False).chain
    assert (chain.best_only, chain.k) == (best_only, 4)


def test_kernels_measure_one_distance_and_the_caller_all_others() -> None:
    jaccard = {"name": "different", "distance": "jaccard"}
    overlap = {"name": "different", "distance": "overlap", "min": 0.7}
    for rules, measured in (
        ([jaccard, overlap, jaccard], [0, 1, 0]),
        ([overlap, jaccard], [0, 1]),
        ([Different(distance=Own()), overlap], [1, 0]),
        ([overlap, overlap], [0, 0]),
    ):
        found = rule_set(Policy(rules=rules), owed=False)
        assert found.codes.measured.tolist() == measured
        assert found.chain.asks == any(measured)
        assert found.compared is not None
        assert found.compared.min == (0.7 if rules[measured.index(0)] is overlap else 0.2)


@pytest.mark.parametrize("rules", [["quiet"], [Different(distance=Own())]])
def test_without_such_a_distance_none_is_measured_by_kernels(rules: list[Any]) -> None:
    assert rule_set(Policy(rules=rules), owed=False).compared is None


def test_every_rule_has_a_kind_and_those_that_remember_come_first() -> None:
    assert [*KINDS] == list(ORDER)
    assert [*KINDS.values()] == [DIFFERENT, QUOTA, QUIET]


def test_held_lists_leave_the_first_cell_to_the_pick() -> None:
    assert held_slabs().used.tolist() == [FIRST_CELL] == [1]
    assert rank_slabs().used.tolist() == got_slabs().used.tolist() == [0]


@pytest.mark.parametrize(("slabs", "first"), [(held_slabs, 2), (rank_slabs, 4), (got_slabs, 4)])
def test_slabs_grow_by_at_most_one_and_a_half_after_the_first(slabs: Any, first: int) -> None:
    pool = slabs()
    assert pool.capacity[0] == first
    assert (np.diff(pool.capacity) > 0).all()
    assert (pool.capacity[1:] <= 2 * pool.capacity[:-1]).all()
    assert (pool.capacity[4:] <= 1.5 * pool.capacity[3:-1]).all()
    assert pool.free.tolist() == [-1] * len(pool.capacity)


def test_the_largest_slabs_hold_whatever_is_allowed() -> None:
    assert held_slabs().capacity[-1] == got_slabs().capacity[-1] == LONGEST
    assert rank_slabs().capacity[-1] == REMEMBERED


def test_rings_of_ranks_end_with_a_whole_byte() -> None:
    assert not (rank_slabs().capacity % 2).any()
