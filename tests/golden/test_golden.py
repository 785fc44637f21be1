"""What an earlier release wrote is restored, and goes on as if nothing had come in between.

Each folder beside this file is of one version of the formats, which its name tells. It holds a
stream, half of it published: the state and the clock of a bucket with every subscriber, the
snapshots of an engine with each kind of feeds, and a folder of index files. Who changes a format
gives it a new version; then `pytest tests/golden` makes the folder (`make`, `make_index`), and
fails until it is there. A folder that is there is never made anew: releases that wrote such bytes
are in use. One whose version is not read any more is to be refused in words; nothing else is to
come of it.
"""

import json
from contextlib import suppress
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
from tidings.spark.state_stage.late_events import late_rows
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
FAR = 10**6
"""Seconds after the end of the stream."""


def stream() -> Workload:
    """Every window and diversifier; one event comes again in the second half, and one too late."""
    made = workload(seed=11, events=2 * HALF, subscribers=36)
    again = made.events[HALF - 3]
    ancient = Event("ancient", made.events[1].attributes, published_at=-1000, sequence=1)
    events = [*made.events[: HALF + 9], again, ancient, *made.events[HALF + 9 :]]
    return Workload(made.subscribers, made.subscriptions, events)


def engine_of(work: Workload, feeds: str) -> Engine:
    engine = Engine(f"{LATENESS_S}s", feeds=feeds)
    for person in work.subscribers:
        engine.subscribe(person)
    engine.add_many(work.subscriptions)
    return engine


def bucket_of(work: Workload) -> Bucket:
    return Bucket(ListedPolicies.of({each.id: each for each in work.subscribers}), TERMS)


def parcels(work: Workload, events: list[Event]) -> tuple[list[Any], list[Tick]]:
    """Give what a micro-batch sends to the bucket of everybody."""
    matcher = Matcher(work.subscribers, work.subscriptions)
    return sent(matcher, events, [each.id for each in work.subscribers])


def make(folder: Path) -> None:
    """Write the state of now, half-way through the stream."""
    work = stream()
    folder.mkdir()
    forms = {name: [each.to_dict() for each in some] for name, some in vars(work).items()}
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
    """Write the index files of now: a base, and what changed after it."""
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
    return [each for each in work.subscriptions if each.subscriber in names]


def read(folder: Path) -> Workload:
    forms = json.loads((folder / "stream.json").read_text())
    return Workload(
        [loads_subscriber(each) for each in forms["subscribers"]],
        [loads_subscription(each) for each in forms["subscriptions"]],
        [loads_event(each) for each in forms["events"]],
    )


def states(kind: str, now: str) -> list[Any]:
    """Give the folders of a kind; those of a version that is not the newest may be refused."""
    found = sorted(each for each in HERE.glob(f"{kind}-*"))
    return [pytest.param(each, each.name == now, id=each.name) for each in found]


def restored(newest: bool, restore: Any, *given: Any) -> bool:
    """Restore something; tell whether it is there, or was refused in words since it is old."""
    if newest:
        restore(*given)
        return True
    with suppress(TidingsError):
        restore(*given)
        return True
    with pytest.raises(TidingsError, match="version"):
        restore(*given)
    return False


def undisturbed(work: Workload) -> tuple[list[Delivery], Engine]:
    """Give what an engine delivers in the second half that was never stopped, and the engine."""
    engine = engine_of(work, "plain")
    engine.publish_many(work.events[:HALF])
    made = engine.publish_many(work.events[HALF:])
    return made + engine.advance(FAR), engine


def test_the_formats_of_now_have_their_files() -> None:
    missing = [name for name in (NOW, INDEX_NOW) if not (HERE / name).exists()]
    for name in missing:
        MAKE[name](HERE / name)
    assert not missing, "a format has a new version; its files are made now, and to be kept"


