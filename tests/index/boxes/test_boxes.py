"""What boxes, aggregates and the paper's methods promise beyond their answers."""

import numpy as np
import pytest

from tidings.errors import TidingsError
from tidings.index.boxes import box_index
from tidings.index.boxes.protocol import boxes_of


def random_boxes(size, attributes, seed=0):
    rng = np.random.default_rng(seed)
    low = rng.random((size, attributes))
    return low, low + rng.random(low.shape) / 2, rng.random(low.shape), rng.random((4, attributes))


@pytest.mark.parametrize(
    ("low", "high", "worth", "message"),
    [
        ([[3.0]], [[2.0]], [1.0], "subscription 0, attribute 0: low 3.0 is above high 2.0"),
        ([[np.nan]], [[2.0]], [1.0], "low nan is above"),
        ([[1.0]], [[2.0]], [-1.0], "subscription 0, score -1.0 is not a finite number >= 0"),
        ([[1.0]], [[2.0]], [[np.inf]], "subscription 0, attribute 0: weight inf is not"),
        ([1.0], [2.0], [1.0], "one shape"),
        (np.empty((2, 0)), np.empty((2, 0)), [1.0, 2.0], "d at least 1"),
        ([[1.0]], [[2.0]], [1.0, 2.0], "scores have shape"),
    ],
)
def test_wrong_boxes_are_refused(low, high, worth, message):
    with pytest.raises(TidingsError, match=message):
        boxes_of(low, high, worth)


def test_names_and_matchings_that_do_not_exist():
    with pytest.raises(TidingsError, match="'tree' is no index; there are scan"):
        box_index("tree", [[0]], [[1]], [1])
    with pytest.raises(TidingsError, match="intersection does not match relaxed; there are scan"):
        box_index("intersection", [[0]], [[1]], [[1]])


def test_aggregates_that_do_not_exist():
    with pytest.raises(TidingsError, match="'mean' is no aggregate; there are sum, max"):
        box_index("scan", [[0]], [[1]], [[1]], aggregate="mean")
    for name in ("blocks", "sparse"):
        with pytest.raises(TidingsError, match=f"{name} aggregates by sum and max"):
            box_index(name, [[0]], [[1]], [[1]], aggregate=np.sum)


def euclid(contributions):
    return np.sqrt((contributions**2).sum(axis=1))


def least(contributions):
    return contributions.min(axis=1)


def second(contributions):
    return np.sort(contributions, axis=1)[:, -2]


@pytest.mark.parametrize("aggregate", [euclid, least, second])
def test_threshold_takes_any_monotone_aggregate(aggregate):
    low, high, weight, events = random_boxes(300, 4)
    index = box_index("auto", low, high, weight, aggregate=aggregate)
    scan = box_index("scan", low, high, weight, aggregate=aggregate)
    assert index.describe().startswith("threshold")
    for event in events:
        for found, expected in zip(index.top(event, 10), scan.top(event, 10), strict=True):
            assert found.tolist() == expected.tolist()


def test_threshold_stops_before_the_end():
    low, high, weight, events = random_boxes(2000, 2)
    index = box_index("threshold", low, high, weight)
    index.top(events[0], 1)
    some = index.counters()
    index.top(events[0], 2000)
    every = index.counters()
    assert 0 < some["sorted"] < every["sorted"] / 2
    assert 0 < some["random"] < every["random"] / 2


def test_accesses_of_threshold_by_hand():
    """Both lists give 0 first; 4 is above the threshold of 2 + 1 only in the next round."""
    low, high = np.zeros((3, 2)), np.ones((3, 2))
    index = box_index("threshold", low, high, [[3.0, 1.0], [2.0, 1.0], [1.0, 1.0]])
    assert index.top([0, 0], 1)[0].tolist() == [0]
    assert index.counters() == {"sorted": 4, "random": 2}


def test_accesses_of_intersection_by_hand():
    """Ranks 1 2 and 0 1 2: the first moves once, the second twice, and both stand at 1."""
    index = box_index("intersection", [[5, 0], [0, 0], [0, 0]], [[9, 9], [9, 9], [9, 9]], [3, 2, 1])
    assert index.top([1, 1], 1)[0].tolist() == [1]
    assert index.counters() == {"sorted": 3}


@pytest.mark.parametrize("over", ["segment", "ir", "sopt-r-64"])
def test_paper_methods_over_any_interval_index(over):
    low, high, weight, events = random_boxes(200, 3)
    for name, worth in (("threshold", weight), ("intersection", weight[:, 0])):
        index, scan = (
            box_index(name, low, high, worth, over=over),
            box_index("scan", low, high, worth),
        )
        assert index.top(events[0], 9)[0].tolist() == scan.top(events[0], 9)[0].tolist()
        assert over in index.describe()


def test_blocks_end_early():
    """Once the k-th best is above all that follow, no further block is looked at."""
    size = 6400
    weight = np.linspace(1, 0.1, size)[:, None]
    index = box_index("blocks", np.zeros((size, 1)), np.ones((size, 1)), weight)
    assert index.top([0.5], 10)[0].tolist() == list(range(10))
    assert index.counters()["blocks"] <= 64


def test_exact_blocks_leave_out_what_lies_elsewhere():
    rng = np.random.default_rng(1)
    low = rng.random((20_000, 3))
    index = box_index("blocks", low, low + 0.01, rng.random(20_000))
    index.top([0.5, 0.5, 0.5], 10)
    assert index.counters()["blocks"] < 120


def test_scores_of_blocks_do_not_depend_on_the_order_of_additions():
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last bit, and tie all the same."""
    weight = [[0.3, 0.2, 0.1], [0.1, 0.2, 0.3]] * 40
    index = box_index("blocks", np.zeros((80, 3)), np.ones((80, 3)), weight)
    ids, scores = index.top([0, 0, 0], 80)
    assert ids.tolist() == list(range(80))
    assert set(scores.tolist()) == {0.6}


def test_too_many_attributes_for_blocks():
    with pytest.raises(TidingsError, match="at most"):
        box_index("blocks", np.zeros((1, 2041)), np.ones((1, 2041)), np.ones((1, 2041)))


def test_auto_chooses_by_fill_and_aggregate():
    low, high = np.full((50, 40), -np.inf), np.full((50, 40), np.inf)
    low[:, 0] = 0.0
    few = box_index("auto", low, high, np.ones((50, 40)))
    assert few.describe().startswith("sparse, since 2.5% of the attributes are constrained.")
    all_of_them = box_index("auto", np.zeros((50, 1)), high[:, :1], np.ones((50, 1)))
    assert all_of_them.describe().startswith("blocks, since 100.0%")
    any_function = box_index("auto", low, high, np.ones((50, 40)), aggregate=euclid)
    assert any_function.describe().startswith("threshold, since only it takes any")
    assert box_index("auto", low, high, np.ones(50)).describe().startswith("blocks, since it")


def test_sparse_pays_only_for_what_is_there():
    rng = np.random.default_rng(3)
    low, high = np.full((500, 300), -np.inf), np.full((500, 300), np.inf)
    low[np.arange(500), rng.integers(0, 300, 500)] = 0.0
    index = box_index("sparse", low, high, np.ones((500, 300)))
    event = np.full(300, np.nan)
    event[7] = 1.0
    index.top(event, 500)
    assert index.counters()["predicates"] == np.isfinite(low[:, 7]).sum()
