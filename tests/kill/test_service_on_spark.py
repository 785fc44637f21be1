"""Kill -9 of the pipeline of a service on Spark: what is accepted is delivered once, rules and all.

Each kill takes the driver, its Java and their workers at once. The clock of the day ticks between
publications; these are of a later day, so that none is late. TIDINGS_KILLS=50 kills more often.
"""

import random
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from tests.kill.process import KILLS, environ, kill, processes
from tests.kill.test_service import (
    DAY_S,
    PEOPLE,
    WISHES,
    events,
    has_received,
    held_during,
    notified,
    undisturbed,
)
from tests.service.running import eventually

from tidings import Event
from tidings.model.values import SECOND_US
from tidings.store import NewPublication, open_store

pytestmark = [pytest.mark.spark, pytest.mark.kill]
BATCH = 40


class SparkPipeline:
    """`tidings serve --only pipeline --engine spark`, in a session of its own."""

    def __init__(self, address: str, folder: Path) -> None:
        command = [sys.executable, "-m", "tidings.app.cli", "serve", address]
        command += ["--only", "pipeline", "--engine", "spark"]
        with (folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                command, stderr=log, env=environ(), start_new_session=True
            )

    def kill(self) -> None:
        kill(processes(self._process.pid))
        self._process.wait(30)
        eventually(lambda: not processes(self._process.pid))


def test_kills_of_the_pipeline_on_spark_change_nothing(tmp_path: Path) -> None:
    kills, chance, address = KILLS or 1, random.Random(9), str(tmp_path / "tidings.db")
    later_s = (int(time.time()) // DAY_S + 2) * DAY_S
    stream = events(BATCH * (2 * kills + 1), later_s)
    # Nights are quiet, so that what the last one holds is delivered by an event after all kills.
    days = (stream[-1].published_us // SECOND_US - later_s) // DAY_S + 1
    published = [*stream, Event("noon", {"n": 3}, later_s + days * DAY_S + DAY_S // 2)]
    expected = undisturbed(published)
    everything = [delivery for own in expected.values() for delivery in own]
    begun = [published[2 * BATCH * nth].published_us for nth in range(1, kills + 1)]
    assert any(held_during(published, everything, us) for us in begun)
    with open_store(address) as store:
        store.catalogue.load([*PEOPLE, *WISHES])
        for nth in range(kills + 1):
            pipeline = SparkPipeline(address, tmp_path)
            first = 2 * BATCH * nth
            for batch in (published[first : first + BATCH], published[first + BATCH :][:BATCH]):
                if batch:
                    store.publications.accept([NewPublication(event) for event in batch], 0)
            # It has begun: the rest of what waits, or a part of it, is under way.
            eventually(lambda last=first + 1: store.log.last().upto >= last, patience_s=600)
            time.sleep(chance.uniform(0, 0.5))
            if nth < kills:
                pipeline.kill()
        for name, own in expected.items():
            eventually(partial(has_received, store, name, len(own)), patience_s=600)
        eventually(lambda: store.log.last().upto == len(published), patience_s=600)
        eventually(lambda: store.log.tick_us(1), patience_s=600)  # the clock was told meanwhile
        pipeline.kill()
        assert notified(store) == expected
