"""Runs in separate processes: stopped gracefully and at once, and started again."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyspark
import pytest
from tests.spark.processes import (
    PATIENCE_S,
    by_sequence,
    files_read,
    logged,
    pipeline,
    tidings_run,
    write_file,
)

from tidings.app.cli import spark_submit
from tidings.app.config import SinkConfig, load_config
from tidings.app.run.local import run_local
from tidings.app.run.plan import make_plan

pytestmark = pytest.mark.spark


def run_in_one_process(config, path):
    local = replace(
        load_config(config), engine="local", trigger="available-now", sink=SinkConfig(path, "jsonl")
    )
    return list(run_local(make_plan(local)))


def test_a_run_stops_between_batches_and_the_next_resumes(tmp_path):
    """Ctrl-C in a batch; twice, in the middle of one; SIGTERM when idle."""
    config = pipeline(tmp_path, files=12)
    with tidings_run(config, "--log", "json", "--json") as first:
        logged(first, 1)
        first.send_signal(signal.SIGINT)
        out, log = first.communicate(timeout=PATIENCE_S)
        account = json.loads(out)
        lines = [json.loads(line) for line in log.splitlines()]
        assert first.returncode == 0
        assert lines[0]["message"].startswith("Stopping after this batch")
        assert {line["message"] for line in lines[1:]} <= {"batch"}
        assert 1 <= account["batches"] == account["events"] // 20 < 12

    with tidings_run(config, "--log", "json", "--json") as second:
        logged(second, 2)
        second.send_signal(signal.SIGINT)
        logged(second, 1)
        second.send_signal(signal.SIGINT)
        out, log = second.communicate(timeout=PATIENCE_S)
        assert (second.returncode, out) == (130, "")
        assert {json.loads(line)["message"] for line in log.splitlines()} <= {"batch"}

    with tidings_run(config, "--log", "json", "--json") as third:
        while files_read(config, logged(third, 1)[-1]["batch"]) < 12:
            pass
        write_file(tmp_path, 12)
        assert files_read(config, logged(third, 1)[-1]["batch"]) == 13
        third.send_signal(signal.SIGTERM)
        out, log = third.communicate(timeout=PATIENCE_S)
        assert third.returncode == 0
        assert [json.loads(line)["message"][:8] for line in log.splitlines()] == ["Stopping"]

    batches = run_in_one_process(config, tmp_path / "local")
    assert sum(batch.events for batch in batches) == 13 * 20
    found = by_sequence(tmp_path / "out")
    assert found == by_sequence(tmp_path / "local")
    assert len(found) == sum(batch.deliveries for batch in batches) > 100


def test_settings_of_spark_submit_take_precedence(tmp_path):
    config = pipeline(tmp_path, files=2)
    text = config.read_text().replace('trigger = "200ms"\n', "")
    config.write_text(text + "[spark]\nsql.shuffle.partitions = 5\nsql.session.timeZone = 'CET'\n")
    command = [
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        *("--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=3"),
        *("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1"),
        *(spark_submit.__file__, str(config), "--json"),
    ]
    done = subprocess.run(
        command,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    account = json.loads(done.stdout)
    assert (account["events"], account["batches"]) == (40, 2)
    offsets = (tmp_path / "out" / "checkpoint" / "offsets" / "0").read_text()
    assert '"spark.sql.shuffle.partitions":"3"' in offsets
    run_in_one_process(config, tmp_path / "local")
    assert by_sequence(tmp_path / "out") == by_sequence(tmp_path / "local")
