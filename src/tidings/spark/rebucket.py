"""The state of a stopped query for another number of buckets, as the first state of a new query."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession

from tidings import checks
from tidings.feeds.table import TableFeeds
from tidings.spark.bucket import FRAME
from tidings.spark.flow import bucket_of
from tidings.spark.parcel import Parcel
from tidings.spark.parcels import joined, merge, of_subscribers

STATE: Final = "bucket int, blob binary"


def rebucket(spark: SparkSession, checkpoint: str | Path, buckets: int) -> DataFrame:
    """Read the state in a stopped query's checkpoint; give it for so many buckets.

    It is the option `state` of a query with as many buckets and a new checkpoint. All of it goes
    through one worker, once.
    """
    reader = spark.read.format("statestore").option("stateVarName", "bucket")
    blobs = reader.load(str(checkpoint)).selectExpr("value.blob as blob")
    count = checks.count("buckets", buckets)
    return blobs.coalesce(1).mapInPandas(partial(_frames, count), STATE)


def _frames(buckets: int, frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    blobs = [bytes(blob) for frame in frames for blob in frame["blob"]]
    found = rebucketed(blobs, buckets)
    yield pd.DataFrame({"bucket": list(found), "blob": list(found.values())})


class Old(NamedTuple):
    """What a blob holds."""

    header: dict[str, Any]
    feeds: TableFeeds
    waiting: Parcel
    columns: Mapping[str, Any]


def rebucketed(blobs: Sequence[bytes], buckets: int) -> dict[int, bytes]:
    """Give the blobs of so many buckets with the state of all of some other number of them."""
    olds = [_opened(blob) for blob in blobs]
    if not olds:
        return {}
    waiting = merge([old.waiting for old in olds])
    names = {*chain.from_iterable(old.feeds.names.subscribers.names for old in olds)}
    homes = {name: bucket_of(name, buckets) for name in names | {*waiting.subscribers}}
    return {number: _blob(olds, waiting, homes, (number, buckets)) for number in range(buckets)}


def _opened(blob: bytes) -> Old:
    header, columns = FRAME.unpack(blob)
    feeds = TableFeeds()
    feeds.restore(columns["feeds"].tobytes())
    return Old(header, feeds, Parcel.unpack(columns["waiting"].tobytes()), columns)


def _blob(
    olds: Sequence[Old], waiting: Parcel, homes: Mapping[str, int], which: tuple[int, int]
) -> bytes:
    """Put a bucket together from what the old ones have of its subscribers."""
    number, buckets = which
    mine = {name for name, home in homes.items() if home == number}
    feeds = TableFeeds()
    feeds.restore_many([old.feeds.snapshot_of(mine) for old in olds])
    theirs = np.array([name in mine for name in waiting.subscribers], np.bool_)
    wait = joined(of_subscribers(waiting, theirs))
    blobs = {"feeds": feeds.snapshot(), "waiting": wait.pack()}
    columns = {name: np.frombuffer(blob, np.uint8) for name, blob in blobs.items()}
    return FRAME.pack(_header([old.header for old in olds], buckets), columns | _seen(olds))


def _header(headers: Sequence[dict[str, Any]], buckets: int) -> dict[str, Any]:
    """Take what is farthest: every bucket has heard of it, or would have with its next batch."""
    marks = [each["watermark_us"] for each in headers if each["watermark_us"] is not None]
    versions = {each["roster"] for each in headers}
    return {
        "buckets": buckets,
        "roster": versions.pop() if len(versions) == 1 else None,
        "watermark_us": max(marks, default=None),
        "sequence": max(each["sequence"] for each in headers),
        "ticks": [tick for each in headers for tick in each["ticks"]],
    }


def _seen(olds: Sequence[Old]) -> dict[str, Any]:
    """Give all ids that some bucket knows, once each."""
    names = ("low", "high", "us")
    whole = {name: np.concatenate([old.columns[name] for old in olds]) for name in names}
    _, first = np.unique(whole["low"], return_index=True)
    return {name: each[first] for name, each in whole.items()}
