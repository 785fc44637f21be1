"""Publishing: each version shows its store as of one version, and pinned versions stay."""

import os
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index_files.test_overlay_matcher import NamedMatch, expected, groups, matches_by_name
from tests.rank.bulk.test_ranker import EVENTS

from tidings import Event, Policy, Subscriber, Subscription
from tidings.errors import TidingsError
from tidings.index_files import publisher as publisher_module
from tidings.index_files import versions
from tidings.index_files.base_files import build_folder, write_base
from tidings.index_files.mapped_file import DiskFull
from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.index_files.publisher import Publisher, is_intact
from tidings.index_files.read_source import Defaults
from tidings.index_files.subscriber_bundle import SubscriberBundle, bundle_subscribers
from tidings.index_files.version_cache import FolderPolicies, forget, serve
from tidings.index_files.versions import IndexFolder, part_of
from tidings.rank.matcher import Matcher
from tidings.store import Store, open_store
from tidings.testing import workload

DRAMA = Event("e1", {"genre": "drama"}, published_at=0)
NAMES = ("ann", "bob", "cy", "dee")
NO_DEFAULT = Defaults(others=None)


def subscribe(store: Store, name: str, k: int = 10, where: str = "genre = 'drama'") -> None:
    """Add a subscriber with one subscription, or replace them."""
    store.catalogue.load([Subscriber(name, Policy(k=k)), Subscription(f"s-{name}", name, where)])


def matched_names(folder: IndexFolder, version: int, event: Event = DRAMA) -> list[str]:
    """Return the subscribers that an event matches at a version."""
    parts = range(len(folder.manifest(version).parts))
    matches = [matches_by_name(serve(folder, version, part), [event])[0] for part in parts]
    return sorted(name for of_part in matches for name, _, _ in of_part)


def put(store: Store, bundle: SubscriberBundle) -> None:
    """Replace everything that a store has of one name."""
    store.catalogue.remove("subscriber", bundle.name)
    for entry in store.catalogue.page("subscription", subscriber=bundle.name):
        store.catalogue.remove("subscription", entry.id)
    subscribers = [bundle.subscriber] if bundle.subscriber else []
    store.catalogue.load([*subscribers, *bundle.subscriptions])


def scan_of(store: Store, version: int) -> Matcher:
    """Return a plain matcher of what a store had at a version."""
    records: list[Any] = [entry.record for entry in store.history.as_of(version)]
    subscribers = [record for record in records if isinstance(record, Subscriber)]
    subscriptions = [record for record in records if isinstance(record, Subscription)]
    return Matcher(subscribers, subscriptions, index="scan")


def all_matches(folder: IndexFolder, version: int, events: list[Event]) -> list[list[NamedMatch]]:
    """Return the matches of all parts of a version, event by event."""
    parts = range(len(folder.manifest(version).parts))
    by_part = [matches_by_name(serve(folder, version, part), events) for part in parts]
    return [sorted(chain(*of_event)) for of_event in zip(*by_part, strict=True)]


@given(st.lists(st.tuples(groups, st.booleans()), max_size=4), st.integers(1, 3))
@settings(max_examples=30)
def test_every_version_shows_the_store_as_it_was(steps, parts):
    with TemporaryDirectory() as place, open_store(f"{place}/store.db") as store:
        publisher = Publisher(Path(place) / "index", store.history, parts, 2, NO_DEFAULT)
        with publisher:
            publisher.publish()
            folder = publisher.folder
            pinned = [folder.pin("q", 0)]  # pinned, so it stays however many bases are built
            for changed, settle in steps:
                for bundle in changed:
                    put(store, bundle)
                publisher.publish()
                pinned.append(folder.pin("q", len(pinned)))
                if settle:
                    publisher.settle()
            publisher.settle()
            pinned.append(folder.newest())
            for version in [*pinned, *reversed(pinned)]:
                matcher = scan_of(store, folder.manifest(version).source)
                assert all_matches(folder, version, EVENTS) == expected(matcher, EVENTS)
                policies = FolderPolicies(folder, version)
                for name in NAMES:
                    subscriber = matcher.subscribers.get(name)
                    assert policies.policy(name) == (subscriber.policy if subscriber else None)
        forget()


