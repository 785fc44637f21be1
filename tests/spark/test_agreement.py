"""The whole Spark path without a session against the engine, on streams of every kind.

Rows go through the index files, the match stage and the buckets as Spark would pass them: in any
split into micro-batches and Arrow batches, with packed state in between, sometimes with another
number of buckets, sometimes with other subscribers.
"""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spark.disorder import (
    Stream,
    any_policy,
    any_stream,
    any_subscriber,
    any_subscription,
    as_rows,
    split,
)
from tests.spark.match_stage.match_batches import deliveries, rows

from tidings import Delivery, Engine, Subscriber, Subscription
from tidings.formats.arrow import read_events
from tidings.index_files.base_files import build_folder
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.spark.match_stage.matcher_source import FolderSource
from tidings.spark.match_stage.stage import BUCKET_ROWS, PART, MatchStage, tick_row
from tidings.spark.state_stage.bucket import Bucket, BucketSettings
from tidings.spark.state_stage.outcomes import late_rows
from tidings.spark.state_stage.processor import read_rows
from tidings.spark.state_stage.rebucket import rebucketed
from tidings.spark.state_stage.watermark import BucketClock

FAR = 10**6
NAMES = "abcde"


class Stages:
    """The stages as Spark drives them, with the contents of its state store."""

    def __init__(self, folder: Path, config: BucketSettings, parts: int) -> None:
        self.folder, self.settings, self.parts = folder, config, parts
        self.states: dict[int, tuple[bytes, BucketClock]] = {}
        self.tables: list[pa.Table] = []

    def seal(self, subscribers: dict[str, Subscriber], owned: dict[str, Subscription]) -> None:
        path = self.folder / str(len(list(self.folder.iterdir())))
        path.mkdir()
        bundles = bundle_subscribers(subscribers.values(), owned.values())
        self.source = FolderSource(build_folder(path, bundles, self.parts), 1)

    def take(self, batches: list[pa.RecordBatch]) -> None:
        """Run a micro-batch."""
        stage = MatchStage(self.source, read_events, self.settings.buckets, streams=True)
        self.run([row for batch in batches for row in self._sent(stage, batch)])

    def _sent(self, stage: MatchStage, batch: pa.RecordBatch) -> list[dict[str, Any]]:
        arrived = [batch]
        if self.parts > 1:
            numbers = [pa.array([part] * batch.num_rows) for part in range(self.parts)]
            arrived = [batch.append_column(PART, number) for number in numbers]
        return [row for batch in stage.batches(arrived) for row in batch.to_pylist()]

    def run(self, sent: list[dict[str, Any]]) -> None:
        """Run the rows of each bucket as the state operator does."""
        by_bucket = defaultdict(list)
        for row in sent:
            by_bucket[row["bucket"]].append(row)
        for number, own in by_bucket.items():
            batches, ticks, letters, arrived, *_ = read_rows(
                iter([pa.Table.from_pylist(own, BUCKET_ROWS).to_pandas()])
            )
            bucket = Bucket(self.source.policies(), self.settings)
            if number in self.states:
                blob, clock = self.states[number]
                self.tables.append(late_rows(arrived, clock.watermark_us, read_events))
                moved = clock.after(ticks, self.settings.lateness_us)
                if moved is not None and not batches and not letters:
                    self.states[number] = (blob, moved)
                    continue
                bucket.unpack(blob, clock)
            self.tables.append(bucket.run(batches, ticks, letters))
            self.states[number] = (bucket.pack(), BucketClock.unpack(bucket.clock.pack()))

    def rebucket(self, buckets: int) -> None:
        if len(self.states) == self.settings.buckets:
            blobs, clock = rebucketed(
                [self.states[bucket] for bucket in sorted(self.states)], buckets
            )
            self.states = {number: (blob, clock) for number, blob in blobs.items()}
            self.settings = self.settings._replace(buckets=buckets)

    def rows(self, kind: str) -> list[dict[str, Any]]:
        return [row for table in self.tables for row in rows(table, kind)]


