"""A folder follows a store: every version shows what the store had, and pins hold."""

from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index_files.test_overlay_matcher import expected, groups, named
from tests.rank.bulk.test_ranker import EVENTS

from tidings import Event, Policy, Subscriber, Subscription
from tidings.errors import TidingsError
from tidings.index_files import versions as folders
from tidings.index_files.base_files import build_folder
from tidings.index_files.overlay_matcher import OverlayMatcher
from tidings.index_files.publisher import Publisher
from tidings.index_files.read_source import Defaults
from tidings.index_files.subscriber_bundle import SubscriberBundle, bundle_subscribers
from tidings.index_files.version_cache import FolderPolicies, forget, serve
from tidings.index_files.versions import IndexFolder, part_of
from tidings.rank.matcher import Matcher
from tidings.store import Store, open_store
from tidings.testing import workload

DRAMA = Event("e1", {"genre": "drama"}, published_at=0)
NAMES = ("ann", "bob", "cy", "dee")


def wants(store: Store, name: str, k: int = 10, where: str = "genre = 'drama'") -> None:
    store.catalogue.load([Subscriber(name, Policy(k=k)), Subscription(f"s-{name}", name, where)])


def who(folder: IndexFolder, version: int, event: Event = DRAMA) -> list[str]:
    parts = range(len(folder.manifest(version).parts))
    found = [named(serve(folder, version, part), [event])[0] for part in parts]
    return sorted(name for each in found for name, _, _ in each)


def put(store: Store, member: SubscriberBundle) -> None:
    """Bring a store to what a member is."""
    store.catalogue.remove("subscriber", member.name)
    for each in store.catalogue.page("subscription", subscriber=member.name):
        store.catalogue.remove("subscription", each.id)
    given: list[Any] = [*([member.subscriber] if member.subscriber else []), *member.subscriptions]
    store.catalogue.load(given)


def as_stored(store: Store, version: int) -> Matcher:
    records: list[Any] = [entry.record for entry in store.history.as_of(version)]
    people = [each for each in records if isinstance(each, Subscriber)]
    wanted = [each for each in records if isinstance(each, Subscription)]
    return Matcher(people, wanted, index="scan")


@given(st.lists(st.tuples(groups, st.booleans()), max_size=4), st.integers(1, 3))
@settings(max_examples=30)
def test_every_version_shows_the_store_as_it_was(steps, parts):
    with TemporaryDirectory() as place, open_store(f"{place}/store.db") as store:
        publisher = Publisher(Path(place) / "index", store.history, parts, min_changed=2)
        with publisher:
            publisher.publish()
            folder = publisher.folder
            versions = [folder.pin("q", 0)]  # so it stays, however many bases are made
            for changed, settle in steps:
                for each in changed:
                    put(store, each)
                publisher.publish()
                versions.append(folder.pin("q", len(versions)))
                if settle:
                    publisher.settle()
            publisher.settle()
            versions.append(folder.newest())
            for version in [*versions, *reversed(versions)]:
                matcher = as_stored(store, folder.manifest(version).source)
                found = [named(serve(folder, version, part), EVENTS) for part in range(parts)]
                together = [sorted(chain(*each)) for each in zip(*found, strict=True)]
                assert together == expected(matcher, EVENTS)
                roster = FolderPolicies(folder, version)
                for name in NAMES:
                    person = matcher.subscribers.get(name)
                    assert roster.policy(name) == (person.policy if person else None)
        forget()


@given(st.lists(st.tuples(groups, st.booleans()), max_size=4), st.integers(1, 3))
@settings(max_examples=30)
def test_a_roster_knows_who_changed_since_its_base(steps, parts):
    with TemporaryDirectory() as place, open_store(f"{place}/store.db") as store:
        publisher = Publisher(Path(place) / "index", store.history, parts, min_changed=2)
        with publisher:
            sources = dict[int, int]()
            for changed, settle in steps:
                for each in changed:
                    put(store, each)
                version = publisher.publish()
                manifest = publisher.folder.manifest(version)
                roster = FolderPolicies(publisher.folder, version)
                sources[roster.version] = manifest.source
                if settle:
                    publisher.settle()
                bases = [each.source for each in manifest.parts]
                assert roster.changed_since(0) is None
                for before, since in sources.items():
                    known = all(each is not None and since >= each for each in bases)
                    due = {*store.history.touched(since, manifest.source)} if known else None
                    assert roster.changed_since(before) == due


