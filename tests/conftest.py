"""One Spark and one PostgreSQL for all tests, places for stores, and Hypothesis profiles.

`ci` tries the same examples every time, `dev` new ones. HYPOTHESIS_PROFILE chooses; without it,
CI=true means `ci`.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession
from tests.store import server

from tidings.spark import session

# Kernels that are not compiled are some hundred times slower.
EXAMPLES = 100 if os.getenv("NUMBA_DISABLE_JIT", "0") == "0" else 8

settings.register_profile("dev", deadline=None, max_examples=EXAMPLES)
settings.register_profile(
    "ci",
    deadline=None,
    max_examples=EXAMPLES,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.getenv("HYPOTHESIS_PROFILE", "ci" if os.getenv("CI") else "dev"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Start Spark for the first test that asks for it, and stop it after the last."""
    running = session("tidings-tests", cores=2)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """Start PostgreSQL for the first test that asks for it, and stop it after the last.

    Its folder is not one of pytest's: these are closed to other users whenever pytest starts again.
    """
    with TemporaryDirectory(prefix="tidings-", ignore_cleanup_errors=True) as folder:
        running = server.make(Path(folder) / "postgres")
        yield running
        running.cleanup()


@pytest.fixture
def postgres_address(postgres: Any) -> str:
    """Give the address of a PostgreSQL without a store."""
    return server.clear(postgres.get_uri())


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the address of an empty place for a store, of each kind in turn."""
    if request.param == "sqlite":
        return str(tmp_path / "tidings.db")
    return str(request.getfixturevalue("postgres_address"))
