"""Parts that are imported when they are used: `import tidings` loads none of them."""

import subprocess
import sys

import pytest

from tidings.index import INDEXES
from tidings.index.boxes import BOX_INDEXES
from tidings.index.intervals import INTERVAL_INDEXES
from tidings.index.lazy import LazyPart

PARTS = [
    *INDEXES.values(),
    *INTERVAL_INDEXES.values(),
    *(make for kinds in BOX_INDEXES.values() for make in kinds.values()),
]


def loaded_modules(statement: str) -> list[str]:
    """Return the modules that a fresh interpreter has loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.split()


def test_the_package_loads_no_paper_no_spark_and_no_pandas() -> None:
    modules = loaded_modules("import tidings, tidings.index.boxes, tidings.index.intervals")
    assert "tidings.index.boxes.live" in modules
    assert [name for name in modules if "papers" in name.split(".")] == []
    assert [name for name in modules if name.split(".")[0] in ("pyspark", "pandas")] == []


def test_the_spark_package_loads_no_paper() -> None:
    modules = loaded_modules("import tidings.spark")
    assert [name for name in modules if "papers" in name.split(".")] == []


@pytest.mark.parametrize("part", [part for part in PARTS if isinstance(part, LazyPart)], ids=str)
def test_every_lazy_part_exists(part: LazyPart) -> None:
    assert callable(part.load())


def test_a_lazy_part_passes_its_arguments_on() -> None:
    assert LazyPart("builtins:dict")([("a", 1)], b=2) == {"a": 1, "b": 2}
