"""Calibration: short runs of the pipeline on Spark, and the costs fitted to them.

Each run differs from another one in one respect, so that every cost is isolated: in events
per trigger, matches, subscriptions, buckets, or in how full the windows are. The time of a run is
the median of its triggers, so that one of them which a compiler or a collector held up does not
count.
"""

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
from pyarrow import parquet

from tidings.errors import TidingsError
from tidings.index_files.base_files import build_folder
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.lab.capacity.model import (
    Calibration,
    Costs,
    bucket_id_bytes,
    buckets_for,
    buckets_reached,
    doublings,
    held_at_most,
    held_events,
)
from tidings.lab.capacity.workload import CapacityWorkload
from tidings.lab.stopwatch import machine_seconds, processor_seconds
from tidings.policy import Policy

WARM: Final = 2
"""Triggers of a run before those that count: they compile, and fill the caches."""
COUNTED: Final = 5
TRIGGERS: Final = WARM + COUNTED + 1
"""The last one ends with the query, so its time is not known."""
DRAWS: Final = 40
"""Fits to single triggers, which show how far the costs are to be trusted."""
_US: Final = 1e6


class Case(NamedTuple):
    """One run: subscriptions, subscribers, matches per event, and events per trigger.

    The triggers before those that count have `fill` events if that is not 0; `buckets` of 0 are as
    many as the subscribers need.
    """

    subscriptions: int
    subscribers: int
    matches: float
    events: int
    fill: int = 0
    buckets: int = 0

    @property
    def offered(self) -> float:
        """Matches of one trigger."""
        return self.events * self.matches

    @property
    def reached(self) -> float:
        """The buckets that one event reaches."""
        return buckets_reached(self.matches, self.bucket_count)

    @property
    def bucket_count(self) -> int:
        """The number of buckets."""
        return self.buckets or buckets_for(self.subscribers)

    @property
    def trigger_events(self) -> list[int]:
        """The events of each trigger."""
        return [self.fill or self.events] * WARM + [self.events] * (TRIGGERS - WARM)


class _Mark(NamedTuple):
    processor_s: float
    wall_s: float
    machine_s: float

    @classmethod
    def now(cls) -> "_Mark":
        return cls(processor_seconds(), time.perf_counter(), machine_seconds())

    def others_since(self, before: "_Mark") -> float:
        """Return the processor seconds of other processes since an earlier mark."""
        own = self.processor_s - before.processor_s
        return max(0.0, self.machine_s - before.machine_s - own)


_BASE: Final = Case(100_000, 40_000, 10, 4_000)
_CROWD: Final = _BASE._replace(matches=100)
CASES: Final = (
    _BASE,
    _BASE._replace(events=1_000),
    _BASE._replace(events=16_000),
    _CROWD,
    _CROWD._replace(buckets=64),
    _CROWD._replace(subscriptions=400_000),
    _CROWD._replace(events=1_000, fill=20_000),
)
"""The last one has full windows, and differs in nothing else from a run with few matches kept."""
FIRST: Final = Case(2_000, 1_000, 5, 200)
"""Runs before all others, so that none of these is the first of a session."""


@dataclass(frozen=True)
class Measurement:
    """The cost of one run: seconds of one trigger, bytes of the state that it wrote."""

    case: Case
    processor_s: float
    wall_s: float
    build_s: float
    index_bytes: int
    state_bytes: float
    held: float
    """Matches in all windows, on average over the triggers."""
    id_bytes: float
    cores: int = 1
    triggers: tuple[float, ...] = ()
    """Processor seconds of each trigger."""
    others_s: float = 0.0
    """Processor seconds that other processes took from these cores during one trigger."""

    @property
    def held_events(self) -> float:
        """Events in all buckets whose windows hold matches of them."""
        return held_events(self.held, self.case.matches, self.case.reached)

    @property
    def overlap(self) -> float:
        """The share of the time that others left to these cores in which they were busy."""
        left_s = self.wall_s * self.cores - self.others_s
        return self.processor_s / max(self.processor_s, left_s)


Progress = Callable[[int, int], None]


def calibrate(
    policy: Policy, cases: Sequence[Case] = CASES, progress: Progress = lambda _done, _all: None
) -> tuple[Calibration, list[Measurement]]:
    """Run the cases on Spark with a policy; return the costs fitted to them, and the runs."""
    runs = list[Measurement]()
    progress(0, len(cases))
    measure(FIRST, policy)
    for case in cases:
        progress(len(runs), len(cases))
        runs.append(measure(case, policy))
    progress(len(runs), len(cases))
    return calibration_of(runs), runs


