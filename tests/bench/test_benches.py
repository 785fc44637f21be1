"""Every benchmark runs end to end at a tiny size, and its contestants answer correctly."""

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tidings.index.boxes import BOX_INDEXES
from tidings.index.intervals import INTERVAL_INDEXES

pytestmark = pytest.mark.bench
BENCH = Path(__file__).parents[2] / "bench"
Bench = Callable[..., str]


def tables(page: str) -> list[list[list[str]]]:
    """Return the cells of every table of a page, without the line under the header."""
    parsed: list[list[list[str]]] = []
    for before, line in zip(["", *page.splitlines()], page.splitlines(), strict=False):
        if line.startswith("| ") and not before.startswith("|"):
            parsed.append([])
        if line.startswith("| "):
            parsed[-1].append([cell.strip() for cell in line.strip("|").split("|")])
    return parsed


@pytest.mark.parametrize("workload", ["rps", "tiny"])
def test_interval_compares_all_indexes_and_all_are_right(bench: Bench, workload: str) -> None:
    options = ("--quick", "--json", "--sizes", 300, 900, "--workload", workload)
    result = json.loads(bench("interval", *options))
    assert result["workload"] == workload
    for rows in result["sizes"].values():
        by_name = {row["name"]: row for row in rows}
        assert by_name.keys() | result["left_out"].keys() >= {
            *INTERVAL_INDEXES,
            *("numpy", "ncls", "superintervals", "intervaltree", "postgres-gist", "postgres-btree"),
        }
        assert not by_name.keys() & result["left_out"].keys()
        assert {row["right"] for row in rows} == {1.0}
        assert by_name["numpy"]["batch_ratio"]["numpy"] == 1
        assert all(row["bytes"] > 0 for row in rows if row["name"] in INTERVAL_INDEXES)


def test_interval_writes_its_page_and_its_growth(bench: Bench, tmp_path: Path) -> None:
    options = ("--sizes", 200, 400, "--rounds", 1, "--only", "numpy", "scan", "ir", "nobody")
    page = bench("interval", *options)
    small, large, growth = tables(page)
    assert [row[0] for row in small] == ["index", "numpy", "scan", "ir"]
    assert [len(row) for row in large] == [10] * 4
    assert [row[0] for row in growth[1:]] == ["numpy", "scan", "ir"]
    assert growth[0][1:] == ["us at 200", "us at 400", "last / previous"]
    assert "ir, updates per second: insert " in page
    assert (tmp_path / "interval.md").read_text().strip() == page.strip()
    written = json.loads((tmp_path / "interval.json").read_text())
    assert [row["name"] for row in written["sizes"]["400"]] == ["numpy", "scan", "ir"]
    assert written["machine"].keys() >= {"cpu", "cores", "load", "load_after", "commit"}


def test_a_missing_peer_is_left_out_with_a_note(
    bench: Bench, module: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: Any) -> Any:
        raise ImportError("No module named 'ncls'")

    monkeypatch.setitem(module("peers").PEERS, "ncls", missing)
    page = bench("interval", "--quick", "--sizes", 200, "--only", "numpy", "ncls")
    assert "ncls is missing: No module named 'ncls'." in page.splitlines()
    assert [row[0] for row in tables(page)[0]] == ["index", "numpy"]


def test_growth_covers_every_k_and_d(bench: Bench, tmp_path: Path) -> None:
    result = json.loads(bench("growth", "--quick", "--size", 300, "--json"))
    assert result["over_k"].keys() == {"numpy", *INTERVAL_INDEXES} - {"auto"}
    assert {tuple(times) for times in result["over_k"].values()} == {("1", "20", "100")}
    for matching in ("relaxed", "exact"):
        supported = {name for name, kinds in BOX_INDEXES.items() if matching in kinds}
        times = result[f"{matching}_over_d"]
        assert times.keys() == {"numpy", *supported} - {"auto"}
        assert {tuple(by_d) for by_d in times.values()} == {("1", "4")}
    assert not list(tmp_path.iterdir())


def test_memory_is_measured_from_outside(bench: Bench) -> None:
    """A scan of boxes keeps the arrays that it gets; a scan of intervals copies them."""
    noise = 5 * 2**20
    for kind, size, bytes_each in (("interval", 500_000, 24), ("exact", 100_000, 136)):
        options = ("--quick", "--sizes", size, "--kinds", kind, "--only", "scan")
        [row] = json.loads(bench("memory", *options, "--json"))["rows"]
        assert row["inputs"] == pytest.approx(bytes_each * size, abs=noise)
        assert row["kept"] == pytest.approx(row["nbytes"], abs=noise)
        assert row["peak"] >= row["index"] - noise
        assert row["index"] == pytest.approx(row["kept"] if kind == "interval" else 0, abs=noise)


