"""Wrong arguments of numeric indexes: refused before a kernel reads them."""

import contextlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.fuzz import cases

from tidings.errors import TidingsError
from tidings.index import interval_index
from tidings.index.boxes import BOX_INDEXES, NumericEvents, box_index, range_events
from tidings.index.intervals import INTERVAL_INDEXES

LOW, HIGH, SCORE = [0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [1.0, 2.0, 3.0]
BOX_LOW, BOX_HIGH = [[0.0, 0.0], [1.0, -np.inf]], [[3.0, 3.0], [4.0, np.inf]]
WORTHS: dict[str, Any] = {"exact": [1.0, 2.0], "relaxed": [[1.0, 2.0], [3.0, 4.0]]}
MATCHING = [(name, kind) for name, kinds in BOX_INDEXES.items() for kind in kinds]


class Broken(int):
    """A number whose methods fail."""

    def __int__(self) -> int:
        raise RuntimeError("no integer")

    def __index__(self) -> int:
        raise RuntimeError("no index")

    def __float__(self) -> float:
        raise RuntimeError("no float")

    def __lt__(self, other: object) -> bool:
        raise RuntimeError("no order")

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Array:
    """An object that fails to convert to an array."""

    def __array__(self, *_: object, **__: object) -> Any:
        raise RuntimeError("no array")


HOSTILE: list[Any] = [
    *(float("nan"), float("inf"), -1, 1.5, 2**31, 2**63, 2**64, 10**400, 5e-324, 1e308),
    *("x", "1", None, b"1", 1j, True, [], [1], [[1], [1, 2]], {}, object(), Broken(1), Array()),
    *(np.array(1.0), np.array([]), np.zeros(2, "datetime64[us]"), np.zeros(2, [("a", "f8")])),
    *(np.array([1.0, 2.0, 3.0], object), np.uint64(2**63), np.datetime64("NaT"), iter([1.0])),
]


def try_all(index: Any, calls: dict[str, int], rng: random.Random) -> None:
    """Call each method with one hostile value among good ones."""
    for name, arity in calls.items():
        call: Callable[..., Any] | None = index
        for part in name.split("."):
            call = getattr(call, part, None)
        if call is None:
            continue
        for _ in range(cases(30) // 5):
            values = [rng.choice(HOSTILE) if rng.random() < 0.6 else 1 for _ in range(arity)]
            try:
                result = call(*values)
                if name.endswith("iterate"):
                    list(result)
            except TidingsError:
                pass


@pytest.mark.fuzz
@pytest.mark.parametrize("name", INTERVAL_INDEXES)
def test_interval_indexes_refuse_or_answer(name: str) -> None:
    rng = random.Random(name)
    points = {"top": 2, "top_many": 2, "iterate": 1}
    ranges = {"ranges.top": 3, "ranges.top_many": 4, "ranges.iterate": 3}
    one = {"insert": 3, "rescore": 2, "replace": 4, "delete": 1}
    many = {"insert_many": 3, "rescore_many": 2, "replace_many": 4, "delete_many": 1}
    try_all(interval_index(name, LOW, HIGH, SCORE), points | ranges | one | many, rng)
    for _ in range(cases(30)):
        columns = [rng.choice(HOSTILE) if rng.random() < 0.4 else LOW for _ in range(3)]
        option = rng.choice(["depth", "bound", "k", "budget", "use", "updates_per_query"])
        options = {option: rng.choice(HOSTILE)} if rng.random() < 0.5 else {}
        with contextlib.suppress(TidingsError):
            interval_index(name, *columns, **options)


@pytest.mark.fuzz
@pytest.mark.parametrize(("name", "kind"), MATCHING)
def test_box_indexes_refuse_or_answer(name: str, kind: str) -> None:
    rng = random.Random(name + kind)
    one = {"top": 2, "insert": 3, "rescore": 2, "replace": 4, "delete": 1}
    many = {"top_many": 2, "insert_many": 3, "rescore_many": 2, "replace_many": 4, "delete_many": 1}
    try_all(box_index(name, BOX_LOW, BOX_HIGH, WORTHS[kind]), one | many, rng)
    for _ in range(cases(30)):
        good = (BOX_LOW, BOX_HIGH, WORTHS[kind])
        columns = [rng.choice(HOSTILE) if rng.random() < 0.4 else array for array in good]
        option = rng.choice(["aggregate", "over", "bound"])
        options = {option: rng.choice(HOSTILE)} if rng.random() < 0.5 else {}
        with contextlib.suppress(TidingsError):
            box_index(name, *columns, **options)


@pytest.mark.parametrize("name", INTERVAL_INDEXES)
def test_a_huge_k_returns_all(name: str) -> None:
    index = interval_index(name, LOW, HIGH, SCORE)
    assert index.top(2.5, 2**70).tolist() == [2, 1, 0]
    assert index.ranges.top(2.5, 2.5, 2**70).tolist() == [2, 1, 0]
    with pytest.raises(TidingsError, match="ask for fewer"):
        index.top_many(np.array([2.5]), 2**40)


@pytest.mark.parametrize(("name", "kind"), MATCHING)
def test_a_huge_k_returns_all_boxes(name: str, kind: str) -> None:
    index = box_index(name, BOX_LOW, BOX_HIGH, WORTHS[kind])
    assert sorted(index.top([2.5, 2.5], 2**70)[0].tolist()) == [0, 1]
    with pytest.raises(TidingsError, match="ask for fewer"):
        index.top_many([[2.5, 2.5]], 2**40)


@pytest.mark.parametrize("name", ["ir", "live"])
@pytest.mark.parametrize("id", [-1, 3, 2**63, -(2**63), 0.5, "0", None])
def test_ids_that_do_not_exist_change_nothing(name: str, id: Any) -> None:
    index: Any = interval_index(name, LOW, HIGH, SCORE)
    for change in (index.delete, lambda wrong: index.rescore(wrong, 9.0)):
        with pytest.raises(TidingsError):
            change(id)
    with pytest.raises(TidingsError):
        index.delete_many([id])
    assert index.top(2.5, 3).tolist() == [2, 1, 0]


def test_events_with_arrays_of_different_shapes_are_refused() -> None:
    index = box_index("blocks", BOX_LOW, BOX_HIGH, WORTHS["relaxed"])
    good = np.ones((1, 2))
    for above, share in [(np.ones((1, 1)), good), (good, np.ones((0, 2))), (good, good.T)]:
        with pytest.raises(TidingsError, match="range_events"):
            index.top_many(NumericEvents(good, above, share), 1)
    with pytest.raises(TidingsError, match="probabilities"):
        range_events([[1.0, 2.0]], [1.0, 1.0, 1.0])


def test_an_aggregate_that_fails_is_named() -> None:
    for function in (len, lambda _: None, lambda rows: rows / 0, lambda rows: rows[:0]):
        index = box_index("scan", BOX_LOW, BOX_HIGH, WORTHS["relaxed"], aggregate=function)
        with np.errstate(all="ignore"), pytest.raises(TidingsError, match="the aggregate"):
            index.top([2.5, 2.5], 1)


def test_unknown_options_are_named() -> None:
    with pytest.raises(TidingsError, match="unknown option 'bound'; expected one of: depth"):
        interval_index("topk-table", LOW, HIGH, SCORE, bound=1)
