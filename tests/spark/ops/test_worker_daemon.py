"""The daemon of Spark's Python workers: which modules they find, and that forks are safe."""

import struct
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.service.running import eventually

from tidings.spark.ops.worker_daemon import MODULES
from tidings.spark.session import python_command

pytestmark = pytest.mark.spark


def test_workers_have_the_modules_of_the_stages_when_they_start(spark: SparkSession) -> None:
    names = [*MODULES, "numba", "pandas"]

    def tell(batches):
        for _ in batches:
            loaded = [name for name in names if name in sys.modules]
            yield pa.RecordBatch.from_pydict({"name": loaded})

    rows = spark.range(1).repartition(1).mapInArrow(tell, "name string").collect()
    assert [row.name for row in rows] == names


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux lists threads")
def test_only_the_allocator_has_a_thread_before_a_fork() -> None:
    daemon = subprocess.Popen(
        [str(python_command()), "-m", "pyspark.daemon", "pyspark.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert daemon.stdin
    assert daemon.stdout
    [port] = struct.unpack("!i", daemon.stdout.read(4))
    assert port > 0
    try:
        threads = Path(f"/proc/{daemon.pid}/task").iterdir()
        others = [thread for thread in threads if thread.name != str(daemon.pid)]
        assert {(thread / "comm").read_text().strip() for thread in others} <= {"jemalloc_bg_thd"}
        daemon.stdin.close()
        eventually(lambda: daemon.poll() is not None)
    finally:
        daemon.kill()
        daemon.wait()
        daemon.stdout.close()
