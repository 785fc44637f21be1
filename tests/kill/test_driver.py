"""A pipeline whose driver is killed leaves in the store what an undisturbed engine delivers."""

import os
import time
from pathlib import Path
from random import Random

import pytest
from tests.kill.points import POINTS, kill_at
from tests.kill.process import Pipeline
from tests.kill.stream import count, lay

from tidings.store import open_store

pytestmark = [pytest.mark.spark, pytest.mark.kill]
KILLS = int(os.environ.get("TIDINGS_KILLS", "0"))
"""How many random kills a long run has; a short run has two, and each kind of kill on one store."""
TRIES = 5


def long_only(address: str, scheme: str) -> None:
    """Leave a kind of store to long runs."""
    if not KILLS and address.startswith("postgresql") == (scheme == "postgresql"):
        pytest.skip("TIDINGS_KILLS=50 runs it")


def test_kills_at_every_named_point(tmp_path: Path, address: str) -> None:
    long_only(address, "postgresql")
    expected = lay(tmp_path, files=4 + 4 * len(POINTS))
    pipeline = Pipeline(tmp_path, address)
    for number, point in enumerate(POINTS):
        # Between two of its files, Spark takes some milliseconds: at times it slips through.
        tries = (kill_at(pipeline, point, number % 2) for _ in range(TRIES))
        assert any(tries), f"never killed {point}"
    pipeline.finish()
    with open_store(address) as store:
        expected.check(store)


def test_kills_at_random(tmp_path: Path, address: str) -> None:
    """Kill at any moment after the start of the query, within its first batch or a later one."""
    long_only(address, "sqlite")
    kills = KILLS or 2
    expected = lay(tmp_path, files=8 + 4 * kills, seed=8)
    pipeline, chance, seen = Pipeline(tmp_path, address), Random(8), [0]
    for _ in range(kills):
        run = pipeline.start()
        assert run.until((tmp_path / "started").exists, 0.01), run.said()
        time.sleep(chance.random() * 10)
        run.kill()
        with open_store(address) as store:
            seen.append(count(store))
    pipeline.finish()
    assert seen == sorted(seen)
    with open_store(address) as store:
        expected.check(store)
