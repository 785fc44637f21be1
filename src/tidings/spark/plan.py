"""What a pipeline on Spark consists of, and why: `describe` returns it without running a query."""

from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame

from tidings.index.access.description import AccessDescription
from tidings.spark.inputs import Subscribers, Subscriptions, matcher_source
from tidings.spark.match_stage.matcher_source import FolderSource
from tidings.spark.options import read_options


@dataclass(frozen=True)
class PartPlan:
    """The subscribers of one part: the index of its file, and what is kept beside it."""

    index: AccessDescription
    beside: int
    """Subscriptions that changed after the file was written, or that cannot be written to it."""

    def __str__(self) -> str:
        return f"{self.index}\n  beside it: {self.beside:,} subscriptions."


@dataclass(frozen=True)
class SparkPlan:
    """The stages of a pipeline on Spark, and the structures of the matchers of its workers."""

    streaming: bool
    buckets: int
    version: int | None
    """The version of the index files, or None if subscribers travel as objects."""
    follows: bool
    parts: tuple[PartPlan, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as they are written as JSON."""
        return asdict(self)

    def __str__(self) -> str:
        if self.version is None:
            source = "objects, since a policy holds a function of the user"
        else:
            source = f"index files of version {self.version}"
            source += ", newer ones from the next batch on" if self.follows else ""
        state = "a state store, one blob a bucket" if self.streaming else "memory, as it is a batch"
        lines = [
            f"matching: {len(self.parts)} parts of {source}.",
            f"windows: {self.buckets} buckets in {state}.",
        ]
        return "\n".join([*lines, *(f"part {n}: {part}" for n, part in enumerate(self.parts))])


def describe(
    publications: DataFrame,
    subscriptions: Subscriptions,
    subscribers: Subscribers = None,
    **options: Any,
) -> SparkPlan:
    """Return how `feed` would run with the same arguments; `print` the result to read it.

    The index files are written as `feed` writes them, and read in this process.
    """
    chosen = read_options(options)
    settings = chosen.bucket_settings(streaming=publications.isStreaming)
    source = matcher_source(publications, subscriptions, subscribers, **chosen.of_matchers)
    matchers = [source.matcher(part) for part in range(source.parts)]
    return SparkPlan(
        publications.isStreaming,
        settings.buckets,
        source.task_version() if isinstance(source, FolderSource) else None,
        source.follows,
        tuple(PartPlan(matcher.describe(), matcher.beside) for matcher in matchers),
    )
