import subprocess
import sys
from pathlib import Path

import pytest

from tidings.spark.ops import launchers
from tidings.spark.ops.find_java import Java
from tidings.spark.ops.launchers import java_home, python_command

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
    monkeypatch.setattr(launchers, "get_path", lambda _: str(tmp_path))
    assert path().split(":") == [*places, "with space"]