@given(st.lists(st.tuples(groups, st.booleans()), max_size=4), st.integers(1, 3))
@settings(max_examples=30)
def test_changes_are_known_since_the_last_base(steps, parts):
    with TemporaryDirectory() as place, open_store(f"{place}/store.db") as store:
        publisher = Publisher(Path(place) / "index", store.history, parts, 2, NO_DEFAULT)
        with publisher:
            sources = dict[int, int]()
            for changed, settle in steps:
                for bundle in changed:
                    put(store, bundle)
                version = publisher.publish()
                manifest = publisher.folder.manifest(version)
                policies = FolderPolicies(publisher.folder, version)
                sources[policies.version] = manifest.source
                if settle:
                    publisher.settle()
                bases = [part.source for part in manifest.parts]
                assert policies.changed_since(0) is None
                for before, since in sources.items():
                    changed_names: set[str] | None = None
                    if all(base is not None and since >= base for base in bases):
                        changed_names = {*store.history.touched(since, manifest.source)}
                    assert policies.changed_since(before) == changed_names


def test_changes_are_unknown_since_a_future_version_or_without_a_source(store, tmp_path):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        policies = FolderPolicies(publisher.folder, publisher.publish())
        assert policies.changed_since(policies.version) == set()
        assert policies.changed_since(policies.version + 1) is None
    (tmp_path / "sealed").mkdir()
    folder = build_folder(tmp_path / "sealed", bundle_subscribers([Subscriber("ann")], []))
    assert FolderPolicies(folder, 1).changed_since(0) is None


def test_a_change_is_a_small_delta_that_an_open_matcher_applies(store, tmp_path):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        first = publisher.publish()
        assert publisher.publish() == first
        folder = publisher.folder
        matcher = serve(folder, first)
        subscribe(store, "bob")
        second = publisher.publish()
        assert serve(folder, second) is matcher
        assert matched_names(folder, second) == ["ann", "bob"]
        store.catalogue.remove("subscriber", "ann")
        assert matched_names(folder, publisher.publish()) == ["bob"]
        deltas = folder.manifest(folder.newest()).parts[0].deltas
        assert [delta.bundles for delta in deltas] == [1, 1]
        assert matched_names(folder, first) == ["ann"]


def test_a_subscription_that_changes_owner_changes_both_subscribers(store, tmp_path):
    subscribe(store, "ann")
    subscribe(store, "bob", where="genre = 'horror'")
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
        store.catalogue.replace(Subscription("s-ann", "bob", "genre = 'drama'"))
        version = publisher.publish()
        assert matched_names(publisher.folder, version) == ["bob"]
        assert publisher.folder.manifest(version).parts[0].deltas[0].bundles == 2


def test_a_batch_keeps_the_version_that_it_saw_first(store, tmp_path):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        first, folder = publisher.publish(), publisher.folder
        assert folder.pin("q/1", 0) == first
        subscribe(store, "bob")
        second = publisher.publish()
        assert [folder.pin("q/1", 0), folder.pin("q/1", 1), folder.pin("q2", 0)] == [
            first,
            second,
            second,
        ]


def test_concurrent_calls_of_pin_return_the_same_version(store, tmp_path):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
        pinned: list[int] = []
        threads = [
            Thread(target=lambda: pinned.append(publisher.folder.pin("q", 7))) for _ in range(8)
        ]
        for number, thread in enumerate(threads):
            thread.start()
            subscribe(store, f"p{number}")
            publisher.publish()
        for thread in threads:
            thread.join()
        assert len(pinned) == 8
        assert len(set(pinned)) == 1
        assert not list((publisher.folder.path / "pins" / "q").glob(".new-*"))


