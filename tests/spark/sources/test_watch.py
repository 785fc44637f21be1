"""A stream over a table that tells of its commits waits for them, and can still be pickled."""

import pickle
import sqlite3
from contextlib import closing
from pathlib import Path

from pyspark.sql.streaming.datasource import ReadAllAvailable

from tidings.formats.event_source import OUTBOX
from tidings.spark.sources.messages import MessageStream, ReaderFactory


def test_a_stream_that_has_read_everything_waits_for_a_commit(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    options = {"url": f"sqlite:///{path}", "table": "outbox", "key": "id", "value": "event"}
    with closing(sqlite3.connect(path)) as shop:
        shop.execute("CREATE TABLE outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT)")
        shop.execute("INSERT INTO outbox (event) VALUES ('{}')")
        shop.commit()
        stream = MessageStream(ReaderFactory(OUTBOX, options, streaming=True))
        start = stream.initialOffset()
        end = stream.latestOffset(start, ReadAllAvailable())
        assert end == {"key": 1}
        assert stream.latestOffset(end, ReadAllAvailable()) == end
        shop.execute("INSERT INTO outbox (event) VALUES ('{}')")
        shop.commit()
        assert stream.latestOffset(end, ReadAllAvailable()) == {"key": 2}
        copy = pickle.loads(pickle.dumps(stream))
        assert len(copy.partitions(end, {"key": 2})) == 1
        copy.stop()
        stream.stop()
