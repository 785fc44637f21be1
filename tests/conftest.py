"""Hypothesis profiles, and one Spark session and one PostgreSQL server for all tests.

The fixtures import what they start: `pytest tests/model` loads neither pyspark nor a database.
A test that uses them carries the marker `spark` or `postgres` without saying so.

Hypothesis profiles: `dev` tries new examples in every run, `thorough` twenty times as many, `ci`
always the same ones, at most 20 of each test, `quick` few of them. HYPOTHESIS_PROFILE selects one;
without it, CI=true selects `ci`.
"""

import gc
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPILED = os.getenv("NUMBA_DISABLE_JIT", "0") == "0"

# Nothing depends on the time: a busy machine may be slow.
settings.register_profile(
    "dev", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("dev"), max_examples=1_000)
settings.register_profile(
    "ci", settings.get_profile("dev"), derandomize=True, database=None, print_blob=True
)
settings.register_profile("quick", settings.get_profile("ci"))
PROFILE = os.getenv("HYPOTHESIS_PROFILE", "ci" if os.getenv("CI") else "dev")
settings.load_profile(PROFILE)

# The limit also holds for tests that ask for more examples than the profile: those are the slow
# ones. Kernels that are not compiled are about a hundred times slower.
MAX_EXAMPLES = {"quick": 10, "ci": 20}.get(PROFILE, 100_000) if COMPILED else 8

LONG_S, FOLDERS = 300, 20
"""A run of this many seconds says where they went, for this many folders."""

# What our sessions choose for themselves, also for `spark-submit` and for Spark's launcher.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# `make` archives the classes of Spark. Java maps them if they suit, and says nothing if not.
CLASSES = Path(sys.prefix, "spark.jsa")
archived = CLASSES.exists() and CLASSES.stat().st_size > 0
SHARED = f" -XX:SharedArchiveFile={CLASSES} -Xshare:auto -Xlog:disable" if archived else ""
os.environ.setdefault("SPARK_SUBMIT_OPTS", JAVA_OPTIONS + SHARED)
os.environ.setdefault("SPARK_LAUNCHER_OPTS", JAVA_OPTIONS)

# Their kernels are those of Spark's workers, which would otherwise compile them.
FEED_TESTS = ("tests/contracts/test_feeds.py", "tests/feed/", "tests/engine/", "tests/index_files/")


@pytest.hookimpl(tryfirst=True)  # markers are set before -m selects by them
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that start Spark or PostgreSQL, limit examples, and order the tests."""
    for item in items:
        for name in {"spark", "postgres", "browser"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(name)
        if isinstance(item, pytest.Function):
            _limit_examples(item.obj)
    items[:] = arrange(items, getattr(config, "workerinput", {}).get("workercount", 1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say where the time went, and what was left out for want of a browser or broker."""
    reports = [
        report
        for category in terminalreporter.stats.values()
        for report in category
        if isinstance(report, pytest.TestReport)
    ]
    if sum(report.duration for report in reports) > LONG_S:
        terminalreporter.section("seconds by folder, and of each worker")
        for name, seconds in durations(reports).items():
            terminalreporter.write_line(f"{seconds:8.1f} {name}")
    skipped = terminalreporter.stats.get("skipped", [])
    left_out = [report for report in skipped if "browser" in report.keywords]
    if left_out:
        terminalreporter.section("LEFT OUT: no browser", red=True, bold=True)
        files = sorted({report.nodeid.partition("::")[0] for report in left_out})
        terminalreporter.write_line(
            f"{len(left_out)} tests of the page did not run, since there is no chromium: "
            f"{', '.join(files)}. Install it with: apt-get install chromium"
        )
    without_broker = [report for report in skipped if "tests/sources/test_mqtt" in report.nodeid]
    if without_broker:
        terminalreporter.section("LEFT OUT: no Mosquitto", red=True, bold=True)
        terminalreporter.write_line(
            f"{len(without_broker)} tests of MQTT did not run. Install it with: apt-get install "
            "mosquitto"
        )


