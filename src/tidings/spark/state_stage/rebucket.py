"""The state of a stopped query for another number of buckets, as the first state of a new query."""

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
from tidings.spark.match_stage.match_batch import Parcel
from tidings.spark.match_stage.match_batch_ops import joined, merge, of_subscribers
from tidings.spark.match_stage.stage import bucket_of
from tidings.spark.state_stage.bucket import opened, packed
from tidings.spark.state_stage.clock_marks import Ticks
from tidings.spark.state_stage.id_memory import Seen
from tidings.spark.state_stage.progress_mark import Pulse

STATE: Final = "bucket int, blob binary, pulse binary"


def rebucket(spark: SparkSession, checkpoint: str | Path, buckets: int) -> DataFrame:
    """Read the state in a stopped query's checkpoint; give it for so many buckets.

    It is the option `state` of a query with as many buckets and a new checkpoint. All of it goes
    through one worker, once.
    """
    blobs, pulses = (
        spark.read.format("statestore").option("stateVarName", name).load(str(checkpoint))
        for name in ("bucket", "pulse")
    )
    both = blobs.selectExpr("key", "value.blob as blob").join(
        pulses.selectExpr("key", "value.pulse as pulse"), "key"
    )
    count = validate.count("buckets", buckets)
    return both.coalesce(1).mapInPandas(partial(_frames, count), STATE)


def _frames(buckets: int, frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    pairs = [
        (bytes(blob), Pulse.unpack(bytes(pulse)))
        for frame in frames
        for blob, pulse in zip(frame["blob"], frame["pulse"], strict=True)
    ]
    blobs, pulse = rebucketed(pairs, buckets)
    yield pd.DataFrame({"bucket": list(blobs), "blob": list(blobs.values()), "pulse": pulse.pack()})


class Old(NamedTuple):
    """What a blob holds."""

    header: dict[str, Any]
    feeds: TableFeeds
    waiting: Parcel
    columns: Mapping[str, Any]


def rebucketed(
    states: Sequence[tuple[bytes, Pulse]], buckets: int
) -> tuple[dict[int, bytes], Pulse]:
    """Give the blobs of so many buckets, and the pulse of each, from those of all old ones."""
    olds = [_opened(blob) for blob, _ in states]
    pulse = _pulse([each for _, each in states])
    if not olds:
        return {}, pulse
    versions = {old.header["roster"] for old in olds}
    version = versions.pop() if len(versions) == 1 else None
    header: dict[str, Any] = {"buckets": buckets, "roster": version}
    if aside := {name: each for old in olds for name, each in old.header.get("aside", {}).items()}:
        header["aside"] = aside
    feeds, waiting = _parted(olds, buckets), merge([old.waiting for old in olds])
    homes = np.array([bucket_of(name, buckets) for name in waiting.subscribers], np.int64)
    seen, found = _seen(olds), dict[int, bytes]()
    for number in range(buckets):
        made = TableFeeds()
        made.restore_many(feeds[number])
        mine = joined(of_subscribers(waiting, homes == number))
        found[number] = packed(header, made, mine, seen)
    return found, pulse


def _opened(blob: bytes) -> Old:
    header, columns = opened(blob)
    feeds, seen = TableFeeds(), Seen(0)
    feeds.restore_many([columns["feeds"]])
    seen.restore(columns)
    return Old(header, feeds, Parcel.unpack(columns["waiting"]), seen.columns())


def _parted(olds: Sequence[Old], buckets: int) -> list[list[bytes]]:
    """Give for each new bucket the feeds that it has of old ones; each name is looked at once."""
    found: list[list[bytes]] = [[] for _ in range(buckets)]
    for old in olds:
        homes: dict[int, list[str]] = {}
        for name in old.feeds.tables.subscribers.names:
            homes.setdefault(bucket_of(name, buckets), []).append(name)
        for home, names in homes.items():
            found[home].append(old.feeds.snapshot_of(names))
    return found


def _pulse(pulses: Sequence[Pulse]) -> Pulse:
    """Take what is farthest: every bucket has heard of it, or would have with its next batch.

    Something is due at once, so that the first ticks are not passed over.
    """
    marks = [each.watermark_us for each in pulses if each.watermark_us is not None]
    ticks = Ticks([tick for each in pulses for tick in each.ticks])
    sequence = max((each.sequence for each in pulses), default=0)
    return Pulse(max(marks, default=None), sequence, tuple(ticks.held), -FAR)


def _seen(olds: Sequence[Old]) -> dict[str, Any]:
    """Give all ids that some bucket knows, once each."""
    names = ("low", "high", "us")
    whole = {name: np.concatenate([old.columns[name] for old in olds]) for name in names}
    _, first = np.unique(whole["low"], return_index=True)
    return {name: each[first] for name, each in whole.items()}