def test_old_versions_that_are_not_pinned_are_removed(store, tmp_path, monkeypatch):
    monkeypatch.setattr(versions, "KEPT_VERSIONS", 2)
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history, min_changed=3) as publisher:
        folder = publisher.folder
        pinned = publisher.publish()
        folder.pin("q", 0)
        for number in range(12):
            subscribe(store, f"p{number:02d}")
            publisher.publish()
            publisher.settle()
        assert matched_names(folder, pinned) == ["ann"]
        assert len(list(folder.path.glob("version-*"))) == 3
        for batch in (1, 2):
            folder.pin("q", batch)
        subscribe(store, "last")
        publisher.publish()
        with pytest.raises(TidingsError, match=f"version {pinned} in .* cannot be read"):
            folder.manifest(pinned)
        kept = {
            file
            for version in (folder.newest(), folder.newest() - 1)
            for part in folder.manifest(version).parts
            for file in part.files
        }
        assert {path.name for path in folder.path.glob("*.sealed")} == kept


def test_everything_is_built_again_after_the_history_was_compacted(store, tmp_path):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
        subscribe(store, "ann", k=3)
        subscribe(store, "bob")
        store.history.compact(store.catalogue.version())
        version = publisher.publish()
        assert publisher.folder.manifest(version).parts[0].deltas == ()
        assert matched_names(publisher.folder, version) == ["ann", "bob"]


def test_everything_is_built_again_for_another_number_of_parts(store, tmp_path):
    for name in ("ann", "bob", "cy"):
        subscribe(store, name)
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
    with Publisher(tmp_path / "index", store.history, parts=3) as publisher:
        version = publisher.publish()
        assert len(publisher.folder.manifest(version).parts) == 3
        assert matched_names(publisher.folder, version) == ["ann", "bob", "cy"]


def test_a_second_publisher_of_a_folder_is_refused(store, tmp_path):
    with (
        Publisher(tmp_path / "index", store.history),
        pytest.raises(TidingsError, match="another publisher"),
    ):
        Publisher(tmp_path / "index", store.history)
    Publisher(tmp_path / "index", store.history).close()


def test_an_empty_folder_has_no_version_to_pin(tmp_path):
    with pytest.raises(TidingsError, match="a publisher must write one"):
        IndexFolder(tmp_path).pin("q", 0)


def test_a_folder_is_built_without_a_store(tmp_path):
    work = workload(seed=6, events=20, subscribers=40)
    folder = build_folder(
        tmp_path, bundle_subscribers(work.subscribers, work.subscriptions), parts=3
    )
    matcher = Matcher(work.subscribers, work.subscriptions, index="scan")
    assert all_matches(folder, 1, work.events) == expected(matcher, work.events)
    sizes = [part.size for part in folder.manifest(1).parts]
    assert sum(sizes) == 40
    assert sizes == [sum(part_of(p.id, 3) == part for p in work.subscribers) for part in range(3)]
    assert isinstance(serve(folder, 1, 0), OverlayMatcher)


def test_owners_that_are_not_subscribers_may_have_a_default_policy(store, tmp_path):
    store.catalogue.put(Subscription("s", "dan", "a = 1"))
    defaults = Defaults({"dan": Policy(k=7)})
    with Publisher(tmp_path / "index", store.history, defaults=defaults) as publisher:
        version = publisher.publish()
        assert FolderPolicies(publisher.folder, version).policy("dan") == Policy(k=7)
        store.catalogue.put(Subscription("t", "eve", "a = 1"))
        assert FolderPolicies(publisher.folder, publisher.publish()).policy("eve") == Policy()


