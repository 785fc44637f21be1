"""Points of a batch at which a pipeline is killed, in order, and how each is detected.

The driver stops by itself at those within Python. The others are Spark's own: the files of the
checkpoint tell them, and files that are frozen by the kill tell whether it came in time.
"""

from collections.abc import Callable
from functools import partial

from tests.kill.process import Pipeline, Run, kill, last

PAUSE_S = 0.005
Seen = Callable[[Pipeline, int], bool]


def ahead(pipeline: Pipeline) -> int:
    """Return the number of batches that the source has logged but the offsets have not."""
    return last(pipeline.checkpoint / "sources" / "0") - last(pipeline.checkpoint / "offsets")


def offsets_logged(pipeline: Pipeline, batch: int) -> bool:
    done = pipeline.committed()
    return last(pipeline.checkpoint / "offsets") == batch == done + 1


def state_kept(pipeline: Pipeline, batch: int) -> bool:
    """Return whether all partitions have the state of a batch that is not committed yet."""
    folders = [pipeline.checkpoint / "state" / "0" / part for part in "01"]
    kept = all(folder.exists() and last(folder) == batch + 1 for folder in folders)
    return kept and offsets_logged(pipeline, batch)


def committed(pipeline: Pipeline, batch: int) -> bool:
    return pipeline.committed() == batch == last(pipeline.checkpoint / "offsets")


WATCHED: dict[str, Seen] = {
    "after the offsets": offsets_logged,
    "after the state is kept": state_kept,
    "after the commit": committed,
}
POINTS = (
    "before the offsets",
    "after the offsets",
    "before the state is kept",
    "after the state is kept",
    "before the first transaction",
    "in the first transaction",
    "between the transactions",
    "in the second transaction",
    "after the second transaction",
    "after the commit",
)


def kill_at(pipeline: Pipeline, point: str, later: int) -> bool:
    """Kill a pipeline at a point of the next or a later batch; return whether it was hit."""
    batch = pipeline.committed() + 1 + later
    behind = ahead(pipeline)
    run = pipeline.start(point=point, batch=batch)
    pipeline.prepare()

    def missed() -> bool:
        # On a busy machine the watcher may be too late; then a later batch is tried.
        return pipeline.committed() > batch

    if point in WATCHED:
        return _kill_when(run, partial(WATCHED[point], pipeline, batch), missed=missed)
    if point == "before the offsets":
        run.until(lambda: pipeline.committed() >= batch - 1, PAUSE_S)
        return _kill_when(run, lambda: ahead(pipeline) > behind, pause_s=0, missed=missed)
    return _kill_when(run, lambda: run.has("reached"))


def _kill_when(
    run: Run,
    true: Callable[[], bool],
    pause_s: float = PAUSE_S,
    missed: Callable[[], bool] = lambda: False,
) -> bool:
    """Kill once a condition holds or was missed; return whether it holds afterwards."""
    try:
        run.until(lambda: bool(run.java()), 0.1)
        java = run.java()
        assert run.until(lambda: true() or missed(), pause_s), run.output()
        kill(java)
    finally:
        run.kill()
    return true()
