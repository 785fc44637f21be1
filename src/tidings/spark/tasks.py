"""Independent tasks on Spark: each a function of a shared file that returns bytes by name."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

import pyarrow as pa
from pyspark import SparkFiles
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

Task = Callable[[Path], Mapping[str, bytes]]
_RESULTS: Final = pa.schema({"name": pa.string(), "data": pa.large_binary()})


class TaskResult(NamedTuple):
    """The number of a finished task, and what it returned."""

    number: int
    outputs: Mapping[str, bytes]


def run_tasks(spark: SparkSession, tasks: Mapping[int, Task], shared: Path) -> Iterator[TaskResult]:
    """Run tasks, as many at a time as Spark has cores; yield results as they come.

    Every machine gets a copy of the `shared` file. If the caller stops early, so do the tasks.
    """
    context, tag = spark.sparkContext, f"tidings-{uuid4().hex}"
    context.addFile(str(shared))

    def run(number: int, task: Task) -> TaskResult:
        spark.addTag(tag)
        rows = spark.range(0, 1, 1, 1).mapInArrow(
            _Work(task, shared.name), from_arrow_schema(_RESULTS)
        )
        table = rows.toArrow()
        pairs = zip(table["name"].to_pylist(), table["data"].to_pylist(), strict=True)
        return TaskResult(number, dict(pairs))

    with ThreadPoolExecutor(max(1, context.defaultParallelism)) as threads:
        waiting = {threads.submit(run, number, task) for number, task in tasks.items()}
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            for future in waiting:
                future.cancel()
            if waiting:
                spark.interruptTag(tag)


@dataclass(frozen=True)
class _Work:
    """A task as Spark runs it."""

    task: Task
    shared: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            for name, data in self.task(Path(SparkFiles.get(self.shared))).items():
                yield pa.RecordBatch.from_pydict({"name": [name], "data": [data]}, _RESULTS)