def test_memory_is_shown_per_subscription_and_predicate(
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


def test_fanout_runs_where_the_plain_form_is_too_slow(
    bench: Bench, module: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module("fanout"), "PLAIN", 100)
    (table,) = tables(bench("fanout", "--quick", "--rounds", 2))
    assert {(row[6], row[8]) for row in table[1:]} == {("-", "-")}


def test_events_pass_the_engine_alike_by_all_ways(bench: Bench) -> None:
    result = json.loads(bench("publish", "--quick", "--json"))
    assert [(row["right"], row["deliveries"] > 0) for row in result["rows"]] == [(True, True)]


def test_all_matches_are_those_of_posting_lists(bench: Bench) -> None:
    rows = json.loads(bench("matches", "--quick", "--json", "--workloads", "wide", "narrow"))[
        "rows"
    ]
    assert [row["right"] for row in rows] == [True] * 2
    assert [row["in_blocks"] for row in rows] == [3_000, 0]


def test_targets_are_those_of_the_access_index(bench: Bench) -> None:
    result = json.loads(bench("target", "--quick", "--json"))
    assert [row["right"] for row in result["rows"]] == [True] * 7


def test_windows_run(bench: Bench, tmp_path: Path) -> None:
    (table,) = tables(bench("windows", "--quick", "--subscribers", 20))
    assert [row[0] for row in table[1:]] == ["sliding(100)", "sliding(100), fading"]
    (grid,) = tables(bench("windows", "--quick", "--diverse", "sliding(100)"))
    assert [row[:2] for row in grid[1:]] == [["sliding(100)", "divrank"]]
    assert not list(tmp_path.iterdir())


def test_a_quota_by_rank_is_between_first_come_and_hindsight(bench: Bench) -> None:
    result = json.loads(bench("quota", "--quick", "--json", "--days", 4, "--subscribers", 5))
    streams = {row["stream"]: row for row in result["streams"]}
    assert len(streams) >= 4
    for row in streams.values():
        assert row["first"] <= row["best"] <= row["hindsight"]
        assert 0 < row["at_once"] <= 1
    assert [row["rules"] for row in result["costs"]][:2] == ["no rules", "quota"]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_rules_on_spark_deliver_as_in_the_engine(bench: Bench) -> None:
    result = json.loads(bench("quota", "--spark", "--quick", "--json"))
    none, quota, different = result["spark"]
    assert none["batch_slower"] == none["stream_slower"] == 1
    assert min(quota[kind] for kind in ("held", "released", "dropped")) > 0
    assert 0 < different["dropped"] == none["delivery"] - different["delivery"]


def test_a_preview_says_what_engines_deliver(bench: Bench) -> None:
    options = ("--quick", "--json", "--publications", 80, "--moves", 4)
    result = json.loads(bench("preview", *options))
    assert [row["right"] for row in result["rows"]] == [True] * 3
    assert all(row["ms_kept"] > 0 for row in result["rows"])


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_pipeline_delivers_as_much_as_the_engine_by_all_policies(bench: Bench) -> None:
    options = ("--quick", "--json", "--only", "sizes", "million", "fanout", "policies", "latency")
    *parts, latency = map(json.loads, bench("pipeline", *options).splitlines())
    rows, fanout = [row for part in parts for row in part["sizes"]], parts[2]
    assert [len(part["sizes"]) for part in parts] == [1, 1, 2, 7]
    assert [row["events"] for row in fanout["sizes"]] == [400, 20]
    assert all(row["right"] and row["deliveries"] > 0 for row in rows)
    assert (
        min(rows[0][name] for name in ("match_per_s", "feed_per_s", "sql_per_s", "duckdb_per_s"))
        > 0
    )
    matches = [row["matches"] for row in fanout["sizes"]]
    assert all(fewer < more for fewer, more in pairwise(matches))
    assert latency["ms"].keys() == {"identity", "match", "feed"}


@pytest.mark.spark
def test_the_pipeline_runs_on_one_core_and_on_two(bench: Bench) -> None:
    result = json.loads(bench("pipeline", "--quick", "--json", "--only", "cores"))
    assert result["right"]
    assert [row["cores"] for row in result["rows"]] == [1, 2]
    assert result["best"]["2"]["feed_per_s"] > 0


def test_a_part_of_the_pipeline_that_falls_does_not_stop_the_others(
    module: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, measured = module("pipeline"), list[str]()

    def publish(name: str, *_: Any) -> None:
        measured.append(name)
        if name == "pipeline-million":
            sys.exit("it has fallen")

    part = pipeline.Part(lambda *_: {}, str, 0)
    monkeypatch.setattr(pipeline, "PARTS", dict.fromkeys(("million", "latency"), part))
    monkeypatch.setattr(pipeline, "publish", publish)
    monkeypatch.setattr(pipeline, "Offers", lambda *_: None)
    monkeypatch.setattr(pipeline.ts, "session", lambda *_, **__: None)
    monkeypatch.setattr(sys, "argv", ["pipeline.py"])
    with pytest.raises(SystemExit, match="it has fallen"):
        pipeline.main()
    assert measured == ["pipeline-million", "pipeline-latency"]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_state_and_index_parts(bench: Bench) -> None:
    parts = json.loads(bench("parts", "--quick", "--json"))
    assert parts["right"]
    assert parts["matches"] > 0
    result = json.loads(bench("state", "--quick", "--json"))
    assert {row["kind"]: row["state_rows"] for row in result["rows"]} == {
        "buckets": 4,
        "per key": 2_000,
    }


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_default_engine_delivers_what_every_choice_does(bench: Bench) -> None:
    rows = json.loads(bench("defaults", "--quick", "--json"))["rows"]
    assert {row["subscriptions"] for row in rows} == {10}
    assert all(row["same"] and row["us"].keys() >= {"default", "scan, table"} for row in rows)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_crowds_are_diversified_alike(bench: Bench) -> None:
    (row,) = json.loads(bench("crowds", "--quick", "--json"))["rows"]
    assert row["right"]
    assert min(row[name] for name in ("read_s", "choose_s", "spark_s")) > 0


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_changes_take_effect_and_are_right(bench: Bench) -> None:
    result = json.loads(bench("changes", "--quick", "--json"))
    kinds = ["insert", "delete", "replace", "rescore"]
    assert [(row["kind"], row["count"]) for row in result["rows"]] == [
        ("insert", 1),
        *((kind, 20) for kind in kinds),
    ]
    assert all(row["right"] for row in (*result["rows"], result["rebuild"]))


@pytest.mark.spark
def test_a_long_run_delivers_what_the_engine_delivers(bench: Bench, tmp_path: Path) -> None:
    result = json.loads(bench("long", "--quick", "--json"))
    assert result["right"]
    assert result["files"] >= result["samples"][-1]["batches"] > 0
    assert sum(sample["deliveries"] for sample in result["samples"]) > 0
    assert result["flat"] == (not result["growing"])
    assert not list(tmp_path.iterdir())


@pytest.mark.spark
def test_service_runs(bench: Bench) -> None:
    result = json.loads(bench("service", "--quick", "--live", 3, "--json"))
    rates = [*result["singles"].values(), *result["bulk"].values()]
    assert min(*rates, result["live_ms"]["p50"]) > 0
    assert result["feed_ratio"] == result["feed_ms"]["p50"] / result["empty_ms"]["p50"]


def test_recovery_runs(bench: Bench, tmp_path: Path) -> None:
    result = json.loads(bench("recovery", "--quick", "--subscribers", 20, "--json"))
    (only,) = result["rounds"]
    assert 0 < only["session_s"] < only["delivery_s"]
    assert only["processor_s"] > 0
    assert not list(tmp_path.iterdir())


def test_the_command_lists_all_benchmarks() -> None:
    line = [sys.executable, str(BENCH)]
    text = subprocess.run([*line, "--help"], capture_output=True, text=True, check=True).stdout
    files = {path.stem for path in BENCH.glob("*.py") if "def arguments" in path.read_text()}
    assert all(name in text for name in files - {"pages"})
    wrong = subprocess.run([*line, "--rounds=3"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "name the bench that gets the option --rounds=3" in wrong.stderr


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_capacity_compares_the_model_with_runs(bench: Bench) -> None:
    result = json.loads(bench("capacity", "--quick", "--json"))
    [row] = result["rows"]
    assert (row["size"], row["matches"], row["on"]) == (3_000, 10, "2")
    assert row["accuracy"] > 0
    assert 0.5 < row["index_accuracy"] < 2


def test_compare_measures_eight_policies_next_to_one(bench: Bench) -> None:
    result = json.loads(bench("compare", "--quick", "--json"))
    ways = [row["way"] for row in result["rows"]]
    assert ways == ["replay", "tidings lab compare --engine local"]
    assert all(row["cheapest_ratio"] > 0 < row["median_ratio"] for row in result["rows"])


def test_the_outbox_reaches_every_receiver(bench: Bench) -> None:
    result = json.loads(bench("outbox", "--quick", "--json"))
    assert len(result["receivers"]) == 6
    assert all(figures["seconds"] > 0 for figures in result["receivers"].values())