def pytest_collection() -> None:
    """Collect no garbage while modules are imported: it would take a fifth of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exempt what is loaded by now from garbage collections: a million objects that will stay."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_runtest_logstart() -> None:
    """Undo what the test before may have changed for the logs of this process.

    A command that runs in this process may send the log to the standard error of its test, which is
    closed afterwards. PySpark changes the class of loggers while it creates one of its own; if two
    threads do so at once, the change stays.
    """
    logging.setLoggerClass(logging.Logger)
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    for handler in root.handlers[:]:
        if type(handler) is logging.StreamHandler:  # pytest's own are of other classes
            root.removeHandler(handler)


def durations(reports: list[pytest.TestReport]) -> dict[str, float]:
    """Return the seconds of the longest folders, longest first, and then of each worker.

    A worker with fewer seconds than the others was idle at the end.
    """
    folders, workers = dict[str, float](), dict[str, float]()
    for report in reports:
        folder = "/".join(Path(report.nodeid.partition("::")[0]).parts[:2])
        folders[folder] = folders.get(folder, 0.0) + report.duration
        worker = getattr(report, "worker_id", "this process")
        workers[worker] = workers.get(worker, 0.0) + report.duration
    longest = sorted(folders.items(), key=lambda item: -item[1])[:FOLDERS]
    return {**dict(longest), **dict(sorted(workers.items()))}


def arrange(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return the tests in an order that keeps all workers busy.

    xdist gives each worker a contiguous share of equal size; a worker that is done takes tests from
    the end of another's share. So the longest tests begin the shares:

        first     the kernels of feeds, then the tests that share one session of Spark
        second    the tests with Spark in processes of their own, which mostly wait for these
        others    tests without Spark, which also fill up the first two shares
    """
    feeds, sharing, own, others = (list[pytest.Item]() for _ in range(4))
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "spark" in fixtures or item.nodeid.startswith("tests/test_docs.py"):
            sharing.append(item)  # the examples of a page run in one process
        elif item.get_closest_marker("spark"):
            own.append(item)
        else:
            (feeds if item.nodeid.startswith(FEED_TESTS[0]) else others).append(item)
    others.sort(key=lambda item: not item.nodeid.startswith(FEED_TESTS))
    first = [*feeds, *sorted(sharing, key=_is_short)]
    room = max(0, len(items) // workers - len(first))
    return [*first, *others[:room], *sorted(own, key=_is_short), *others[room:]]


def _is_short(item: pytest.Item) -> bool:
    return not (item.get_closest_marker("kill") or item.get_closest_marker("bench"))


def _limit_examples(test: Any) -> None:
    """Lower the number of examples of a property test to the limit."""
    test = getattr(test, "__func__", test)
    chosen = getattr(test, "_hypothesis_internal_use_settings", None)
    if chosen is not None and chosen.max_examples > MAX_EXAMPLES:
        test._hypothesis_internal_use_settings = settings(chosen, max_examples=MAX_EXAMPLES)


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """Start Spark for the first test that asks for it, and stop it after the last."""
    from tidings.spark import session

    running = session("tidings-tests", cores=2)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """Start PostgreSQL for the first test that asks for it, and stop it after the last.

    Its folder is not one of pytest's, which are closed to other users whenever pytest starts again.
    """
    from tests.store import server

    with TemporaryDirectory(prefix="tidings-", ignore_cleanup_errors=True) as folder:
        running = server.make(Path(folder) / "postgres")
        yield running
        running.cleanup()


@pytest.fixture
def postgres_address(postgres: Any) -> str:
    """Return the address of a PostgreSQL server without a store."""
    from tests.store import server

    return server.clear(postgres.get_uri())


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty database: a SQLite file, then a PostgreSQL server."""
    if request.param == "sqlite":
        return str(tmp_path / "tidings.db")
    return str(request.getfixturevalue("postgres_address"))


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """Start moto's server for the first test that asks for it; return its endpoint."""
    from tests.sources.clouds import running_cloud

    with running_cloud() as cloud:
        yield cloud.address


@pytest.fixture(scope="session")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a NATS server for the first test that asks for it; return its URL."""
    from tests.sources.nats_servers import running_nats

    with running_nats(tmp_path_factory.mktemp("nats")) as server:
        yield server.address
