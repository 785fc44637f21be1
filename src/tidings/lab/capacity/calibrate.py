"""Calibration: short runs of the pipeline on Spark, and the costs fitted to them."""

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
from pyarrow import parquet

from tidings.errors import TidingsError
from tidings.index_files.base_files import build_folder
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.lab.capacity.model import Costs, bucket_id_bytes, buckets_for, doublings, held_at_most
from tidings.lab.capacity.processor_time import processor_seconds
from tidings.lab.capacity.workload import CapacityWorkload
from tidings.policy import Policy

WARM: Final = 2
"""Triggers of a run before those that count: they compile, and fill the caches."""
TRIGGERS: Final = WARM + 4
_US: Final = 1e6


class Case(NamedTuple):
    """One run: subscriptions, subscribers, matches per event, and events per trigger."""

    subscriptions: int
    subscribers: int
    matches: float
    events: int

    @property
    def offered(self) -> float:
        """Matches of one trigger."""
        return self.events * self.matches


class _Mark(NamedTuple):
    processor_s: float
    wall_s: float


# Each cost changes between some of them: matches, events, subscribers, subscriptions.
CASES: Final = (
    Case(50_000, 10_000, 5, 4_000),
    Case(50_000, 10_000, 5, 16_000),
    Case(50_000, 10_000, 50, 4_000),
    Case(50_000, 50_000, 5, 4_000),
    Case(400_000, 50_000, 50, 8_000),
)


@dataclass(frozen=True)
class Measurement:
    """What one run took: seconds of one trigger, bytes of the state that it wrote."""

    case: Case
    processor_s: float
    wall_s: float
    build_s: float
    index_bytes: int
    state_bytes: float
    held: float
    """Matches in all windows, on average over the triggers."""
    id_bytes: float


Progress = Callable[[int, int], None]


def calibrate(
    policy: Policy, cases: Sequence[Case] = CASES, progress: Progress = lambda _done, _all: None
) -> tuple[Costs, list[Measurement]]:
    """Run the cases on Spark with a policy; return the costs fitted to them, and the runs."""
    runs = list[Measurement]()
    for case in cases:
        progress(len(runs), len(cases))
        runs.append(measure(case, policy))
    progress(len(runs), len(cases))
    return fit(runs), runs


def measure(case: Case, policy: Policy) -> Measurement:
    """Run one case as a stream, in a folder of its own."""
    with TemporaryDirectory(prefix="tidings-plan-", ignore_cleanup_errors=True) as name:
        return _measure(case, policy, Path(name))


def _measure(case: Case, policy: Policy, folder: Path) -> Measurement:
    import tidings.spark as ts

    workload = CapacityWorkload(case.subscriptions, case.subscribers, case.matches, policy)
    places = [folder / name for name in ("index", "events", "checkpoint")]
    for place in places:
        place.mkdir()
    index_folder, events, checkpoint = places
    people = bundle_subscribers(workload.people(), workload.interests())
    started = time.process_time()
    index = build_folder(index_folder, people)
    build_s = time.process_time() - started
    for number in range(TRIGGERS):
        table = workload.events(number * case.events, case.events)
        parquet.write_table(table, events / f"{number:03d}.parquet")
    spark = ts.session("tidings-plan")
    schema = spark.read.parquet(str(events)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(events))
    buckets = buckets_for(case.subscribers)
    deliveries = ts.feed(stream, index, buckets=buckets, future=None)
    marks = list[_Mark]()

    def note(batch: Any, _number: int) -> None:
        marks.append(_Mark(processor_seconds(), time.perf_counter()))
        batch.write.format("noop").mode("overwrite").save()

    query = (
        deliveries.writeStream.foreachBatch(note)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    if len(marks) != TRIGGERS:
        raise TidingsError(f"the calibration ran {len(marks)} triggers instead of {TRIGGERS}")
    counted = range(WARM, TRIGGERS - 1)
    written = [_bytes_written(each) for each in query.recentProgress][WARM : TRIGGERS - 1]
    first, last = marks[WARM], marks[-1]
    most = case.subscribers * held_at_most(policy.window, math.inf)
    return Measurement(
        case,
        processor_s=(last.processor_s - first.processor_s) / len(counted),
        wall_s=(last.wall_s - first.wall_s) / len(counted),
        build_s=build_s,
        index_bytes=_folder_bytes(index_folder),
        state_bytes=fmean(written),
        held=fmean(min(most, (each + 1) * case.events * case.matches) for each in counted),
        id_bytes=fmean(
            buckets * bucket_id_bytes((each + 1) * case.events, case.matches, buckets)
            for each in counted
        ),
    )


def _bytes_written(progress: Any) -> int:
    """Return the bytes that a trigger put into the state store: all buckets that it touched."""
    return sum(
        each.customMetrics.get("rocksdbTotalBytesWritten", 0) for each in progress.stateOperators
    )


def _folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def fit(runs: Sequence[Measurement]) -> Costs:
    """Return the costs that fit the runs best, in relative terms; none is negative."""
    times = [
        (
            1.0,
            run.case.events,
            run.case.offered,
            run.case.offered * doublings(run.case.subscriptions),
            run.state_bytes,
        )
        for run in runs
    ]
    trigger, event, match, growth, state_byte = _nonnegative(
        times, [run.processor_s for run in runs]
    )
    subscriber_bytes, held_bytes = _nonnegative(
        [(run.case.subscribers, run.held) for run in runs],
        [max(1.0, run.state_bytes - run.id_bytes) for run in runs],
    )
    largest = max(runs, key=lambda run: run.case.subscriptions)
    longest = max(runs, key=lambda run: run.processor_s)
    return Costs(
        trigger_s=trigger,
        event_us=event * _US,
        match_us=match * _US,
        growth_us=growth * _US,
        state_byte_us=state_byte * _US,
        build_us=largest.build_s / largest.case.subscriptions * _US,
        index_bytes=largest.index_bytes / largest.case.subscriptions,
        subscriber_bytes=subscriber_bytes,
        held_bytes=held_bytes,
        overlap=min(1.0, longest.processor_s / longest.wall_s / _cores()),
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _nonnegative(rows: Sequence[Sequence[float]], targets: Sequence[float]) -> list[float]:
    """Return the factors, none negative, with the least squared relative error.

    There are at most five unknowns, so every subset of them is tried.
    """
    scaled = np.array(rows) / np.array(targets)[:, None]
    # Columns of like size keep the solution stable: bytes stand beside seconds.
    sizes = np.abs(scaled).max(axis=0)
    sizes[sizes == 0] = 1.0
    scaled /= sizes
    best, least = np.zeros(scaled.shape[1]), np.inf
    for subset in _subsets(scaled.shape[1]):
        found, *_ = np.linalg.lstsq(scaled[:, subset], np.ones(len(rows)), rcond=None)
        error = float(np.sum((scaled[:, subset] @ found - 1) ** 2))
        if (found >= 0).all() and error < least:
            best, least = np.zeros(scaled.shape[1]), error
            best[subset] = found
    return [float(each) for each in best / sizes]


def _subsets(count: int) -> Iterator[list[int]]:
    for bits in range(1, 1 << count):
        yield [number for number in range(count) if bits >> number & 1]
