"""What `tidings bench` does: finds the benches of the source tree, and runs them."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tidings.errors import TidingsError

SOURCE = Path(__file__).parents[3]


def run_bench(name: str | None, flags: Iterable[str], *, places: Iterable[Path] = ()) -> int:
    """Run one bench, or all, in processes of their own; give the exit status."""
    folder = bench_folder([*places] or [SOURCE, Path.cwd()])
    named = [name] if name else []
    return subprocess.run([sys.executable, str(folder), *named, *flags], check=False).returncode


def bench_folder(places: Iterable[Path]) -> Path:
    """Find the benches in the first of the places that is a source tree of Tidings."""
    for place in places:
        if (place / "src/tidings/app/bench.py").is_file() and (
            place / "bench/__main__.py"
        ).is_file():
            return place / "bench"
    raise TidingsError(
        "the benches are part of the source tree, not of the package: type this in a clone of "
        "Tidings, after pip install -e '.[bench]'"
    )