def calibration_of(runs: Sequence[Measurement]) -> Calibration:
    """Return the costs of runs, and those of draws of one trigger from each of them."""
    chance = Random(7)
    other_fits = [
        fit([replace(run, processor_s=chance.choice(run.triggers)) for run in runs])
        for _ in range(DRAWS if all(run.triggers for run in runs) else 0)
    ]
    return Calibration(fit(runs), tuple(other_fits))


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
    bundles = bundle_subscribers(workload.people(), workload.interests())
    started = time.process_time()
    index = build_folder(index_folder, bundles)
    build_s = time.process_time() - started
    offered = [0, *accumulate(case.trigger_events)]
    for number, count in enumerate(case.trigger_events):
        table = workload.events(offered[number], count)
        parquet.write_table(table, events / f"{number:03d}.parquet")
    spark = ts.session("tidings-plan")
    schema = spark.read.parquet(str(events)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(events))
    buckets = case.bucket_count
    deliveries = ts.feed(stream, index, buckets=buckets, future=None)
    marks = list[_Mark]()

    def note(batch: Any, _number: int) -> None:
        marks.append(_Mark.now())
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
    written = [_bytes_written(progress) for progress in query.recentProgress][WARM : TRIGGERS - 1]
    triggers = [after.processor_s - before.processor_s for before, after in pairwise(marks[WARM:])]
    walls = [after.wall_s - before.wall_s for before, after in pairwise(marks[WARM:])]
    others = [after.others_since(before) for before, after in pairwise(marks[WARM:])]
    cores = spark.sparkContext.defaultParallelism
    most = case.subscribers * held_at_most(policy.window, math.inf)
    so_far = offered[WARM + 1 : TRIGGERS]
    return Measurement(
        case,
        processor_s=median(triggers),
        wall_s=median(walls),
        build_s=build_s,
        index_bytes=_folder_bytes(index_folder),
        state_bytes=fmean(written),
        held=fmean(min(most, count * case.matches) for count in so_far),
        id_bytes=fmean(buckets * bucket_id_bytes(count, case.matches, buckets) for count in so_far),
        cores=cores,
        triggers=tuple(triggers),
        others_s=median(others) * min(1.0, cores / (os.cpu_count() or 1)),
    )


def _bytes_written(progress: Any) -> int:
    """Return the bytes that a trigger put into the state store: all buckets that it touched."""
    return sum(
        operator.customMetrics.get("rocksdbTotalBytesWritten", 0)
        for operator in progress.stateOperators
    )


def _folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def fit(runs: Sequence[Measurement]) -> Costs:
    """Return the costs that fit the runs best, in relative terms; none is negative."""
    times = [
        (
            1.0,
            run.case.events,
            run.case.events * run.case.reached,
            run.case.offered,
            run.case.offered * doublings(run.case.subscriptions),
            run.state_bytes,
        )
        for run in runs
    ]
    trigger, event, bucket, match, growth, state_byte = _nonnegative(
        times, [run.processor_s for run in runs]
    )
    subscriber_bytes, held_bytes, event_bytes = _nonnegative(
        [(run.case.subscribers, run.held, run.held_events) for run in runs],
        [max(1.0, run.state_bytes - run.id_bytes) for run in runs],
    )
    largest = max(runs, key=lambda run: run.case.subscriptions)
    longest = max(runs, key=lambda run: run.processor_s)
    return Costs(
        trigger_s=trigger,
        event_us=event * _US,
        bucket_us=bucket * _US,
        match_us=match * _US,
        growth_us=growth * _US,
        state_byte_us=state_byte * _US,
        build_us=largest.build_s / largest.case.subscriptions * _US,
        index_bytes=largest.index_bytes / largest.case.subscriptions,
        subscriber_bytes=subscriber_bytes,
        held_bytes=held_bytes,
        event_bytes=event_bytes,
        overlap=longest.overlap,
    )


def _nonnegative(rows: Sequence[Sequence[float]], targets: Sequence[float]) -> list[float]:
    """Return the factors, none negative, with the least squared relative error.

    There are at most six unknowns, so every subset of them is tried.
    """
    scaled = np.array(rows) / np.array(targets)[:, None]
    # Columns of like size keep the solution stable: bytes stand beside seconds.
    sizes = np.abs(scaled).max(axis=0)
    sizes[sizes == 0] = 1.0
    scaled /= sizes
    best, least = np.zeros(scaled.shape[1]), np.inf
    for subset in _subsets(scaled.shape[1]):
        factors, *_ = np.linalg.lstsq(scaled[:, subset], np.ones(len(rows)), rcond=None)
        error = float(np.sum((scaled[:, subset] @ factors - 1) ** 2))
        if (factors >= 0).all() and error < least:
            best, least = np.zeros(scaled.shape[1]), error
            best[subset] = factors
    return [float(factor) for factor in best / sizes]


def _subsets(count: int) -> Iterator[list[int]]:
    for bits in range(1, 1 << count):
        yield [number for number in range(count) if bits >> number & 1]
