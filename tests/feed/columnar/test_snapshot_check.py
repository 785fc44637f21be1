"""Checks of restored windows: valid columns pass, and each wrong number is refused by its rule."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.feed.columnar.kernels.batches import offers_of
from tests.feed.columnar.kernels.diverse import diverse_cohort
from tests.feed.columnar.kernels.windows import ranked_cohort

from tidings.errors import TidingsError
from tidings.feed.columnar.kernels.layout import NEVER
from tidings.feed.columnar.snapshot_check import (
    ReferencedCounts,
    check_columns,
    check_disjoint,
    check_diverse,
    check_ranked,
    check_shared,
)
from tidings.model.records import LAST_SEQUENCE

SEEN, SENT, END, SIZE, HELD, OLDEST, NEWEST = range(7)
"""Columns of the counters of a ranked window in a snapshot."""
DIVERSE_HELD = 3
BATCH = [(0, 4, 0.5), (0, 5, 0.75), (1, 6, 0.25), (0, 9, 0.25)]
ROWS = np.arange(2)
LENGTHS: dict[str, Any] = {
    "sliding": {"length": 3},
    "timed": {"name": "sliding", "length": "1d"},
    "continuous": {},
    "periodic": {"length": "5us"},
    "jumping": {"length": "5us", "step": "4us"},
    "counted": {"name": "jumping", "length": 4, "step": 3},
    "history": {"length": 5},
}

Change = Callable[[dict[str, Any]], object]


def window_of(name: str) -> dict[str, Any]:
    return {"name": name, **LENGTHS[name]}


def ranked(name: str) -> tuple[Any, dict[str, Any]]:
    """Return a cohort with some matches, and its columns."""
    cohort = ranked_cohort(k=2, window=window_of(name))
    cohort.offer(offers_of(BATCH))
    return cohort, cohort.columns(ROWS)


def diverse(name: str) -> tuple[Any, dict[str, Any]]:
    cohort = diverse_cohort(k=2, window=window_of(name))
    for slot in range(64):
        cohort.events.describe(slot, "{}")
    cohort.offer(offers_of(BATCH))
    return cohort, cohort.columns(ROWS)


def put(name: str, place: Any, value: float) -> Change:
    """Return a change of one number."""

    def change(part: dict[str, Any]) -> None:
        part[name][place] = value

    return change


@pytest.mark.parametrize("name", LENGTHS)
def test_the_columns_of_real_windows_pass(name):
    check_ranked(*ranked(name))
    check_diverse(*diverse(name))


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("sliding", put("head", (0, HELD), 9), "a window holds more than it has seen"),
        ("sliding", put("head", (1, SIZE), 2), "a list is longer than its window"),
        ("sliding", put("head", (0, END), 5), "a window without periods waits for an end"),
        ("sliding", put("head", (0, OLDEST), 5), "a window has times it cannot have"),
        ("sliding", put("mark", 0, 4), "a mark is out of range"),
        ("continuous", put("mark", 0, 2), "a mark is out of range"),
        ("continuous", put("head", (0, HELD), 1), "a count is wrong"),
        ("continuous", put("head", (0, SIZE), 3), "a list is longer than k"),
        ("continuous", put("head", (0, END), 5), "a window without periods waits for an end"),
        ("periodic", put("head", (0, HELD), 1), "a count is wrong"),
        ("periodic", put("head", (0, END), 2), "a window waits for a wrong end"),
        ("periodic", put("head", (0, END), 8), "a window waits for a wrong end"),
        ("jumping", put("head", (0, END), 99), "a window waits for a wrong end"),
        ("jumping", put("head", (0, END), NEVER), "a window does not wait for its next step"),
        ("counted", put("head", (0, END), 9), "a window is longer than its policy allows"),
        ("timed", put("head", (0, HELD), 1 << 40), "a window holds more than it has seen"),
        ("timed", put("score", 0, 0.1), "the list of a window is not in order"),
        ("timed", put("slot", 1, 40), "the list of a window is not in order"),
        ("history", put("head", (0, END), 9), "a window without periods waits for an end"),
    ],
)
def test_a_wrong_number_of_a_ranked_window_is_refused(name, change, reason):
    cohort, part = ranked(name)
    change(part)
    with pytest.raises(TidingsError, match=reason):
        check_ranked(cohort, part)


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("sliding", put("head", (1, SEEN), 0), "a window holds more than it has seen"),
        ("sliding", put("head", (0, SEEN), 9), "a window has a gap"),
        ("sliding", put("mark", 0, 8), "matches are not in order of arrival"),
        ("timed", put("mark", 0, 1), "matches are not in order of arrival"),
        ("timed", put("mark", 2, 9), "a match came after the last one"),
        ("continuous", put("head", (0, END), 5), "a window without periods waits for an end"),
        ("periodic", put("head", (0, END), 2), "a window waits for a wrong end"),
        ("periodic", put("head", (0, END), 8), "a window waits for a wrong end"),
        ("jumping", put("head", (0, END), NEVER), "a window does not wait for its next step"),
        ("counted", put("head", (0, END), 9), "a window is longer than its policy allows"),
    ],
)
def test_a_wrong_number_of_a_diverse_window_is_refused(name, change, reason):
    cohort, part = diverse(name)
    change(part)
    with pytest.raises(TidingsError, match=reason):
        check_diverse(cohort, part)


def test_a_history_of_more_than_k_is_refused():
    cohort, part = diverse("timed")
    cohort.codes = diverse("history")[0].codes
    with pytest.raises(TidingsError, match="a history holds more than k matches"):
        check_diverse(cohort, part)


def test_events_that_are_compared_need_attributes():
    cohort, part = diverse("sliding")
    cohort.events.describe(5, "")
    with pytest.raises(TidingsError, match="has no attributes"):
        check_diverse(cohort, part)


def shared(**changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a header and the columns that all policies share."""
    header: dict[str, Any] = {"policies": [{}, {}], "objects": {}}
    columns: dict[str, Any] = {
        "subscribers": ["ada", "bob", "eve"],
        "seats": np.array([0, 1, 0]),
        "events": ["e", "f"],
        "us": np.array([3, 3]),
        "sequence": np.array([-1, 7]),
        "forms": [],
        "subscriptions": ["s"],
    }
    for name, value in changes.items():
        (header if name in header else columns)[name] = value
    return header, columns


