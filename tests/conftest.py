"""One Spark for all tests, and Hypothesis profiles.

`ci` tries the same examples every time, `dev` new ones. HYPOTHESIS_PROFILE chooses; without it,
CI=true means `ci`.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from tidings.spark import session

settings.register_profile("dev", deadline=None)
settings.register_profile(
    "ci",
    deadline=None,
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
