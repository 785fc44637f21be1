"""Reports of batches as Spark writes them."""

from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryProgress

OBSERVED = {
    "tidings_events": {"events": 50, "newest_us": 1_000_000},
    "tidings_outcomes": {"deliveries": 7, "late": 2, "dead": 1},
}
NO_TIME = {"tidings_events": {"events": 0, "newest_us": None}}


def report(
    batch: int = 3,
    name: str | None = "films",
    observed: Any = None,
    metrics: Any = None,
    source: Any = None,
) -> StreamingQueryProgress:
    state = {
        "operatorName": "x",
        "numRowsTotal": 8,
        "numRowsUpdated": 8,
        "allUpdatesTimeMs": 1,
        "numRowsRemoved": 0,
        "allRemovalsTimeMs": 0,
        "commitTimeMs": 1,
        "memoryUsedBytes": 8_360,
        "numRowsDroppedByWatermark": 0,
        "numShufflePartitions": 2,
        "numStateStoreInstances": 2,
        "customMetrics": {"rocksdbSstFileSize": 6_942},
    }
    kafka = {
        "description": "KafkaV2[Subscribe[films]]",
        "startOffset": None,
        "endOffset": None,
        "latestOffset": None,
        "numInputRows": 50,
        "inputRowsPerSecond": 0.0,
        "processedRowsPerSecond": 1.0,
        "metrics": metrics or {},
    }
    form = {
        "id": "0d6572e8-2253-4fc0-874c-d1fcdcd1fde3",
        "runId": "04cdee89-a879-4374-a77e-915b15773f7c",
        "name": name,
        "timestamp": "1970-01-01T00:00:03.500Z",
        "batchId": batch,
        "batchDuration": 500,
        "numInputRows": 50,
        "inputRowsPerSecond": 0.0,
        "processedRowsPerSecond": 1.0,
        "durationMs": {},
        "stateOperators": [state, state],
        "sources": [{**kafka, **(source or {})}],
        "sink": {"description": "ForeachBatchSink", "numOutputRows": -1, "metrics": {}},
        "observedMetrics": OBSERVED if observed is None else observed,
    }
    return StreamingQueryProgress.fromJson(form)
