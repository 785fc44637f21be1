"""Pipeline whose folders fill up, one after the other, in a private mount namespace.

full.py FOLDER PLAN

Prints the error for each full folder as JSON. With space in all of them the
stream is then run to its end, and the store is copied to FOLDER.
"""

import json
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from tidings.errors import TidingsError
from tidings.spark import parquet_sink, session
from tidings.spark.ops.error_messages import SPARK_ERRORS, describe_error

PLACES = ("index", "local", "checkpoint", "store", "parquet")
SIZE = "100m"
LEFT = 40_000
"""Bytes left in a full folder: enough to start, not to finish."""
LEFT_FOR_INDEX = 4_000
"""The same for index files, which are small."""


def mount(folder: Path) -> None:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)], check=True)


def main(folder: Path, plan: dict[str, object]) -> None:
    for place in PLACES:
        mount(folder / place)
    settings = {"spark.tidings.index": str(folder / "index"), "spark.local.dir": f"{folder}/local"}
    spark, driver = session("full", cores=2, settings=settings), import_module("driver")
    store = folder / "store" / "s.db"
    plan["stores"] = [str(store)]

    def run(sink: str) -> None:
        """Run the stream into its store; the one into Parquet has a separate checkpoint."""
        if sink == "parquet":
            found = driver.pipeline(spark, folder, plan)
            writer = found.writeStream.foreachBatch(parquet_sink(folder / "parquet" / "out"))
            writer = writer.option("checkpointLocation", str(folder / "other"))
            writer.trigger(availableNow=True).start().awaitTermination()
        else:
            driver.start(spark, folder, plan).awaitTermination()

    messages = {}
    for place in PLACES:
        ballast = folder / place / "ballast"
        left = LEFT_FOR_INDEX if place == "index" else LEFT
        ballast.write_bytes(bytes(shutil.disk_usage(ballast.parent).free - left))
        try:
            run(place)
        except (TidingsError, *SPARK_ERRORS) as error:
            messages[place] = describe_error(error)
        ballast.unlink()
    for sink in ("store", "parquet"):
        run(sink)
    shutil.copy(store, folder / "s.db")
    shutil.copytree(folder / "parquet" / "out", folder / "out")
    sys.stdout.write(json.dumps(messages))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
