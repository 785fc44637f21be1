"""The whole Spark path without a session against the engine, on streams of every kind.

Rows go through the index files, the match stage, parcels and buckets as Spark would carry them: in
any split into micro-batches and Arrow batches, packed away in between, sometimes with other
buckets, sometimes with other subscribers.
"""

from collections import defaultdict
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

from tidings import Delivery, Engine, Policy, Subscriber, Subscription
from tidings.formats.arrow import read_events
from tidings.index_files.base_files import build_folder
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.spark.match_stage.matcher_source import PinnedRoster, Versions
from tidings.spark.match_stage.stage import FLOW, PART, Flow, tick
from tidings.spark.state_stage.bucket import Bucket, Terms
from tidings.spark.state_stage.late_events import late_rows
from tidings.spark.state_stage.processor import read_rows
from tidings.spark.state_stage.progress_mark import Pulse
from tidings.spark.state_stage.rebucket import rebucketed

FAR = 10**6
NAMES = "abcde"


class Carried:
    """The stages as Spark drives them, with what it would keep in its state store."""

    def __init__(self, folder: Path, terms: Terms, parts: int) -> None:
        self.folder, self.terms, self.parts = folder, terms, parts
        self.kept: dict[int, tuple[bytes, Pulse]] = {}
        self.found: list[pa.Table] = []

    def seal(self, people: dict[str, Subscriber], wanted: dict[str, Subscription]) -> None:
        place = self.folder / str(len(list(self.folder.iterdir())))
        place.mkdir()
        everybody = bundle_subscribers(people.values(), wanted.values())
        self.versions = Versions(build_folder(place, everybody, self.parts), 1)

    def take(self, batches: list[pa.RecordBatch]) -> None:
        """Take a micro-batch."""
        flow = Flow(self.versions, read_events, self.terms.buckets, streams=True)
        self.run([row for each in batches for row in self._sent(flow, each)])

    def _sent(self, flow: Flow, batch: pa.RecordBatch) -> list[dict[str, Any]]:
        given = [batch]
        if self.parts > 1:
            numbers = [pa.array([part] * batch.num_rows) for part in range(self.parts)]
            given = [batch.append_column(PART, each) for each in numbers]
        return [row for each in flow.batches(given) for row in each.to_pylist()]

    def run(self, sent: list[dict[str, Any]]) -> None:
        """Do what the state operator does with the rows of each bucket."""
        by_bucket = defaultdict(list)
        for row in sent:
            by_bucket[row["bucket"]].append(row)
        for number, mine in by_bucket.items():
            parcels, ticks, letters, batches = read_rows(
                iter([pa.Table.from_pylist(mine, FLOW).to_pandas()])
            )
            bucket = Bucket(PinnedRoster(self.versions), self.terms)
            if number in self.kept:
                blob, pulse = self.kept[number]
                self.found.append(late_rows(batches, pulse.watermark_us, read_events))
                rested = pulse.after(ticks, self.terms.lateness_us)
                if rested is not None and not parcels and not letters:
                    self.kept[number] = (blob, rested)
                    continue
                bucket.unpack(blob, pulse)
            self.found.append(bucket.run(parcels, ticks, letters))
            self.kept[number] = (bucket.pack(), Pulse.unpack(bucket.pulse.pack()))

    def rebucket(self, buckets: int) -> None:
        if len(self.kept) == self.terms.buckets:
            blobs, pulse = rebucketed([self.kept[each] for each in sorted(self.kept)], buckets)
            self.kept = {number: (blob, pulse) for number, blob in blobs.items()}
            self.terms = self.terms._replace(buckets=buckets)

    def rows(self, kind: str) -> list[dict[str, Any]]:
        return [row for table in self.found for row in rows(table, kind)]