@pytest.mark.parametrize("forms", [[], ["{}", ""]])
def test_shared_columns_of_one_length_pass(forms):
    check_shared(*shared(forms=forms))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"policies": {}}, "field 'policies' is not a list"),
        ({"objects": []}, "field 'objects' is not an object"),
        ({"subscribers": ["ada", "bob", "ada"]}, "column subscribers has a name twice"),
        ({"events": ["e", ""]}, "column events has an empty name"),
        ({"subscriptions": np.array([1])}, "column subscriptions does not hold texts"),
        ({"us": np.array([3])}, "column us has 1 rows, not 2"),
        ({"us": np.array([[3, 3]])}, "column us is not a flat array"),
        ({"us": np.array([3.0, 3.0])}, "column us does not hold integers"),
        ({"us": np.array([4, 3])}, "its events are not in order of time"),
        ({"sequence": np.array([-2, 7])}, "column sequence has a number out of range"),
        ({"forms": ["{}"]}, "column forms is too short"),
        ({"seats": np.array([0, 2, 0])}, "column seats has a number out of range"),
        ({"seats": np.array([0, 0, 0])}, "it has a policy without subscribers"),
    ],
    ids=repr,
)
def test_a_wrong_shared_column_is_refused(changes, reason):
    with pytest.raises(TidingsError, match=reason):
        check_shared(*shared(**changes))


@pytest.mark.parametrize("name", ["subscribers", "us", "forms"])
def test_a_missing_shared_column_is_named(name):
    header, columns = shared()
    del columns[name]
    with pytest.raises(TidingsError, match=f"column {name} is missing"):
        check_shared(header, columns)


def test_a_subscriber_is_in_one_snapshot_only():
    check_disjoint([{"subscribers": ["a", "b"]}, {"subscribers": ["c"]}])
    with pytest.raises(TidingsError, match="a subscriber is in two of them"):
        check_disjoint([{"subscribers": ["a", "b"]}, {"subscribers": ["b"]}])


def stored(part: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a cohort as a snapshot has them, without matched subscriptions."""
    head = part["head"].copy()
    head[:, END] -= NEVER
    columns = {name: column for name, column in part.items() if name not in ("head", "handle")}
    columns |= {f"head{number}": column for number, column in enumerate(head.T)}
    sizes = np.zeros(len(part["slot"]), np.int64)
    return columns | {"sizes": sizes, "members": np.zeros(0, np.int64)}


COUNTS = ReferencedCounts(events=64, subscriptions=2)


@pytest.mark.parametrize("name", LENGTHS)
def test_stored_columns_of_real_windows_pass(name):
    for cohort, part in (ranked(name), diverse(name)):
        check_columns(cohort, stored(part), 2, COUNTS)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"extra": np.zeros(0)}, "the columns of a policy are not those of its kind"),
        ({"head0": np.array([1])}, "column head0 has 1 rows, not 2"),
        ({"head0": np.array([1, -1])}, "column head0 has a number out of range"),
        ({"head3": np.array([1, LAST_SEQUENCE])}, "a length is out of range"),
        ({"slot": np.array([64, 5, 6])}, "column slot has"),
        ({"ring": np.array([4, 5])}, "column ring has 2 rows"),
        ({"disorder": np.array([0, 1])}, "column disorder has more than one row"),
        ({"disorder": np.array([2])}, "column disorder has a number out of range"),
        ({"members": np.array([1])}, "column members has 1 rows, not 0"),
    ],
    ids=repr,
)
def test_stored_columns_of_another_shape_are_refused(changes, reason):
    cohort, part = ranked("sliding")
    with pytest.raises(TidingsError, match=reason):
        check_columns(cohort, stored(part) | changes, 2, COUNTS)


@pytest.mark.parametrize("score", [-0.5, 1e201, np.nan])
def test_a_score_out_of_range_is_refused(score):
    cohort, part = ranked("sliding")
    part["score"][0] = score
    with pytest.raises(TidingsError, match="column score has a number out of range"):
        check_columns(cohort, stored(part), 2, COUNTS)


def test_references_stay_below_the_numbers_that_there_are():
    cohort, part = ranked("sliding")
    largest = int(max(part["slot"].max(), part["ring"].max()))
    check_columns(cohort, stored(part), 2, ReferencedCounts(largest + 1, 0))
    with pytest.raises(TidingsError, match="has a number out of range"):
        check_columns(cohort, stored(part), 2, ReferencedCounts(largest, 0))
