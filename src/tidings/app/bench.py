"""`tidings bench`: finds the benchmarks of the source tree and runs them."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tidings.errors import TidingsError

SOURCE = Path(__file__).parents[3]


def run_bench(name: str | None, flags: Iterable[str], *, places: Iterable[Path] = ()) -> int:
    """Run one benchmark or all of them, each in its own process; return the exit status."""
    folder = bench_folder([*places] or [SOURCE, Path.cwd()])
    names = [name] if name else []
    return subprocess.run([sys.executable, str(folder), *names, *flags], check=False).returncode


def bench_folder(places: Iterable[Path]) -> Path:
    """Return the folder bench/ of the first place that is a source tree of Tidings."""
    for place in places:
        folder = place / "bench"
        if (place / "src/tidings/app/bench.py").is_file() and (folder / "__main__.py").is_file():
            return folder
    raise TidingsError(
        "the benchmarks are part of the source tree, not of the package: run this command in a "
        "clone of Tidings, after pip install -e '.[bench]'"
    )
