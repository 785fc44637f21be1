"""A standalone cluster of Spark on this machine, from the pip install: a master and two workers."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from tests.kill.process import environ, kill, processes

from tidings.spark.session import find_java, java_home

HOME = Path(pyspark.__file__).parent
SPARK_CLASS = HOME / "bin" / "spark-class"
PATIENCE_S = 300
# As for the driver, the fast compiler and the simple collector suit a short life.
JAVA = (
    f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {os.environ.get('SPARK_SUBMIT_OPTS', '')}".rstrip()
)
EXECUTORS = {"spark.executor.extraJavaOptions": JAVA}
LOOPBACK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
}


@contextmanager
def swept() -> Iterator[None]:
    """Remove the files that workers of a local cluster leave where Spark is installed."""
    work = HOME / "work"
    before = set(work.iterdir()) if work.exists() else None
    try:
        yield
    finally:
        if before is None:
            shutil.rmtree(work, ignore_errors=True)
        else:
            for path in set(work.iterdir()) - before:
                shutil.rmtree(path, ignore_errors=True)


@contextmanager
def standalone(folder: Path) -> Iterator[tuple[str, list[int]]]:
    """Run a cluster; yield its address and its workers."""
    folder.mkdir()
    started = [_start(folder, "master", "Master", "--port", "0", "--webui-port", "0")]
    try:
        address = _wait_for_text(folder / "master", r"spark://127\.0\.0\.1:\d+")
        for name in ("first", "second"):
            place = ("--work-dir", str(folder / f"{name}.work"), "--webui-port", "0")
            started.append(_start(folder, name, "Worker", *place, "-c", "1", "-m", "600m", address))
        for name in ("first", "second"):
            _wait_for_text(folder / name, "Successfully registered with master")
        yield address, [each.pid for each in started[1:]]
    finally:
        for each in started:
            kill(processes(each.pid))
            each.wait(30)


def _start(folder: Path, name: str, kind: str, *options: str) -> subprocess.Popen[bytes]:
    command = [
        str(SPARK_CLASS),
        f"org.apache.spark.deploy.{kind.lower()}.{kind}",
        "--host",
        "127.0.0.1",
    ]
    variables = {
        "JAVA_HOME": str(java_home(find_java())),
        "SPARK_DAEMON_JAVA_OPTS": JAVA,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with (folder / name).open("w") as output:
        return subprocess.Popen(
            [*command, *options],
            env={**environ(), **variables},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def _wait_for_text(log: Path, words: str) -> str:
    """Wait until a log contains a text, and return it."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := re.search(words, log.read_text())):
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
    return found[0]
