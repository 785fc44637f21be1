"""State and index files of earlier releases are restored, and continue without a difference.

Each folder beside this file has the versions of its formats in its name. A `state-*` folder holds a
stream, half of it published: the state and the clock of a bucket with all subscribers, and
the snapshots of an engine with each kind of feeds. An `index-*` folder holds index files. A change
of a format needs a new version; `pytest tests/golden` then writes the new folder and fails once.
Existing folders are never written again, since releases that wrote such bytes are in use. A version
that is no longer read must be refused with a message, and nothing else may happen.
"""

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from tests.spark.match_stage.match_batches import arrived_rows, deliveries, rows, sent

from tidings import Delivery, Engine, Event, TidingsError
from tidings.feed import FEEDS
from tidings.feed import snapshot_header as feeds_frame
from tidings.formats.arrow import read_events
from tidings.formats.binary import Frame
from tidings.formats.json_forms import loads_event, loads_subscriber, loads_subscription
from tidings.index_files import mapped_file as sealed_file
from tidings.index_files.base_files import current_bundles
from tidings.index_files.publisher import Publisher
from tidings.index_files.version_cache import serve
from tidings.index_files.versions import IndexFolder
from tidings.rank.matcher import Matcher
from tidings.spark.match_stage import match_batch as parcel_frame
from tidings.spark.state_stage import bucket as bucket_frame
from tidings.spark.state_stage import watermark as clock_frame
from tidings.spark.state_stage.bucket import Bucket, BucketSettings
from tidings.spark.state_stage.outcomes import late_rows
from tidings.spark.state_stage.policies import ListedPolicies
from tidings.spark.state_stage.watermark import BucketClock, Tick
from tidings.store import open_store
from tidings.testing import Workload, workload

HERE = Path(__file__).parent
FRAMES = (bucket_frame.FRAME, feeds_frame.FRAME, parcel_frame.FRAME)
NOW = "state-" + ".".join(str(frame.version) for frame in FRAMES)
INDEX_NOW = f"index-{sealed_file.VERSION}"
LATENESS_S = 60
TERMS = BucketSettings(lateness_us=LATENESS_S * 1_000_000)
HALF = 40
RULES: list[list[Any]] = [
    [],
    [{"name": "quota", "n": 3, "per": "10m"}],
    [{"name": "different", "min": 0.3}],
    [{"name": "quota", "n": 2}, {"name": "quiet", "start": "00:04", "end": "00:09"}],
    [],
]
FAR = 10**6
"""Seconds after the end of the stream."""


def stream() -> Workload:
    """Return a stream for every window and diversifier, with a repeated and a late event."""
    work = workload(seed=11, events=2 * HALF, subscribers=36)
    subscribers = [
        replace(each, policy=replace(each.policy, rules=RULES[number % len(RULES)]))
        for number, each in enumerate(work.subscribers)
    ]
    again = work.events[HALF - 3]
    ancient = Event("ancient", work.events[1].attributes, published_at=-1000, sequence=1)
    events = [*work.events[: HALF + 9], again, ancient, *work.events[HALF + 9 :]]
    return Workload(subscribers, work.subscriptions, events)


def engine_of(work: Workload, feeds: str) -> Engine:
    engine = Engine(f"{LATENESS_S}s", feeds=feeds)
    for subscriber in work.subscribers:
        engine.subscribe(subscriber)
    engine.add_many(work.subscriptions)
    return engine


def bucket_of(work: Workload) -> Bucket:
    subscribers = {subscriber.id: subscriber for subscriber in work.subscribers}
    return Bucket(ListedPolicies.of(subscribers), TERMS)


def parcels(work: Workload, events: list[Event]) -> tuple[list[Any], list[Tick]]:
    """Return what a micro-batch sends to a bucket with all subscribers."""
    matcher = Matcher(work.subscribers, work.subscriptions)
    return sent(matcher, events, [subscriber.id for subscriber in work.subscribers])


