"""The events that `different` compares: their features, and distances that kernels lack."""

from typing import Any

import numpy as np
import pytest
from tests.feed.columnar.rules.groups import EVENTS, picks_of, put, rule_group

from tidings.diversify.distance import Jaccard
from tidings.errors import TidingsError
from tidings.feed.columnar.event_table import NO_FEATURES
from tidings.feed.columnar.rules.compared_events import ComparedEvents
from tidings.feed.columnar.rules.group import RuleGroup
from tidings.feed.columnar.rules.kernels.layout import EVENT, KEPT_SLOT
from tidings.feed.columnar.rules.kernels.rings import push_got, reserve_got
from tidings.model.records import Event
from tidings.rules.different import Different

SECOND = 1_000_000
ROW = 1


class Own(Jaccard):
    """A distance without a kernel."""

    name = "own"

    def between(self, one: Event, other: Event) -> float:
        return abs(int(one.id[1:]) - int(other.id[1:])) / 100


class Wrong(Own):
    """A distance that is none."""

    name = "wrong"

    def between(self, one: Event, other: Event) -> float:
        return float("nan")


def own(**parameters: Any) -> list[Different]:
    return [Different(**{"min": 0.05, "within": "5s", "distance": Own(), **parameters})]


def compared(group: RuleGroup) -> ComparedEvents:
    return group._compared


def receive(group: RuleGroup, *got: tuple[int, int], row: int = ROW) -> None:
    for slot, us in got:
        ring = row * group.rows.ringed
        assert reserve_got(group.arrays, ring, 1)
        push_got(group.arrays, ring, us, slot)


def nearest(group: RuleGroup, slot: int, at: int) -> tuple[int, float]:
    """Return the place of the nearest received event to a pick, and its distance."""
    put(group.arrays, 0, slot, at, 0.5, 0.5)
    compared(group).measure(ROW)
    measured = compared(group).measured
    return int(measured.nearest[0]), float(measured.gap[0])


def test_the_last_of_the_nearest_is_found() -> None:
    group = rule_group(own())
    receive(group, (2, SECOND), (10, SECOND), (14, SECOND), (20, 2 * SECOND))
    assert nearest(group, 12, 3 * SECOND) == (2, 0.02)
    assert nearest(group, 3, 3 * SECOND) == (0, 0.01)
    assert nearest(group, 31, 3 * SECOND) == (3, 0.11)


def test_events_of_another_row_do_not_count() -> None:
    group = rule_group(own())
    receive(group, (2, SECOND), row=0)
    assert nearest(group, 2, SECOND) == (-1, 0.0)


def test_expired_events_do_not_count_and_places_follow() -> None:
    """The kernel removes them before it looks at a place."""
    group = rule_group(own())
    receive(group, (2, 0), (3, SECOND), (4, SECOND + 1), (30, 2 * SECOND))
    assert nearest(group, 2, 5 * SECOND - 1) == (0, 0.0)
    assert nearest(group, 2, 5 * SECOND) == (0, 0.01)  # now the first is event 3
    assert nearest(group, 2, 6 * SECOND) == (0, 0.02)
    assert nearest(group, 2, 7 * SECOND) == (-1, 0.0)


def test_events_of_which_only_the_id_is_known_are_near_to_none() -> None:
    group = rule_group(own())
    receive(group, (2, 0), (9, 0))
    group._tables.events.objects[2] = None
    assert nearest(group, 3, SECOND) == (1, 0.06)
    assert nearest(group, 2, SECOND) == (-1, 0.0)


def test_each_rule_with_such_a_distance_is_measured() -> None:
    rules = [*own(within="1s"), "different", *own(within="9s")]
    group = rule_group(rules)
    assert group.rules.codes.measured.tolist() == [1, 0, 1]
    for place in range(3):
        assert reserve_got(group.arrays, ROW * 3 + place, 1)
        push_got(group.arrays, ROW * 3 + place, SECOND, 4)
    compared(group).measured.nearest[:] = 77
    put(group.arrays, 0, 6, 3 * SECOND, 0.5, 0.5)
    compared(group).measure(ROW)
    assert compared(group).measured.nearest.tolist() == [-1, 77, 0]
    assert compared(group).measured.gap[2] == 0.02


def test_a_distance_that_is_none_is_refused() -> None:
    group = rule_group(own(distance=Wrong()))
    receive(group, (2, 0))
    with pytest.raises(TidingsError, match="wrong") as error:
        nearest(group, 3, SECOND)
    assert "nan" in str(error.value)


@pytest.mark.parametrize("rules", [["quiet"], own()])
def test_no_features_are_computed_that_no_kernel_needs(rules: list[Any]) -> None:
    group = rule_group(rules)
    assert compared(group).columns is NO_FEATURES
    compared(group).prepare(np.array([ROW], np.int32), picks_of([(0, 0, 0.5)]))
    assert compared(group).columns is NO_FEATURES
    assert len(compared(group).kept.gap) == 0


def described(group: RuleGroup) -> set[int]:
    """Return the slots of the events with features."""
    features = compared(group)._features
    assert features is not None
    return {slot for slot, event in enumerate(features._events) if event is not None}


def test_picked_events_get_features_and_none_is_kept_from_run_to_run() -> None:
    group = rule_group(["different"])
    picks = picks_of([(3, 0, 0.5), (3, 0, 0.5), (9, 0, 0.5), (3, 0, 0.5)])
    compared(group).kept.state[KEPT_SLOT] = 3
    compared(group).prepare(np.array([ROW], np.int32), picks)
    assert described(group) == {3, 9}
    assert compared(group).kept.state[KEPT_SLOT] == -1
    assert len(compared(group).kept.gap) == len(group._tables.events.us)
    assert EVENTS[3].id == group._tables.events.id(3)


def test_a_run_without_picks_is_prepared() -> None:
    group = rule_group(["different"])
    compared(group).prepare(np.array([ROW], np.int32), picks_of([]))
    assert described(group) == set()


def test_events_without_a_description_are_left_out() -> None:
    group = rule_group(["different"])
    group._tables.events.objects[9] = None
    compared(group).prepare(np.array([ROW], np.int32), picks_of([(3, 0, 0.5), (9, 0, 0.5)]))
    assert described(group) == {3}
    assert compared(group).columns.row[9] == -1
    assert compared(group).columns.row[3] >= 0


def test_restored_rows_get_features_when_they_are_used() -> None:
    group = rule_group(["different", "quiet"])
    for row in (0, 1, 2):
        receive(group, (4 * row, 0), row=row)
        start = group.rows.take_slab(group.rows.held, row * 2 + 1, 1)
        group.rows.held_cell[start, EVENT] = 4 * row + 1
    group.rows.note_restored(np.array([0, 1]))
    none = picks_of([])
    compared(group).prepare(np.array([2, 2], np.int32), none)
    assert described(group) == set()
    compared(group).prepare(np.array([1, 1], np.int32), none)
    assert described(group) == {4, 5}
    assert group.rows.any_restored
    compared(group).prepare(np.array([0], np.int32), none)
    assert described(group) == {0, 1, 4, 5}
    assert not group.rows.any_restored
