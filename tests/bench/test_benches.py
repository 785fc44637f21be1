"""Every bench runs from end to end at a tiny size, and what it measures answers right."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidings.index.boxes import BOX_INDEXES
from tidings.index.intervals import INTERVAL_INDEXES

pytestmark = pytest.mark.bench
BENCH = Path(__file__).parents[2] / "bench"
Bench = Callable[..., str]


def tables(page: str) -> list[list[list[str]]]:
    """The cells of every table of a page, without the rule under its head."""
    found: list[list[list[str]]] = []
    for before, line in zip(["", *page.splitlines()], page.splitlines(), strict=False):
        if line.startswith("| ") and not before.startswith("|"):
            found.append([])
        if line.startswith("| "):
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
    return found


@pytest.mark.parametrize("workload", ["rps", "tiny"])
def test_interval_sets_all_side_by_side_and_all_are_right(bench: Bench, workload: str) -> None:
    options = ("--quick", "--json", "--sizes", 300, 900, "--workload", workload)
    result = json.loads(bench("interval", *options))
    assert result["workload"] == workload
    for rows in result["sizes"].values():
        named = {row["name"]: row for row in rows}
        assert named.keys() | result["left_out"].keys() >= {
            *INTERVAL_INDEXES,
            *("numpy", "ncls", "superintervals", "intervaltree", "postgres-gist", "postgres-btree"),
        }
        assert not named.keys() & result["left_out"].keys()
        assert {row["right"] for row in rows} == {1.0}
        assert named["numpy"]["batch_ratio"]["numpy"] == 1
        assert all(row["bytes"] > 0 for row in rows if row["name"] in INTERVAL_INDEXES)


def test_interval_writes_its_page_and_its_growth(bench: Bench, tmp_path: Path) -> None:
    options = ("--sizes", 200, 400, "--rounds", 1, "--only", "numpy", "scan", "ir", "nobody")
    page = bench("interval", *options)
    small, large, growth = tables(page)
    assert [row[0] for row in small] == ["index", "numpy", "scan", "ir"]
    assert [len(row) for row in large] == [10] * 4
    assert [row[0] for row in growth[1:]] == ["numpy", "scan", "ir"]
    assert growth[0][1:] == ["us at 200", "us at 400", "last x the one before"]
    assert "ir, updates a second: insert " in page
    assert (tmp_path / "interval.md").read_text().strip() == page.strip()
    written = json.loads((tmp_path / "interval.json").read_text())
    assert [row["name"] for row in written["sizes"]["400"]] == ["numpy", "scan", "ir"]
    assert written["machine"].keys() >= {"cpu", "cores", "load", "load_after", "commit"}


def test_a_peer_that_is_missing_is_left_out_with_a_line(
    bench: Bench, module: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: Any) -> Any:
        raise ImportError("No module named 'ncls'")

    monkeypatch.setitem(module("peers").PEERS, "ncls", missing)
    page = bench("interval", "--quick", "--sizes", 200, "--only", "numpy", "ncls")
    assert "ncls is left out: No module named 'ncls'." in page.splitlines()
    assert [row[0] for row in tables(page)[0]] == ["index", "numpy"]


def test_growth_asks_every_k_and_d(bench: Bench, tmp_path: Path) -> None:
    found = json.loads(bench("growth", "--quick", "--size", 300, "--json"))
    assert found["over_k"].keys() == {"numpy", *INTERVAL_INDEXES} - {"auto"}
    assert {tuple(each) for each in found["over_k"].values()} == {("1", "20", "100")}
    for matching in ("relaxed", "exact"):
        able = {name for name, kinds in BOX_INDEXES.items() if matching in kinds}
        times = found[f"{matching}_over_d"]
        assert times.keys() == {"numpy", *able} - {"auto"}
        assert {tuple(each) for each in times.values()} == {("1", "4")}
    assert not list(tmp_path.iterdir())


def test_memory_is_seen_from_outside(bench: Bench) -> None:
    """A scan of boxes keeps the arrays that it was given; one of intervals makes its own."""
    size, blur = 500_000, 5 * 2**20
    options = ("--quick", "--sizes", size, "--kinds", "interval", "exact", "--only", "scan")
    interval, exact = json.loads(bench("memory", *options, "--json"))["rows"]
    for row, given in ((interval, 24), (exact, 136)):
        assert row["inputs"] == pytest.approx(given * size, abs=blur)
        assert row["kept"] == pytest.approx(row["nbytes"], abs=blur)
        assert row["peak"] >= row["index"] - blur
    assert interval["index"] == pytest.approx(interval["kept"], abs=blur)
    assert exact["index"] == pytest.approx(0, abs=blur)


def test_the_page_of_memory_divides_by_subscriptions_and_predicates(
    module: Callable[[str], Any],
) -> None:
    row = {"kind": "predicates", "name": "access", "size": 100, "predicates": 400, "nbytes": None}
    row |= {"inputs": 9000, "index": 1200, "kept": 10_100, "peak": 5000}
    result = {"machine": {}, "dimensions": 8, "rows": [row]}
    ((_, cells),) = tables(module("memory").page(result))
    assert cells == ["access", "-", "12.0", "3.0", "101.0", "50.0", "90.0"]


def test_box_runs(bench: Bench) -> None:
    (table,) = tables(bench("box", "--quick", "--cases", "exact-100000-4"))
    assert {row[0] for row in table[1:]} >= {"numpy", "intersection", "blocks"}
    assert {row[-1] for row in table[1:]} == {"100%"}


def test_predicates_runs(bench: Bench) -> None:
    (table,) = tables(bench("predicates", "--sizes", 200, "--rounds", 1))
    assert {row[0] for row in table[1:]} >= {"access", "op", "scan"}


def test_updates_runs(bench: Bench) -> None:
    rates, rounds, states = tables(bench("updates", "--sizes", 2000))
    for table in (rates, rounds):
        assert [row[:2] for row in table[1:]] == [["rps", "2,000"], ["tiny", "2,000"]]
    assert {tuple(row[:2]) for row in states[1:]} == {("rps", "2,000"), ("tiny", "2,000")}


def test_fanout_runs_and_is_right(bench: Bench) -> None:
    (table,) = tables(bench("fanout", "--quick", "--sizes", 200, "--rounds", 2))
    assert [row[0] for row in table[1:]][:2] == ["preference", "preference, mean"]
    assert {row[-1] for row in table[1:]} == {"yes"}


def test_windows_run(bench: Bench, tmp_path: Path) -> None:
    (table,) = tables(bench("windows", "--quick", "--subscribers", 20))
    assert [row[0] for row in table[1:]] == ["sliding(100)", "sliding(100), fading"]
    (grid,) = tables(bench("windows", "--quick", "--diverse", "sliding(100)"))
    assert [row[:2] for row in grid[1:]] == [["sliding(100)", "divrank"]]
    assert not list(tmp_path.iterdir())


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_pipeline_delivers_as_much_as_the_engine_by_all_policies(bench: Bench) -> None:
    options = ("--quick", "--json", "--only", "sizes", "fanout", "policies", "latency")
    first, fanout, policies, latency = map(json.loads, bench("pipeline", *options).splitlines())
    rows = [*first["sizes"], *fanout["sizes"], *policies["sizes"]]
    assert len(rows) == 1 + 3 + 7
    assert all(row["right"] and row["deliveries"] > 0 for row in rows)
    assert min(rows[0][name] for name in ("match_per_s", "feed_per_s", "sql_per_s")) > 0
    low, hundred, thousand = (row["matches"] for row in fanout["sizes"])
    assert low < hundred < thousand
    assert latency["ms"].keys() == {"identity", "match", "feed"}


@pytest.mark.spark
def test_the_pipeline_runs_on_one_core_and_on_two(bench: Bench) -> None:
    found = json.loads(bench("pipeline", "--quick", "--json", "--only", "cores"))
    assert found["right"]
    assert [row["cores"] for row in found["rows"]] == [1, 2]
    assert found["best"]["2"]["feed_per_s"] > 0


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_state_is_kept_in_both_ways_and_an_index_in_parts(bench: Bench) -> None:
    parts = json.loads(bench("parts", "--quick", "--json"))
    assert parts["right"]
    assert parts["matches"] > 0
    found = json.loads(bench("state", "--quick", "--json"))
    assert {each["kind"]: each["state_rows"] for each in found["rows"]} == {
        "buckets": 4,
        "per key": 2_000,
    }


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_crowd_is_chosen_from_alike(bench: Bench) -> None:
    (row,) = json.loads(bench("crowds", "--quick", "--json"))["rows"]
    assert row["right"]
    assert min(row[name] for name in ("read_s", "choose_s", "spark_s")) > 0


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_changes_hold_and_are_right(bench: Bench) -> None:
    found = json.loads(bench("changes", "--quick", "--json"))
    kinds = ["insert", "delete", "replace", "rescore"]
    assert [(row["kind"], row["count"]) for row in found["rows"]] == [
        (kind, count) for count in (1, 20) for kind in kinds
    ]
    assert all(row["right"] for row in (*found["rows"], found["rebuild"]))


@pytest.mark.spark
def test_a_long_run_delivers_what_the_engine_delivers(bench: Bench, tmp_path: Path) -> None:
    found = json.loads(bench("long", "--quick", "--json"))
    assert found["right"]
    assert found["files"] >= found["samples"][-1]["batches"] > 0
    assert sum(each["deliveries"] for each in found["samples"]) > 0
    assert found["flat"] == (not found["growing"])
    assert not list(tmp_path.iterdir())


@pytest.mark.spark
def test_recovery_runs(bench: Bench, tmp_path: Path) -> None:
    found = json.loads(bench("recovery", "--quick", "--subscribers", 20, "--json"))
    (only,) = found["rounds"]
    assert 0 < only["session_s"] < only["delivery_s"]
    assert only["processor_s"] > 0
    assert not list(tmp_path.iterdir())


def test_all_are_named_in_one_command() -> None:
    line = [sys.executable, str(BENCH)]
    told = subprocess.run([*line, "--help"], capture_output=True, text=True, check=True).stdout
    files = {path.stem for path in BENCH.glob("*.py") if "def arguments" in path.read_text()}
    assert all(name in told for name in files - {"pages"})
    wrong = subprocess.run([*line, "--rounds=3"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "name the bench that --rounds=3 is for" in wrong.stderr