class Both:
    """An engine and the stages, with the same subscribers."""

    def __init__(self, chance: Random, folder: Path, lateness: int, counting: bool) -> None:
        self.chance, self.counting = chance, counting
        parts = chance.choice([1, 2])
        config = BucketSettings(lateness * 1_000_000, buckets=parts * chance.choice([1, 2]))
        self.spark = Stages(folder, config, parts)
        self.engine = Engine(f"{lateness}s")
        self.subscribers: dict[str, Subscriber] = {}
        self.owned: dict[str, Subscription] = {}
        for name in NAMES[: chance.randint(1, 5)]:
            self.join(name)
        self.spark.seal(self.subscribers, self.owned)

    def join(self, name: str) -> None:
        self.subscribers[name] = any_subscriber(self.chance, name, self.counting)
        self.engine.subscribe(self.subscribers[name])
        for number in range(self.chance.randint(0, 4)):
            self.want(name, number)

    def want(self, name: str, number: int) -> None:
        subscription = any_subscription(self.chance, name, number)
        known = subscription.id in self.owned
        (self.engine.replace if known else self.engine.add)(subscription)
        self.owned[subscription.id] = subscription

    def change(self) -> None:
        """Add, remove or change a subscriber, a subscription, a policy or a scorer."""
        names = sorted(self.subscribers)
        name = self.chance.choice(names) if names else "z"
        change = self.chance.choice(["join", "leave", "add", "remove", "policy", "scorer"])
        if change == "join" or not names:
            self.join(f"n{len(self.spark.tables)}-{len(names)}")
        elif change == "leave":
            self.engine.unsubscribe(name)
            del self.subscribers[name]
            self.owned = {k: v for k, v in self.owned.items() if v.subscriber != name}
        elif change == "add":
            self.want(name, self.chance.randint(0, 5))
        elif change == "remove" and self.owned:
            id = self.chance.choice(sorted(self.owned))
            self.engine.remove(id)
            del self.owned[id]
        elif change in ("policy", "scorer"):
            self.subscribers[name] = self._other(self.subscribers[name], change)
            self.engine.replace(self.subscribers[name])
        self.spark.seal(self.subscribers, self.owned)

    def _other(self, subscriber: Subscriber, change: str) -> Subscriber:
        new, old = any_policy(self.chance, self.counting), subscriber.policy
        if change == "scorer":
            new = replace(old, scorer=new.scorer)
        return Subscriber(subscriber.id, new, subscriber.prefers)

    def run(self, stream: Stream, changing: bool) -> list[Delivery]:
        """Publish a stream on both sides and end it; return the deliveries of the engine."""
        chance, delivered = self.chance, list[Delivery]()
        for piece in stream.pieces:
            for batch in split(chance, piece, chance.choice([1, 4, 15, 60])):
                if changing and chance.random() < 0.3:
                    self.change()
                elif not changing and chance.random() < 0.1:
                    self.spark.rebucket(self.spark.parts * chance.choice([1, 2, 3]))
                arrow = [as_rows(each, self.counting) for each in split(chance, batch, 12)]
                chance.shuffle(arrow)
                self.spark.take(arrow)
                delivered += self.engine.publish_many(batch)
        self.spark.run(
            [tick_row(bucket, FAR * 10**6, 0) for bucket in range(self.spark.settings.buckets)]
        )
        return delivered + self.engine.advance(FAR)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    lateness=st.sampled_from([0, 3, 10]),
    counting=st.booleans(),
    changing=st.booleans(),
)
def test_the_stages_deliver_as_the_engine_does(
    seed: int, lateness: int, counting: bool, changing: bool
) -> None:
    chance = Random(seed)
    changing = changing and not lateness  # waiting matches are those of their own version
    stream = any_stream(chance, lateness, counting, repeats=not changing)
    with TemporaryDirectory() as folder:
        both = Both(chance, Path(folder), lateness, counting)
        delivered = both.run(stream, changing)
    expected: dict[str, list[Any]] = {}
    for delivery in delivered:
        expected.setdefault(delivery.subscriber, []).append(delivery.to_dict())
    assert deliveries(both.spark.tables) == expected
    dead = {letter.reason for letter in both.engine.dead_letters}
    late = [row["event"] for row in both.spark.rows("late")]
    once = [event for event in late if f"event {event!r} was published before" not in dead]
    assert sorted(once) == sorted(event.id for event in both.engine.late)
    reasons = [row["reason"] for row in both.spark.rows("dead")]
    assert sum("was published before" not in why for why in reasons) == stream.bad
