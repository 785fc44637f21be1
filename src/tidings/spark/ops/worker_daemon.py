"""The daemon that forks Spark's Python workers, after importing the modules of the stages.

    pyspark.daemon    fork -> import pandas, pyarrow, numba, Tidings -> work    1 s for each worker
    this module       import all of these -> fork -> work                       1 s for each session

Spark's own daemon imports nothing, so that no thread exists when it forks. Of the modules here only
pyarrow starts one, for its allocator, which is prepared for forks; the launcher limits OpenBLAS to
the thread that calls it.
"""

import gc
from importlib import import_module
from typing import Final

from pyspark.daemon import manager

MODULES: Final = (
    "pyspark.worker",
    "tidings.spark.match_stage.stage",
    "tidings.spark.state_stage.processor",
)


def main() -> None:
    """Import the modules of the stages, and fork workers until Spark closes the input."""
    for name in MODULES:
        import_module(name)
    gc.collect()
    gc.freeze()  # else a collection in a worker copies the pages that it shares with the others
    manager()


if __name__ == "__main__":
    main()