def make(folder: Path) -> None:
    """Write the present state, half-way through the stream."""
    work = stream()
    folder.mkdir()
    forms = {name: [r.to_dict() for r in records] for name, records in vars(work).items()}
    (folder / "stream.json").write_text(json.dumps(forms))
    bucket = bucket_of(work)
    bucket.run(*parcels(work, work.events[:HALF]))
    (folder / "bucket.blob").write_bytes(bucket.pack())
    (folder / "bucket.clock").write_bytes(bucket.clock.pack())
    for feeds in FEEDS:
        engine = engine_of(work, feeds)
        engine.publish_many(work.events[:HALF])
        (folder / f"engine-{feeds}.json").write_text(json.dumps(engine.snapshot()))


def make_index(folder: Path) -> None:
    """Write index files in the present format: a base and a delta."""
    work = stream()
    with (
        TemporaryDirectory() as place,
        open_store(Path(place) / "s.db") as store,
        Publisher(folder, store.history) as publisher,
    ):
        store.catalogue.put(*work.subscribers[:30], *_of(work, range(30)))
        publisher.publish()
        store.catalogue.put(*work.subscribers[30:], *_of(work, range(30, 36)))
        publisher.publish()
    (folder / "publisher.lock").unlink()


MAKE = {NOW: make, INDEX_NOW: make_index}


def _of(work: Workload, numbers: range) -> list[Any]:
    names = {work.subscribers[number].id for number in numbers}
    return [subscription for subscription in work.subscriptions if subscription.subscriber in names]


def read(folder: Path) -> Workload:
    forms = json.loads((folder / "stream.json").read_text())
    return Workload(
        [loads_subscriber(form) for form in forms["subscribers"]],
        [loads_subscription(form) for form in forms["subscriptions"]],
        [loads_event(form) for form in forms["events"]],
    )


def states(kind: str, now: str) -> list[Any]:
    """Return the folders of a kind; those that are not of the newest version may be refused."""
    folders = sorted(HERE.glob(f"{kind}-*"))
    return [pytest.param(path, path.name == now, id=path.name) for path in folders]


def restored(newest: bool, restore: Any, *arguments: Any) -> bool:
    """Return whether something is restored; an old version may be refused with a message."""
    if newest:
        restore(*arguments)
        return True
    with suppress(TidingsError):
        restore(*arguments)
        return True
    with pytest.raises(TidingsError, match="version"):
        restore(*arguments)
    return False


def undisturbed(work: Workload) -> tuple[list[Delivery], Engine]:
    """Return the deliveries of the second half by an engine that never stopped, and the engine."""
    engine = engine_of(work, "plain")
    engine.publish_many(work.events[:HALF])
    deliveries = engine.publish_many(work.events[HALF:])
    return deliveries + engine.advance(FAR), engine


def test_the_present_formats_have_golden_files() -> None:
    missing = [name for name in (NOW, INDEX_NOW) if not (HERE / name).exists()]
    for name in missing:
        MAKE[name](HERE / name)
    assert not missing, "a format has a new version; its files were written just now: commit them"


@pytest.mark.parametrize(("folder", "newest"), states("state", NOW))
def test_a_bucket_continues_from_its_bytes(folder: Path, newest: bool) -> None:
    work, bucket = read(folder), bucket_of(read(folder))
    clocks = [path for path in (folder / "bucket.pulse", folder / "bucket.clock") if path.exists()]
    [clock] = {BucketClock.unpack(path.read_bytes()) for path in clocks}
    if not restored(newest, bucket.unpack, (folder / "bucket.blob").read_bytes(), clock):
        return
    assert len(bucket.ids) > HALF / 2
    assert bucket.waiting.events
    results = [
        bucket.run(*parcels(work, work.events[HALF:])),
        bucket.run([], [Tick(FAR * 10**6, 0)]),
    ]
    expected, engine = undisturbed(work)
    forms: dict[str, list[Any]] = {}
    for delivery in expected:
        forms.setdefault(delivery.subscriber, []).append(delivery.to_dict())
    assert deliveries(results) == forms
    late = late_rows([arrived_rows(work.events[HALF:])], clock.watermark_us, read_events)
    assert [row["event"] for row in rows(late, "late")] == [event.id for event in engine.late]
    assert {row["reason"] for row in rows(results[0], "dead")} == {
        letter.reason for letter in engine.dead_letters
    }


