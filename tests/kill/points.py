"""Points of a batch at which a pipeline is killed, in order, and how each is reached.

The driver stops by itself at those within Python. Two more are between two files that Spark writes:
the driver stops soon after, and the files that were written since are removed after the kill. What
is lost with the process is lost either way; the files are all that the next run has.
"""

from tests.kill.process import Pipeline, last

POINTS = (
    "before the offsets",
    "after the offsets",
    "before the tasks end",
    "after the state is kept",
    "before the first transaction",
    "in the first transaction",
    "between the transactions",
    "in the second transaction",
    "after the second transaction",
    "after the commit",
)
STOPPING_TASKS = 4
"""Number of points at which a task of Spark stops, and keeps its core."""


def stop_plan(point: str, batch: int) -> dict[str, object]:
    """Return where the driver stops so that a pipeline can be killed at a point of a batch."""
    if point == "before the offsets":
        return {"point": "after the offsets", "batch": batch}
    if point == "after the commit":
        return {"point": "after the offsets", "batch": batch + 1}
    return {"point": point, "batch": batch}


def rewind(pipeline: Pipeline, point: str, batch: int) -> None:
    """Remove the files that Spark wrote between a point and the stop."""
    if point == "before the offsets":
        _remove(pipeline, "offsets", batch)
    elif point == "after the commit":
        _remove(pipeline, "offsets", batch + 1)
        _remove(pipeline, "sources/0", batch + 1)


def _remove(pipeline: Pipeline, log: str, batch: int) -> None:
    (pipeline.checkpoint / log / str(batch)).unlink()
    (pipeline.checkpoint / log / f".{batch}.crc").unlink(missing_ok=True)


def is_at(pipeline: Pipeline, point: str, batch: int) -> bool:
    """Return whether the files of a pipeline are those of a point of a batch."""
    logs = [last(pipeline.checkpoint / log) for log in ("sources/0", "offsets", "commits")]
    if point == "before the offsets":
        return logs == [batch, batch - 1, batch - 1]
    if point == "after the commit":
        return logs == [batch, batch, batch]
    versions = {last(pipeline.checkpoint / "state" / "0" / part) for part in "01"}
    if point == "after the offsets":
        kept = batch + 1 not in versions
    else:
        # A task writes its state with its last outcome, maybe before it ends.
        kept = versions == {batch + 1} or point == "before the tasks end"
    return kept and logs == [batch, batch, batch - 1]
