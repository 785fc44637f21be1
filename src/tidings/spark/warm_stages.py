"""Both stages over a workload, without a session, to compile the kernels that workers use."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tidings.formats.arrow import events_to_table, read_events
from tidings.index_files.base_files import build_folder
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.spark.match_stage.match_batch import MatchBatch
from tidings.spark.match_stage.matcher_source import FolderSource
from tidings.spark.match_stage.stage import MatchStage
from tidings.spark.state_stage.bucket import Bucket, BucketSettings
from tidings.spark.state_stage.policies import ListedPolicies
from tidings.spark.state_stage.watermark import Tick
from tidings.testing import Workload

BUCKETS: Final = 2
_LONG_US: Final = 10**12
"""Longer than any period, so that all of them end."""


def warm_stages(work: Workload) -> None:
    """Match events against index files, pass the matches on to buckets, and restore those."""
    settings = BucketSettings(buckets=BUCKETS)
    end = Tick(max(event.published_us for event in work.events) + _LONG_US, 0)
    members = bundle_subscribers(work.subscribers, work.subscriptions)
    with TemporaryDirectory() as folder:
        source = FolderSource(build_folder(Path(folder), members), 1)
        stage = MatchStage(source, read_events, BUCKETS)
        batches = list(stage.batches(events_to_table(work.events).to_batches()))
    policies = ListedPolicies.of({subscriber.id: subscriber for subscriber in work.subscribers})
    matches = [row for batch in batches for row in batch.to_pylist() if row["kind"] == "matches"]
    for number in range(BUCKETS):
        bucket, restored = Bucket(policies, settings), Bucket(policies, settings)
        own = [MatchBatch.unpack(row["body"]) for row in matches if row["bucket"] == number]
        bucket.run(own, [])
        restored.unpack(bucket.pack(), bucket.clock)
        restored.run([], [end])