def test_a_bucket_is_written_unchanged() -> None:
    """A bucket that is read and written again is the same; otherwise its format needs a version."""
    folder = HERE / NOW
    blob = (folder / "bucket.blob").read_bytes()
    clock = (folder / "bucket.clock").read_bytes()
    bucket = bucket_of(read(folder))
    bucket.unpack(blob, BucketClock.unpack(clock))
    assert opened(clock_frame.FRAME, bucket.clock.pack()) == opened(clock_frame.FRAME, clock)
    assert opened(bucket_frame.FRAME, bucket.pack()) == opened(bucket_frame.FRAME, blob)


def test_state_before_there_was_content_is_read_and_does_not_grow() -> None:
    folder = HERE / "state-3.4.2"
    blob, clock = ((folder / name).read_bytes() for name in ("bucket.blob", "bucket.clock"))
    bucket = bucket_of(read(folder))
    bucket.unpack(blob, BucketClock.unpack(clock))
    assert opened(bucket_frame.FRAME, bucket.pack()) == opened(bucket_frame.FRAME, blob)


def opened(frame: Frame, blob: bytes) -> Any:
    """Return the content of a frame and of the frames within; compressed bytes may differ."""
    header, columns = frame.unpack(blob)
    inside = {"feeds": feeds_frame.FRAME, "waiting": parcel_frame.FRAME}
    content = {
        name: opened(inside[name], column)
        if name in inside and frame is bucket_frame.FRAME
        else (column.dtype.str, column.tolist())
        if isinstance(column, np.ndarray)
        else column
        for name, column in columns.items()
    }
    return header, content


@pytest.mark.parametrize("feeds", FEEDS)
@pytest.mark.parametrize(("folder", "newest"), states("state", NOW))
def test_an_engine_continues_from_its_snapshot(folder: Path, newest: bool, feeds: str) -> None:
    work, engine = read(folder), Engine()
    snapshot = json.loads((folder / f"engine-{feeds}.json").read_text())
    if not restored(newest, engine.restore, snapshot):
        return
    second_half = engine.publish_many(work.events[HALF:])
    expected, whole = undisturbed(work)
    assert second_half + engine.advance(FAR) == expected
    assert [event.id for event in engine.late] == [event.id for event in whole.late]
    assert engine.snapshot().keys() == snapshot.keys()


@pytest.mark.parametrize(("place", "newest"), states("index", INDEX_NOW))
def test_index_files_answer_as_a_scan_does(place: Path, newest: bool) -> None:
    folder, work = IndexFolder(place), read(HERE / NOW)
    if not restored(newest, serve, folder, folder.newest()):
        return
    matcher, scan = serve(folder, folder.newest()), Matcher(work.subscribers, work.subscriptions)
    matches = matcher.match_many(work.events)
    names = matcher.names.take(matches.subscribers).to_pylist()
    rows_by_event = zip(matches.events.tolist(), names, matches.ranks.tolist(), strict=True)
    assert sorted(rows_by_event) == sorted(
        (number, match.subscriber, match.score)
        for number, event in enumerate(work.events)
        for match in scan.matches(event)
    )
    [part] = folder.manifest(folder.newest()).parts
    assert len(part.deltas) == 1
    assert len(current_bundles(place, part)) == len(work.subscribers)


def test_index_files_of_version_1_are_refused_with_advice_and_built_again(
    tmp_path: Path,
) -> None:
    """They were pickles, which must never be loaded."""
    place, work = tmp_path / "index", read(HERE / NOW)
    copytree(HERE / "index-1", place)
    folder = IndexFolder(place)
    with pytest.raises(TidingsError, match=r"version 1, .* builds it again from the store"):
        serve(folder, folder.newest())
    with (
        open_store(tmp_path / "s.db") as store,
        Publisher(place, store.history) as publisher,
    ):
        store.catalogue.put(*work.subscribers, *work.subscriptions)
        version = publisher.publish()
    assert version > 2
    assert serve(folder, version).match_many(work.events).subscribers.size
    assert not [*place.glob("0000000[12]-0-*.sealed")]