def test_a_pause_reaches_the_next_version_and_later_bases(store, tmp_path):
    store.catalogue.put(Subscriber("ann"), Subscription("s", "ann", "a = 1"), Subscriber("bob"))
    with Publisher(tmp_path / "index", store.history) as publisher:
        paused = list[list[bool]]()
        for change in (lambda _: None, store.pause, store.pause, store.resume, store.pause):
            change("ann")
            policies = FolderPolicies(publisher.folder, publisher.publish())
            paused.append([policies.is_paused(name) for name in ("ann", "bob", "cy")])
    assert [each[0] for each in paused] == [False, True, True, False, True]
    assert not any(any(each[1:]) for each in paused)
    with Publisher(tmp_path / "new", store.history) as publisher:
        policies = FolderPolicies(publisher.folder, publisher.publish())
        assert [policies.is_paused(name) for name in ("ann", "bob")] == [True, False]


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    (tmp_path / "index" / "publisher.lock").mkdir(parents=True)
    with open_store(tmp_path / "s.db") as store:
        for name in ("taken", "index"):
            with pytest.raises(TidingsError, match=rf"{name} cannot be written to"):
                Publisher(tmp_path / name, store.history)
        (tmp_path / "new" / "version-000000000001.json").mkdir(parents=True)
        with (
            Publisher(tmp_path / "new", store.history) as publisher,
            pytest.raises(TidingsError, match="new cannot be written to"),
        ):
            publisher.publish()


def test_a_pipe_in_place_of_a_lock_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "publisher.lock")
    with (
        open_store(tmp_path / "s.db") as store,
        pytest.raises(TidingsError, match="a pipe or a device"),
    ):
        Publisher(tmp_path, store.history)


def damage(path: Path, how: str) -> None:
    """Damage a file as a faulty disk or a clean-up might."""
    if how == "gone":
        path.unlink()
    else:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content if how == "flipped" else content[: len(content) // 2])


@pytest.mark.parametrize("how", ["gone", "flipped", "cut"])
@pytest.mark.parametrize("parts", [1, 2])
def test_a_publisher_that_starts_rebuilds_whatever_is_damaged(store, tmp_path, parts, how):
    """Both versions stay the same: the newest, and an older one that a batch is pinned to."""
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history, parts) as publisher:
        pinned, folder = publisher.publish(), publisher.folder
        assert folder.pin("q", 0) == pinned
        for name in NAMES[1:]:
            subscribe(store, name)
        newest = publisher.publish()
    seen = {pinned: ["ann"], newest: sorted(NAMES)}
    for path in sorted(folder.path.glob("*.sealed")):
        damage(path, how)
        forget()
        with Publisher(tmp_path / "index", store.history, parts) as publisher:
            assert publisher.publish() == newest
        forget()
        assert {version: matched_names(folder, version) for version in seen} == seen
        policies = FolderPolicies(folder, newest)
        assert all(policies.policy(name) is not None for name in NAMES)
        for version in seen:
            for part in folder.manifest(version).parts:
                assert all(is_intact(folder.path, part, name) for name in part.files)


def test_a_repair_that_fails_on_a_full_disk_is_retried(store, tmp_path, monkeypatch):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        version, folder = publisher.publish(), publisher.folder
    damage(next(folder.path.glob("*-index.sealed")), "cut")

    with Publisher(tmp_path / "index", store.history) as publisher:
        with monkeypatch.context() as patch:
            patch.setattr(publisher_module, "write_base", disk_full)
            with pytest.raises(DiskFull):
                publisher.publish()
        assert folder.newest() == version == publisher.publish()
    assert matched_names(folder, version) == ["ann"]


def test_intact_files_are_not_rebuilt(store, tmp_path):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "index").glob("*[dn]")}
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(before) == 4


def truncate_manifest(folder: IndexFolder, version: int) -> None:
    (folder.path / f"version-{version:012d}.json").write_text("{")


def test_versions_that_cannot_be_rebuilt_are_reported_and_a_new_one_is_built(store, tmp_path):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        first, folder = publisher.publish(), publisher.folder
        assert folder.pin("q", 0) == first
        subscribe(store, "bob")
        newest = publisher.publish()
        assert folder.pin("q", 1) == newest
    subscribe(store, "cy")
    truncate_manifest(folder, first)
    truncate_manifest(folder, newest)
    with Publisher(tmp_path / "index", store.history) as publisher:
        assert publisher.publish() == newest + 1
    assert matched_names(folder, newest + 1) == ["ann", "bob", "cy"]
    for batch, version in enumerate((first, newest)):
        assert folder.pin("q", batch) == version
        with pytest.raises(TidingsError, match=rf"version {version} .* from a new checkpoint"):
            folder.manifest(version)


