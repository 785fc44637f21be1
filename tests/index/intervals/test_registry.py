"""Interval indexes by name, with their own options, all of which are checked."""

from typing import Any

import numpy as np
import pytest

from tidings.errors import TidingsError
from tidings.index.intervals.registry import INTERVAL_INDEXES, interval_index

LOW, HIGH, SCORE = [0.0, 5.0, 2.0, 0.0], [9.0, 6.0, 4.0, 3.0], [1.0, 3.0, 2.0, 2.0]


@pytest.mark.parametrize("name", INTERVAL_INDEXES)
def test_every_index_answers_as_the_scan(name: str) -> None:
    index, scan = (interval_index(each, LOW, HIGH, SCORE) for each in (name, "scan"))
    for q in (-1.0, 0.0, 2.0, 3.0, 3.5, 5.0, 9.0, 9.5):
        for k in (1, 2, 9):
            assert index.top(q, k).tolist() == scan.top(q, k).tolist()
    assert index.top(3.0, 9).tolist() == [2, 3, 0]
    assert index.nbytes >= 0


@pytest.mark.parametrize("name", INTERVAL_INDEXES)
def test_an_index_may_be_empty(name: str) -> None:
    assert interval_index(name, [], [], []).top(1.0, 3).tolist() == []


def test_an_index_knows_its_name() -> None:
    names = {name: interval_index(name, LOW, HIGH, SCORE).name for name in INTERVAL_INDEXES}
    assert all(names[name] == name for name in ("scan", "live", "topk-table"))


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(TidingsError) as error:
        interval_index("b-tree", LOW, HIGH, SCORE)
    assert "b-tree" in str(error.value)
    assert all(name in str(error.value) for name in INTERVAL_INDEXES)


@pytest.mark.parametrize("name", INTERVAL_INDEXES)
def test_intervals_are_checked_for_every_index(name: str) -> None:
    with pytest.raises(TidingsError, match=r"^interval 1: low 7.0 is above high 6.0$"):
        interval_index(name, [0.0, 7.0], [1.0, 6.0], [1.0, 1.0])


@pytest.mark.parametrize(
    ("name", "options"),
    [("scan", {"depth": 3}), ("topk-table", {"bound": 3}), ("live", {"depth": 3})],
)
def test_an_option_of_another_index_is_refused(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(TidingsError, match=next(iter(options))):
        interval_index(name, LOW, HIGH, SCORE, **options)


def test_options_reach_the_index() -> None:
    table: Any = interval_index("topk-table", LOW, HIGH, SCORE, depth=1)
    deep: Any = interval_index("topk-table", LOW, HIGH, SCORE, depth=32)
    assert table.top(3.0, 1).tolist() == deep.top(3.0, 1).tolist() == [2]
    assert table.nbytes < deep.nbytes
    live = interval_index("live", np.array(LOW), np.array(HIGH), np.array(SCORE), bound=1)
    assert live.insert(3.0, 3.0, 9.0) == 4
    assert live.top(3.0, 2).tolist() == [4, 2]
