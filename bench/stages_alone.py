"""The stages of the pipeline as functions of Arrow batches, without Spark, on one core.

Their processor time bounds what Spark can reach with several cores: it has to carry the rows as
well, between Python and Java and from one stage to the next.
"""

import time
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from tidings.index_files.versions import IndexFolder
from tidings.model.values import SECOND_US
from tidings.spark.match_stage.matcher_source import FolderSource
from tidings.spark.match_stage.stage import BUCKET_ROWS, MatchStage, tick_row
from tidings.spark.publications import ReadColumns
from tidings.spark.state_stage.bucket import BucketSettings
from tidings.spark.state_stage.processor import BucketRunner


def stages_alone(
    files: Sequence[str], folder: IndexFolder, buckets: int, until_s: int, cores: int
) -> float:
    """Return the events per second of so many cores that run both stages and nothing else.

    Each file is a task, as on Spark; the second of two runs counts.
    """
    source, read = FolderSource(folder, folder.newest()), ReadColumns()
    stage = MatchStage(source, read, buckets)
    tables = [parquet.read_table(file) for file in files]
    last = [tick_row(bucket, until_s * SECOND_US, 0) for bucket in range(buckets)]
    settings = BucketSettings(buckets=buckets, alone=True, only_deliveries=True)
    for _ in range(2):
        started = time.process_time()
        sent = [row for table in tables for row in stage.batches(table.to_batches())]
        between = time.process_time()
        rows = pa.concat_tables(
            [pa.Table.from_batches(sent), pa.Table.from_pylist(last, BUCKET_ROWS)]
        )
        shuffled = [rows.filter(pc.equal(rows["bucket"], number)) for number in range(buckets)]
        run, ready = BucketRunner(source, settings, read).in_batch(), time.process_time()
        for number, own in enumerate(shuffled):
            run((pa.scalar(number, pa.int32()),), own)
        seconds = between - started + time.process_time() - ready
    return cores * sum(table.num_rows for table in tables) / seconds
