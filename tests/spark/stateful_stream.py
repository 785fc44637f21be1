"""A small stateful stream, run as a separate program by test_session.py.

It prints the home of its Java, how many rows each key has had, batch by batch, and at last what a
worker that fails has raised.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.errors import PythonException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidings.spark.session import session


class Count(StatefulProcessor):
    """Counts the rows of a key over all batches, in a packed state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.packed = handle.getValueState("packed", "blob binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        packed = self.packed.get()
        total = (int(packed[0]) if packed else 0) + sum(len(frame) for frame in rows)
        self.packed.update((str(total).encode(),))
        yield pd.DataFrame({"key": [key[0]], "total": [total]})

    def close(self) -> None:
        pass


def show(batch: DataFrame, number: int) -> None:
    totals = sorted((row.key, row.total) for row in batch.collect())
    sys.stdout.write(f"{number} {totals}\n")


def refuse(batches: Any) -> Iterator[Any]:
    for _ in batches:
        raise ValueError("refused")
    yield from ()


def main(folder: Path) -> None:
    for number in range(3):
        (folder / f"{number}.json").write_text('{"key": 1}\n{"key": 2}\n{"key": 1}\n')
    spark = session(cores=2)
    home = spark.sql("select java_method('java.lang.System', 'getProperty', 'java.home')").first()
    sys.stdout.write(f"{home and home[0]}\n")
    rows = spark.readStream.schema("key long").option("maxFilesPerTrigger", 1).json(str(folder))
    totals = rows.groupBy("key").transformWithStateInPandas(
        Count(), "key long, total long", outputMode="Append", timeMode="None"
    )
    writer = totals.writeStream.foreachBatch(show).trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / "_checkpoint")).start().awaitTermination()
    try:
        spark.range(1).mapInArrow(refuse, "id long").collect()
    except PythonException as error:
        sys.stdout.write(str(error).strip().splitlines()[-1])
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