def test_a_pinned_number_is_not_reused_after_its_version_is_gone(store, tmp_path):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
        folder = publisher.folder
        subscribe(store, "bob")
        pinned = publisher.publish()
        assert folder.pin("q", 0) == pinned
    folder.remove(pinned)
    with Publisher(tmp_path / "index", store.history) as publisher:
        assert publisher.publish() == pinned + 1
    with pytest.raises(TidingsError, match=rf"version {pinned} .* cannot be read"):
        folder.manifest(folder.pin("q", 0))


def test_a_damaged_version_keeps_its_number_when_the_disk_is_full(store, tmp_path, monkeypatch):
    subscribe(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        version, folder = publisher.publish(), publisher.folder
    truncate_manifest(folder, version)
    with Publisher(tmp_path / "index", store.history) as publisher:
        with monkeypatch.context() as patch:
            patch.setattr(publisher_module, "write_base", disk_full)
            with pytest.raises(DiskFull):
                publisher.publish()
        assert publisher.publish() == version + 1


@pytest.mark.parametrize("which", ["*-index", "00000004*-change"])
@pytest.mark.parametrize("parts", [1, 2])
def test_a_file_that_versions_share_is_rebuilt_once(store, tmp_path, monkeypatch, parts, which):
    names = [f"p{number}" for number in range(9)]
    with Publisher(tmp_path / "index", store.history, parts) as publisher:
        seen = {}
        for number, name in enumerate(names, start=1):
            subscribe(store, name)
            version = publisher.publish()
            seen[version] = names[:number]
    folder, calls = publisher.folder, list[Any]()
    damage(min(folder.path.glob(f"{which}.sealed")), "cut")

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return write_base(*arguments)

    monkeypatch.setattr(publisher_module, "write_base", counted)
    forget()
    with Publisher(tmp_path / "index", store.history, parts) as publisher:
        assert publisher.publish() == version
    assert len(calls) == 1
    kept = dict(list(seen.items())[-8:])
    assert {number: matched_names(folder, number) for number in kept} == kept
    subscribe(store, "last")
    with Publisher(tmp_path / "index", store.history, parts) as publisher:
        assert matched_names(folder, publisher.publish()) == ["last", *names]


def test_a_version_is_rebuilt_in_its_own_number_of_parts(store, tmp_path):
    for name in NAMES:
        subscribe(store, name)
    with Publisher(tmp_path / "index", store.history, parts=3) as publisher:
        pinned, folder = publisher.publish(), publisher.folder
        assert folder.pin("q", 0) == pinned
    damage(max(folder.path.glob("*-index.sealed")), "cut")
    with Publisher(tmp_path / "index", store.history) as publisher:
        newest = publisher.publish()
    assert [len(folder.manifest(version).parts) for version in (pinned, newest)] == [3, 1]
    assert matched_names(folder, pinned) == matched_names(folder, newest) == sorted(NAMES)


@pytest.mark.parametrize("text", [b"[" * 100_000, b"{}", b"1" * 5_000])
def test_a_publisher_replaces_a_version_whose_manifest_is_damaged(
    tmp_path: Path, text: bytes
) -> None:
    work = workload(seed=3, events=5, subscribers=4)
    with open_store(tmp_path / "s.db") as store:
        store.catalogue.put(*work.subscribers, *work.subscriptions)
        with Publisher(tmp_path / "index", store.history) as publisher:
            folder, version = publisher.folder, publisher.publish()
        (folder.path / "version-000000000001.json").write_bytes(text)
        forget()
        with Publisher(tmp_path / "index", store.history) as publisher:
            assert publisher.publish() == version + 1
    assert serve(folder, version + 1).size == len(work.subscriptions)


def disk_full(*_: Any) -> None:
    raise DiskFull("no space")