class Both:
    """An engine and the stages, with the same subscribers."""

    def __init__(self, chance: Random, folder: Path, lateness: int, counting: bool) -> None:
        self.chance, self.counting = chance, counting
        parts = chance.choice([1, 2])
        terms = Terms(lateness * 1_000_000, buckets=parts * chance.choice([1, 2]))
        self.spark = Carried(folder, terms, parts)
        self.engine = Engine(f"{lateness}s")
        self.people: dict[str, Subscriber] = {}
        self.wanted: dict[str, Subscription] = {}
        for name in NAMES[: chance.randint(1, 5)]:
            self.join(name)
        self.spark.seal(self.people, self.wanted)

    def join(self, name: str) -> None:
        self.people[name] = any_subscriber(self.chance, name, self.counting)
        self.engine.subscribe(self.people[name])
        for number in range(self.chance.randint(0, 4)):
            self.want(name, number)

    def want(self, name: str, number: int) -> None:
        made = any_subscription(self.chance, name, number)
        (self.engine.replace if made.id in self.wanted else self.engine.add)(made)
        self.wanted[made.id] = made

    def change(self) -> None:
        """Let somebody come, go, want something else, or have another policy or scorer."""
        names = sorted(self.people)
        name = self.chance.choice(names) if names else "z"
        what = self.chance.choice(["come", "go", "want", "stop", "policy", "scorer"])
        if what == "come" or not names:
            self.join(f"n{len(self.spark.found)}-{len(names)}")
        elif what == "go":
            self.engine.unsubscribe(name)
            del self.people[name]
            self.wanted = {k: v for k, v in self.wanted.items() if v.subscriber != name}
        elif what == "want":
            self.want(name, self.chance.randint(0, 5))
        elif what == "stop" and self.wanted:
            gone = self.chance.choice(sorted(self.wanted))
            self.engine.remove(gone)
            del self.wanted[gone]
        elif what in ("policy", "scorer"):
            self.people[name] = self._other(self.people[name], what)
            self.engine.replace(self.people[name])
        self.spark.seal(self.people, self.wanted)

    def _other(self, who: Subscriber, what: str) -> Subscriber:
        new, old = any_policy(self.chance, self.counting), who.policy
        if what == "scorer":
            new = Policy(old.k, new.scorer, old.decay, old.window, old.diversify)
        return Subscriber(who.id, new, who.prefers)

    def run(self, stream: Stream, changing: bool) -> list[Delivery]:
        """Publish a stream on both sides, and end it; give what the engine delivers."""
        chance, found = self.chance, list[Delivery]()
        for piece in stream.pieces:
            for batch in split(chance, piece, chance.choice([1, 4, 15, 60])):
                if changing and chance.random() < 0.3:
                    self.change()
                elif not changing and chance.random() < 0.1:
                    self.spark.rebucket(self.spark.parts * chance.choice([1, 2, 3]))
                arrow = [as_rows(each, self.counting) for each in split(chance, batch, 12)]
                chance.shuffle(arrow)
                self.spark.take(arrow)
                found += self.engine.publish_many(batch)
        self.spark.run([tick(each, FAR * 10**6, 0) for each in range(self.spark.terms.buckets)])
        return found + self.engine.advance(FAR)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    lateness=st.sampled_from([0, 3, 10]),
    counting=st.booleans(),
    changing=st.booleans(),
)
def test_spark_delivers_what_the_engine_delivers(
    seed: int, lateness: int, counting: bool, changing: bool
) -> None:
    chance = Random(seed)
    changing = changing and not lateness  # matches that wait are those of the version they came in
    stream = any_stream(chance, lateness, counting, repeats=not changing)
    with TemporaryDirectory() as folder:
        both = Both(chance, Path(folder), lateness, counting)
        delivered = both.run(stream, changing)
    expected: dict[str, list[Any]] = {}
    for each in delivered:
        expected.setdefault(each.subscriber, []).append(each.to_dict())
    assert deliveries(both.spark.found) == expected
    dead = {letter.reason for letter in both.engine.dead_letters}
    late = [row["event"] for row in both.spark.rows("late")]
    once = [each for each in late if f"event {each!r} was published before" not in dead]
    assert sorted(once) == sorted(event.id for event in both.engine.late)
    reasons = [row["reason"] for row in both.spark.rows("dead")]
    assert sum("was published before" not in why for why in reasons) == stream.bad
