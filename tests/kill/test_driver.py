"""A pipeline whose driver is killed leaves in the store what an undisturbed engine delivers."""

import os
import time
from pathlib import Path
from random import Random

import pytest
from tests.kill.points import POINTS, SINK, kill_at
from tests.kill.process import Pipeline
from tests.kill.stream import count, lay

from tidings.store import open_store

pytestmark = [pytest.mark.spark, pytest.mark.kill]
KILLS = int(os.environ.get("TIDINGS_KILLS", "0"))
"""Random kills; 0 for as many as fit into a short run."""
TRIES = 5


def points(address: str) -> tuple[str, ...]:
    """Give the points for a store; in a short run, a second kind of store has those of the sink."""
    return SINK[1:] if address.startswith("postgresql") and not KILLS else POINTS


def test_kills_at_every_named_point(tmp_path: Path, address: str) -> None:
    expected = lay(tmp_path, files=4 + 4 * len(points(address)))
    pipeline = Pipeline(tmp_path, address)
    for number, point in enumerate(points(address)):
        # Between two of its files, Spark takes some milliseconds: at times it slips through.
        tries = (kill_at(pipeline, point, number % 2) for _ in range(TRIES))
        assert any(tries), f"never killed {point}"
    pipeline.finish()
    with open_store(address) as store:
        expected.check(store)


def test_kills_at_random(tmp_path: Path, address: str) -> None:
    """Kill at any moment from the start of the first batch; in a short run, on SQLite only."""
    kills = KILLS or (0 if address.startswith("postgresql") else 3)
    expected = lay(tmp_path, files=8 + 4 * kills, seed=8)
    pipeline, chance, seen = Pipeline(tmp_path, address), Random(8), [0]
    for _ in range(kills):
        run = pipeline.start()
        assert run.until((tmp_path / "started").exists, 0.01), run.said()
        time.sleep(chance.random() * 5)
        run.kill()
        with open_store(address) as store:
            seen.append(count(store))
    pipeline.finish()
    assert seen == sorted(seen)
    with open_store(address) as store:
        expected.check(store)
