"""The same stages at scale: Spark carries, the objects of the core decide.

`match`, `feed` and `target` take DataFrames, batch or streaming, and give DataFrames; `evaluate`
tells how good deliveries are, `dead_letters` which rows are no publications.
"""

from tidings.spark.diversity import diversify, diversify_approximately
from tidings.spark.pipeline import dead_letters, feed, match, outcomes, target
from tidings.spark.quality import evaluate
from tidings.spark.rebucket import rebucket
from tidings.spark.session import session
from tidings.spark.sink import parquet_sink
from tidings.spark.sources.registering import register_sources
from tidings.spark.store_sink import store_sink

__all__ = [
    "dead_letters",
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