def test_who_changed_is_not_known_of_a_time_to_come_or_without_a_source(store, tmp_path):
    wants(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        roster = FolderPolicies(publisher.folder, publisher.publish())
        assert roster.changed_since(roster.version) == set()
        assert roster.changed_since(roster.version + 1) is None
    (tmp_path / "sealed").mkdir()
    folder = build_folder(tmp_path / "sealed", bundle_subscribers([Subscriber("ann")], []))
    assert FolderPolicies(folder, 1).changed_since(0) is None


def test_a_change_is_a_small_file_and_is_seen_by_who_serves_already(store, tmp_path):
    wants(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        first = publisher.publish()
        assert publisher.publish() == first
        folder = publisher.folder
        served = serve(folder, first)
        wants(store, "bob")
        second = publisher.publish()
        assert serve(folder, second) is served
        assert who(folder, second) == ["ann", "bob"]
        store.catalogue.remove("subscriber", "ann")
        assert who(folder, publisher.publish()) == ["bob"]
        part_manifest = folder.manifest(folder.newest()).parts[0]
        assert [each.bundles for each in part_manifest.deltas] == [1, 1]
        assert who(folder, first) == ["ann"]


def test_a_subscription_that_moves_changes_both_its_subscribers(store, tmp_path):
    wants(store, "ann")
    wants(store, "bob", where="genre = 'horror'")
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
        store.catalogue.replace(Subscription("s-ann", "bob", "genre = 'drama'"))
        version = publisher.publish()
        assert who(publisher.folder, version) == ["bob"]
        assert publisher.folder.manifest(version).parts[0].deltas[0].bundles == 2


def test_a_batch_sees_the_version_that_it_saw_first(store, tmp_path):
    wants(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        first, folder = publisher.publish(), publisher.folder
        assert folder.pin("q/1", 0) == first
        wants(store, "bob")
        second = publisher.publish()
        assert [folder.pin("q/1", 0), folder.pin("q/1", 1), folder.pin("q2", 0)] == [
            first,
            second,
            second,
        ]


def test_many_who_ask_at_once_are_told_the_same(store, tmp_path):
    wants(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
        told: list[int] = []
        threads = [
            Thread(target=lambda: told.append(publisher.folder.pin("q", 7))) for _ in range(8)
        ]
        for number, each in enumerate(threads):
            each.start()
            wants(store, f"p{number}")
            publisher.publish()
        for each in threads:
            each.join()
        assert len(told) == 8
        assert len(set(told)) == 1
        assert not list((publisher.folder.path / "pins" / "q").glob(".new-*"))


def test_what_no_pin_needs_is_removed(store, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "KEPT_VERSIONS", 2)
    wants(store, "ann")
    with Publisher(tmp_path / "index", store.history, min_changed=3) as publisher:
        folder = publisher.folder
        pinned = publisher.publish()
        folder.pin("q", 0)
        for number in range(12):
            wants(store, f"p{number:02d}")
            publisher.publish()
            publisher.settle()
        assert who(folder, pinned) == ["ann"]
        versions = [each.name for each in folder.path.glob("version-*")]
        assert len(versions) == 3
        for batch in (1, 2):
            folder.pin("q", batch)
        wants(store, "last")
        publisher.publish()
        with pytest.raises(TidingsError, match=f"version {pinned} in .* cannot be read"):
            folder.manifest(pinned)
        kept = {
            file
            for v in (folder.newest(), folder.newest() - 1)
            for part_manifest in folder.manifest(v).parts
            for file in part_manifest.files
        }
        assert {each.name for each in folder.path.glob("*.sealed")} == kept


def test_a_history_that_was_compacted_is_read_anew(store, tmp_path):
    wants(store, "ann")
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
        wants(store, "ann", k=3)
        wants(store, "bob")
        store.history.compact(store.catalogue.version())
        version = publisher.publish()
        assert publisher.folder.manifest(version).parts[0].deltas == ()
        assert who(publisher.folder, version) == ["ann", "bob"]


def test_another_number_of_parts_begins_anew(store, tmp_path):
    for name in ("ann", "bob", "cy"):
        wants(store, name)
    with Publisher(tmp_path / "index", store.history) as publisher:
        publisher.publish()
    with Publisher(tmp_path / "index", store.history, parts=3) as publisher:
        version = publisher.publish()
        assert len(publisher.folder.manifest(version).parts) == 3
        assert who(publisher.folder, version) == ["ann", "bob", "cy"]


def test_two_publishers_do_not_write_to_one_folder(store, tmp_path):
    with (
        Publisher(tmp_path / "index", store.history),
        pytest.raises(TidingsError, match="another publisher"),
    ):
        Publisher(tmp_path / "index", store.history)
    Publisher(tmp_path / "index", store.history).close()


def test_an_empty_folder_has_nothing_to_pin(tmp_path):
    with pytest.raises(TidingsError, match="a publisher must write one"):
        IndexFolder(tmp_path).pin("q", 0)


def test_members_that_do_not_change_are_sealed_without_a_store(tmp_path):
    made = workload(seed=6, events=20, subscribers=40)
    folder = build_folder(
        tmp_path, bundle_subscribers(made.subscribers, made.subscriptions), parts=3
    )
    matcher = Matcher(made.subscribers, made.subscriptions, index="scan")
    found = [named(serve(folder, 1, part), made.events) for part in range(3)]
    assert [sorted(chain(*each)) for each in zip(*found, strict=True)] == expected(
        matcher, made.events
    )
    sizes = [each.size for each in folder.manifest(1).parts]
    assert sum(sizes) == 40
    assert sizes == [sum(part_of(p.id, 3) == part for p in made.subscribers) for part in range(3)]
    assert isinstance(serve(folder, 1, 0), OverlayMatcher)


def test_owners_who_are_no_subscribers_may_have_a_policy(store, tmp_path):
    store.catalogue.put(Subscription("s", "dan", "a = 1"))
    defaults = Defaults({"dan": Policy(k=7)})
    with Publisher(tmp_path / "index", store.history, defaults=defaults) as publisher:
        version = publisher.publish()
        assert FolderPolicies(publisher.folder, version).policy("dan") == Policy(k=7)
        store.catalogue.put(Subscription("t", "eve", "a = 1"))
        assert FolderPolicies(publisher.folder, publisher.publish()).policy("eve") is None
