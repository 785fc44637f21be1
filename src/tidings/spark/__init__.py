"""The same stages at scale: Spark moves the data, the objects of the core decide.

`match`, `feed` and `target` take and return DataFrames, batch or streaming; `evaluate` measures the
quality of deliveries, `dead_letters` returns the rows that cannot be read as publications, and
`describe` says how a feed would run.
"""

from tidings.spark.analysis.diversify import diversify, diversify_approximately
from tidings.spark.analysis.evaluate import evaluate
from tidings.spark.api import dead_letters, describe, feed, match, outcomes, target
from tidings.spark.match_stage.event_watch import EventWatch
from tidings.spark.session import session
from tidings.spark.sinks.files import parquet_sink
from tidings.spark.sinks.store import store_sink
from tidings.spark.sources.register import register_sources
from tidings.spark.state_stage.rebucket import rebucket

__all__ = [
    "EventWatch",
    "dead_letters",
    "describe",
    "diversify",
    "diversify_approximately",
    "evaluate",
    "feed",
    "match",
    "outcomes",
    "parquet_sink",
    "rebucket",
    "register_sources",
    "session",
    "store_sink",
    "target",
]