@pytest.mark.parametrize(("folder", "newest"), states("state", NOW))
def test_a_bucket_goes_on_from_its_bytes(folder: Path, newest: bool) -> None:
    work, bucket = read(folder), bucket_of(read(folder))
    clocks = [path for path in (folder / "bucket.pulse", folder / "bucket.clock") if path.exists()]
    [clock] = {BucketClock.unpack(path.read_bytes()) for path in clocks}
    if not restored(newest, bucket.unpack, (folder / "bucket.blob").read_bytes(), clock):
        return
    assert len(bucket.ids) > HALF / 2
    assert bucket.waiting.events
    found = [bucket.run(*parcels(work, work.events[HALF:])), bucket.run([], [Tick(FAR * 10**6, 0)])]
    expected, engine = undisturbed(work)
    forms: dict[str, list[Any]] = {}
    for each in expected:
        forms.setdefault(each.subscriber, []).append(each.to_dict())
    assert deliveries(found) == forms
    told = late_rows([arrived_rows(work.events[HALF:])], clock.watermark_us, read_events)
    assert [row["event"] for row in rows(told, "late")] == [each.id for each in engine.late]
    assert {row["reason"] for row in rows(found[0], "dead")} == {
        each.reason for each in engine.dead_letters
    }


def test_a_bucket_is_written_as_it_was() -> None:
    """What is read and written again is the same, or else its version is to be another."""
    folder = HERE / NOW
    blob = (folder / "bucket.blob").read_bytes()
    clock = (folder / "bucket.clock").read_bytes()
    bucket = bucket_of(read(folder))
    bucket.unpack(blob, BucketClock.unpack(clock))
    assert opened(clock_frame.FRAME, bucket.clock.pack()) == opened(clock_frame.FRAME, clock)
    assert opened(bucket_frame.FRAME, bucket.pack()) == opened(bucket_frame.FRAME, blob)


def opened(frame: Frame, blob: bytes) -> Any:
    """Give all that bytes hold, also those within; how they are squeezed is left to zlib."""
    header, columns = frame.unpack(blob)
    inside = {"feeds": feeds_frame.FRAME, "waiting": parcel_frame.FRAME}
    found = {
        name: opened(inside[name], each)
        if name in inside and frame is bucket_frame.FRAME
        else (each.dtype.str, each.tolist())
        if isinstance(each, np.ndarray)
        else each
        for name, each in columns.items()
    }
    return header, found


@pytest.mark.parametrize("feeds", FEEDS)
@pytest.mark.parametrize(("folder", "newest"), states("state", NOW))
def test_an_engine_goes_on_from_its_snapshot(folder: Path, newest: bool, feeds: str) -> None:
    work, engine = read(folder), Engine()
    snapshot = json.loads((folder / f"engine-{feeds}.json").read_text())
    if not restored(newest, engine.restore, snapshot):
        return
    made = engine.publish_many(work.events[HALF:])
    expected, whole = undisturbed(work)
    assert made + engine.advance(FAR) == expected
    assert [each.id for each in engine.late] == [each.id for each in whole.late]
    assert engine.snapshot().keys() == snapshot.keys()


@pytest.mark.parametrize(("place", "newest"), states("index", INDEX_NOW))
def test_index_files_answer_as_a_scan_does(place: Path, newest: bool) -> None:
    folder, work = IndexFolder(place), read(HERE / NOW)
    if not restored(newest, serve, folder, folder.newest()):
        return
    served, scan = serve(folder, folder.newest()), Matcher(work.subscribers, work.subscriptions)
    wanted = served.match_many(work.events)
    names = served.names.take(wanted.subscribers).to_pylist()
    spans = np.repeat(np.arange(len(work.events)), np.diff(wanted.starts)).tolist()
    found = zip(spans, names, wanted.ranks.tolist(), strict=True)
    assert sorted(found) == sorted(
        (number, match.subscriber, match.score)
        for number, event in enumerate(work.events)
        for match in scan.matches(event)
    )
    [part_manifest] = folder.manifest(folder.newest()).parts
    assert len(part_manifest.deltas) == 1
    assert len(current_bundles(place, part_manifest)) == len(work.subscribers)


def test_index_files_of_version_1_are_refused_with_the_way_out_and_made_again(
    tmp_path: Path,
) -> None:
    """They were pickles: nothing in them is looked at."""
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
