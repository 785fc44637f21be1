"""The claims of the RPS experiments: each holds for some costs, and fails for others."""

import pytest

from tidings.lab.papers import rps_figure_6, rps_figure_9, rps_figures_7_8, rps_table_2
from tidings.lab.papers.getnext import LABELS, EventCost, QueryCost

GOOD_SIZES = {"interval": 8, "r": 12, "segment": 429, "ir": 16, "sopt-r": 12}
COUNTS = (100, 1000)


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    for module in (rps_figure_6, rps_figure_9, rps_figures_7_8, rps_table_2):
        monkeypatch.setattr(module, "chart", lambda *panels, **options: "")


def sizes(**changed):
    by_name = GOOD_SIZES | {name.replace("_", "-"): value for name, value in changed.items()}
    grown = {name: 1.2 if name == "segment" else 1.0 for name in by_name}
    return {
        count: {
            name: int(count * size * (grown[name] if count == 1000 else 1))
            for name, size in by_name.items()
        }
        for count in COUNTS
    }


def test_the_memory_of_the_paper_satisfies_all_claims_of_table_2():
    exhibit = rps_table_2.exhibit(sizes(), {100: 290, 1000: 2990})
    assert exhibit.holds


@pytest.mark.parametrize(
    ("changed", "edges", "failing"),
    [
        ({"segment": 60}, 290, ["The segment tree needs"]),
        ({"ir": 11}, 290, ["The IR-tree takes more"]),
        ({"ir": 17}, 290, ["The IR-tree is at most twice"]),
        ({"sopt_r": 24}, 290, ["The SOPT-R-tree takes"]),
        ({}, 301, ["The constraint graph"]),
    ],
)
def test_other_memory_fails_claims_of_table_2(changed, edges, failing):
    exhibit = rps_table_2.exhibit(sizes(**changed), {100: edges, 1000: 2990})
    failed = [claim.text for claim in exhibit.claims if not claim.holds]
    assert len(failed) == len(failing)
    assert all(text.startswith(start) for text, start in zip(failed, failing, strict=True))


def cost(microseconds, leaves=1.0, intervals=10.0, most_leaves=None):
    return QueryCost(microseconds, leaves + 2, leaves, intervals, most_leaves or leaves)


def costs_of_figure_6(**changed):
    """Return the costs for 1 and 100 calls, as the paper describes them."""
    costs = {
        "interval": {1: cost(90, 0.0, 5000.0), 100: cost(99, 0.0, 6000.0)},
        "r": {1: cost(4, 5.0), 100: cost(40, 300.0)},
        "segment": {1: cost(3), 100: cost(30)},
        "ir": {1: cost(3.5), 100: cost(35)},
        "sopt-r": {1: cost(2), 100: cost(20, 50.0)},
    }
    return costs | {name.replace("_", "-"): each for name, each in changed.items()}


def failures(exhibit):
    return [claim.text for claim in exhibit.claims if not claim.holds]


def test_the_costs_of_the_paper_satisfy_all_claims_of_figure_6():
    assert failures(rps_figure_6.exhibit(costs_of_figure_6())) == []


@pytest.mark.parametrize(
    ("changed", "failing"),
    [
        (
            {"interval": {1: cost(90, 0.0, 5000.0), 100: cost(21, 0.0, 6000.0)}},
            "The interval tree is",
        ),
        ({"interval": {1: cost(90, 0.0, 5.0), 100: cost(99)}}, "For its first answer"),
        ({"r": {1: cost(4, 0.5), 100: cost(40, 10.0)}}, "The R-tree degrades"),
        ({"ir": {1: cost(7), 100: cost(35)}}, "The segment tree and the IR-tree"),
        ({"sopt_r": {1: cost(3.2), 100: cost(20, 50.0)}}, "The SOPT-R-tree is always"),
        ({"interval": {1: cost(90, 0.0, 5000.0), 100: cost(990)}}, "The difference between"),
        (
            {"sopt_r": {1: cost(2), 100: cost(20, 50.0, most_leaves=201.0)}},
            "The SOPT-R-tree enters",
        ),
    ],
)
def test_other_costs_fail_claims_of_figure_6(changed, failing):
    failed = failures(rps_figure_6.exhibit(costs_of_figure_6(**changed)))
    assert [text.startswith(failing) for text in failed] == [True]


def dimension_cost(calls, look_ups, scan, **times):
    indexes = {
        name: EventCost(cost(times.get(name.replace("-", "_"), 8)), 10**9) for name in LABELS
    }
    return rps_figures_7_8.DimensionCost(calls, 1000, indexes, look_ups, scan)


def test_the_costs_of_the_paper_satisfy_all_claims_of_figures_7_and_8():
    costs = {
        1: dimension_cost(20, 0, 50, interval=16, ir=2, sopt_r=1),
        8: dimension_cost(900, 500, 2000, interval=90, ir=50, sopt_r=40, segment=60, r=70),
    }
    parameters = rps_figures_7_8.DimensionParameters(intervals=100_000)
    assert failures(rps_figures_7_8.figure_7(costs, parameters)) == []
    assert failures(rps_figures_7_8.figure_8(costs)) == []


def test_other_costs_fail_all_claims_of_figures_7_and_8():
    costs = {
        1: dimension_cost(20, 0, 50, interval=8, sopt_r=8.1),
        8: dimension_cost(15, 0, 5, interval=90, sopt_r=40),
    }
    parameters = rps_figures_7_8.DimensionParameters(intervals=10_000_000)
    figure_7 = rps_figures_7_8.figure_7(costs, parameters)
    figure_8 = rps_figures_7_8.figure_8(costs)
    assert not any(claim.holds for claim in (*figure_7.claims, *figure_8.claims))


def overlap_cost(r_leaves, sopt_leaves, **times):
    indexes = {name: cost(times.get(name.replace("-", "_"), 10), 5.0) for name in LABELS}
    indexes["r"] = cost(times.get("r", 10), r_leaves)
    indexes["sopt-r"] = cost(times.get("sopt_r", 8), sopt_leaves)
    return rps_figure_9.OverlapCost(100.0, 500.0, indexes)


def test_claims_of_figure_9_depend_on_the_costs():
    faster = {"interval": 6, "segment": 6, "ir": 6, "sopt_r": 5}
    good = {0.5: overlap_cost(10, 9), 2.0: overlap_cost(40, 10, r=20, **faster)}
    assert failures(rps_figure_9.exhibit(good)) == []
    bad = {0.5: overlap_cost(10, 9, sopt_r=13), 2.0: overlap_cost(9, 9)}
    assert len(failures(rps_figure_9.exhibit(bad))) == 4
