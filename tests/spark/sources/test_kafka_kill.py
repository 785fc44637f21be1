"""`tidings run` from a broker, killed in mid-stream: nothing is lost or repeated.

The broker lives on in the process of the test.
"""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from tests.kill.process import KILLS, Run, environ, last
from tests.kill.stream import LONG, count, write_stream
from tests.sources.brokers import Brokers
from tests.sources.pipelines import check, kafka, lines

from tidings.store import open_store

pytestmark = [pytest.mark.spark, pytest.mark.kill]
COMMAND = [sys.executable, "-c", "from tidings.app.cli import main; main()", "run", "--log", "text"]


def start(config: Path) -> Run:
    folder = config.parent
    with (folder / "said").open("w") as output:
        process = subprocess.Popen(
            [*COMMAND, str(config)],
            env=environ(),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return Run(folder, process)


def reached(checkpoint: Path, batch: int) -> bool:
    return last(checkpoint / "offsets") >= batch


def test_kills_in_mid_stream_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    expected, brokers = write_stream(tmp_path, files=12 if KILLS else LONG), Brokers()
    all_lines = lines(tmp_path)
    brokers.send("films", all_lines, partition=0)
    config = kafka(tmp_path, brokers.address, maxOffsetsPerTrigger=10)
    checkpoint, seen = tmp_path / "out" / "checkpoint", [0]
    for batch in (1, 4) if KILLS else (2,):
        run = start(config)
        try:
            assert run.until(partial(reached, checkpoint, batch), 0.01), run.output()
        finally:
            run.kill()
        assert last(checkpoint / "commits") < len(all_lines) // 10
        with open_store(tmp_path / "news.db") as store:
            seen.append(count(store))
    run = start(config)
    assert run.wait() == 0, run.output()
    assert seen == sorted(seen)
    assert 0 < seen[-1] < len(expected.deliveries)
    check(tmp_path, expected)
