"""Conversion of a stopped query's state to another number of buckets, for a new query."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession

from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.columnar.kernels.layout import FAR
from tidings.model import validate
from tidings.spark.match_stage.match_batch import MatchBatch
from tidings.spark.match_stage.stage import bucket_of
from tidings.spark.state_stage.bucket import IdMemory, pack_state, unpack_state
from tidings.spark.state_stage.watermark import BucketClock, PendingTicks

STATE: Final = "bucket int, blob binary, pulse binary"


def rebucket(spark: SparkSession, checkpoint: str | Path, buckets: int) -> DataFrame:
    """Return the state in a stopped query's checkpoint, split into `buckets` buckets.

    Pass it as the option `state` to a query with as many buckets and a new checkpoint. All of it
    goes through one worker, once.
    """
    blobs, clocks = (
        spark.read.format("statestore").option("stateVarName", name).load(str(checkpoint))
        for name in ("bucket", "pulse")
    )
    states = blobs.selectExpr("key", "value.blob as blob").join(
        clocks.selectExpr("key", "value.pulse as pulse"), "key"
    )
    count = validate.count("buckets", buckets)
    return states.coalesce(1).mapInPandas(partial(_convert, count), STATE)


def _convert(buckets: int, frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    states = [
        (bytes(blob), BucketClock.unpack(bytes(clock)))
        for frame in frames
        for blob, clock in zip(frame["blob"], frame["pulse"], strict=True)
    ]
    blobs, clock = rebucketed(states, buckets)
    yield pd.DataFrame({"bucket": list(blobs), "blob": list(blobs.values()), "pulse": clock.pack()})


class OpenedState(NamedTuple):
    """The contents of a packed bucket."""

    header: dict[str, Any]
    feeds: TableFeeds
    waiting: MatchBatch
    ids: Mapping[str, Any]


def rebucketed(
    states: Sequence[tuple[bytes, BucketClock]], buckets: int
) -> tuple[dict[int, bytes], BucketClock]:
    """Return the packed states of the new buckets, and the clock of each, from all old ones."""
    opened = [_open(blob) for blob, _ in states]
    clock = _latest_clock([clock for _, clock in states])
    if not opened:
        return {}, clock
    versions = {old.header["roster"] for old in opened}
    version = versions.pop() if len(versions) == 1 else None
    header: dict[str, Any] = {"buckets": buckets, "roster": version}
    aside = {name: pair for old in opened for name, pair in old.header.get("aside", {}).items()}
    if aside:
        header["aside"] = aside
    snapshots = _split_feeds(opened, buckets)
    waiting = MatchBatch.merged([old.waiting for old in opened])
    homes = np.array([bucket_of(name, buckets) for name in waiting.subscribers], np.int64)
    ids, blobs = _all_ids(opened), dict[int, bytes]()
    for bucket in range(buckets):
        feeds = TableFeeds()
        feeds.restore_many(snapshots[bucket])
        own = waiting.of_subscribers(homes == bucket).joined()
        blobs[bucket] = pack_state(header, feeds, own, ids)
    return blobs, clock


def _open(blob: bytes) -> OpenedState:
    header, columns = unpack_state(blob)
    feeds, ids = TableFeeds(), IdMemory(0)
    feeds.restore_many([columns["feeds"]])
    ids.restore(columns)
    return OpenedState(header, feeds, MatchBatch.unpack(columns["waiting"]), ids.columns())


def _split_feeds(opened: Sequence[OpenedState], buckets: int) -> list[list[bytes]]:
    """Return, for each new bucket, snapshots of the feeds that move to it from old buckets."""
    snapshots: list[list[bytes]] = [[] for _ in range(buckets)]
    for old in opened:
        homes: dict[int, list[str]] = {}
        for name in old.feeds.tables.subscribers.names:
            homes.setdefault(bucket_of(name, buckets), []).append(name)
        for home, names in homes.items():
            snapshots[home].append(old.feeds.snapshot_of(names))
    return snapshots


def _latest_clock(clocks: Sequence[BucketClock]) -> BucketClock:
    """Return the most advanced clock: each bucket has reached it, or would with its next batch.

    It is due at once, so that the first ticks load the state.
    """
    marks = [clock.watermark_us for clock in clocks if clock.watermark_us is not None]
    pending = PendingTicks([tick for clock in clocks for tick in clock.ticks])
    sequence = max((clock.sequence for clock in clocks), default=0)
    return BucketClock(max(marks, default=None), sequence, tuple(pending.ticks), -FAR)


def _all_ids(opened: Sequence[OpenedState]) -> dict[str, Any]:
    """Return all ids that some bucket remembers, once each."""
    names = ("low", "high", "us")
    columns = {name: np.concatenate([old.ids[name] for old in opened]) for name in names}
    _, first = np.unique(columns["low"], return_index=True)
    return {name: column[first] for name, column in columns.items()}
