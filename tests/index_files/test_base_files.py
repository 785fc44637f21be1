"""The files of bases and deltas: everything is read back, and files must belong together."""

from pathlib import Path

import pytest

from tidings import Policy, Subscriber, Subscription
from tidings.index_files.base_files import (
    build_folder,
    current_bundles,
    new_part,
    open_matcher,
    read_base,
    read_delta,
    read_subscribers,
    split_by_part,
    write_base,
    write_delta,
)
from tidings.index_files.manifest import Delta, PartManifest
from tidings.index_files.mapped_file import Damaged
from tidings.index_files.subscriber_bundle import SubscriberBundle
from tidings.index_files.versions import part_of
from tidings.model.records import Event

UNCOMPILED = Policy(k=3, scorer={"name": "relaxed", "aggregate": "max"})
COUNTING = Policy(window={"name": "sliding", "length": 4, "count": "published"})
EVENT = Event("e", {"a": 1}, published_at=0)


def bundle(name: str, policy: Policy | None = None) -> SubscriberBundle:
    """Return a bundle that wants every event with a = 1."""
    subscriber = Subscriber(name, policy) if policy else None
    return SubscriberBundle(name, subscriber, (Subscription(f"{name}-1", name, "a = 1"),))


ANN, BOB, CLEO = bundle("ann", Policy(k=1)), bundle("bob"), bundle("cleo", UNCOMPILED)


def test_names_are_made_of_a_serial_number_and_a_part() -> None:
    assert new_part(7, 2) == PartManifest(
        "00000007-2-index.sealed", "00000007-2-people.sealed", "00000007-2-archive.sealed"
    )


def test_a_base_is_read_back_with_compiled_and_uncompiled_bundles(tmp_path: Path) -> None:
    part = write_base(tmp_path, new_part(1, 0), [ANN, BOB, CLEO])
    assert (part.size, part.counts_published, part.deltas) == (3, False, ())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(part.files)
    base = read_base(tmp_path, part)
    assert (base.matcher.owners, len(base.subscribers)) == (2, 2)
    assert base.uncompiled == [CLEO]
    assert current_bundles(tmp_path, part) == [ANN, BOB, CLEO]


def test_a_base_notes_whether_a_window_counts_published_events(tmp_path: Path) -> None:
    part = write_base(tmp_path, new_part(1, 0), [ANN, bundle("dora", COUNTING)])
    assert part.counts_published


def test_a_matcher_is_opened_over_a_base(tmp_path: Path) -> None:
    matcher = open_matcher(tmp_path, write_base(tmp_path, new_part(1, 0), [ANN, BOB, CLEO]))
    matches = matcher.match_many([EVENT])
    names = matcher.names.take(matches.subscribers).to_pylist()
    assert sorted(names) == ["ann", "cleo"]  # bob has no policy


def test_subscribers_are_read_from_their_file_alone(tmp_path: Path) -> None:
    part = write_base(tmp_path, new_part(1, 0), [ANN, BOB, CLEO])
    (tmp_path / part.index).unlink()
    (tmp_path / part.archive).unlink()
    table = read_subscribers(tmp_path, part)
    found = {name: table.policy(name) for name in ("ann", "bob", "cleo", "nobody")}
    assert found == {"ann": Policy(k=1), "bob": None, "cleo": UNCOMPILED, "nobody": None}


def test_files_of_other_subscribers_are_refused(tmp_path: Path) -> None:
    part = write_base(tmp_path, new_part(1, 0), [ANN, BOB])
    other = write_base(tmp_path, new_part(2, 0), [ANN])
    mixed = PartManifest(part.index, other.subscribers, part.archive)
    with pytest.raises(Damaged, match=r"it is of 2 subscribers, but .*-people\.sealed has 1"):
        read_base(tmp_path, mixed)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    part = write_base(tmp_path, new_part(1, 0), [ANN])
    with pytest.raises(Damaged):
        read_delta(tmp_path / part.archive)


def test_a_delta_reads_back_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "delta.sealed"
    write_delta(path, [CLEO, SubscriberBundle("bob"), ANN])
    assert read_delta(path) == [CLEO, SubscriberBundle("bob"), ANN]


def test_later_deltas_replace_and_remove_bundles(tmp_path: Path) -> None:
    part = write_base(tmp_path, new_part(1, 0), [ANN, BOB, CLEO])
    changed = bundle("ann", Policy(k=9))
    write_delta(tmp_path / "1", [changed, bundle("abe"), SubscriberBundle("bob")])
    write_delta(tmp_path / "2", [SubscriberBundle("cleo"), BOB, SubscriberBundle("nobody")])
    deltas = (Delta("1", 3), Delta("2", 3))
    later = PartManifest(part.index, part.subscribers, part.archive, deltas=deltas)
    assert current_bundles(tmp_path, later) == [bundle("abe"), changed, BOB]
    earlier = PartManifest(part.index, part.subscribers, part.archive, deltas=deltas[:1])
    assert current_bundles(tmp_path, earlier) == [bundle("abe"), changed, CLEO]


def test_bundles_are_split_by_the_hash_of_their_names() -> None:
    bundles = [SubscriberBundle(f"u{number}") for number in range(20)]
    assert split_by_part(bundles, 1) == {0: bundles}
    by_part = split_by_part(bundles, 3)
    assert sorted(by_part) == [0, 1, 2]
    for part, some in by_part.items():
        assert some == [bundle for bundle in bundles if part_of(bundle.name, 3) == part]
    assert split_by_part([], 3) == {}


@pytest.mark.parametrize("parts", [1, 3])
def test_a_folder_has_one_version_with_every_part(tmp_path: Path, parts: int) -> None:
    folder = build_folder(tmp_path, [ANN, BOB], parts)
    manifest = folder.manifest(folder.newest())
    assert (manifest.version, len(manifest.parts)) == (1, parts)
    assert sum(part.size for part in manifest.parts) == 2
    found = [each for part in manifest.parts for each in current_bundles(tmp_path, part)]
    assert sorted(found, key=lambda bundle: bundle.name) == [ANN, BOB]


def test_another_policy_changes_the_version_of_a_folder_without_a_source(tmp_path: Path) -> None:
    sources = []
    for number, k in enumerate((3, 3, 4)):
        (tmp_path / str(number)).mkdir()
        bundles = [SubscriberBundle("ann", Subscriber("ann", Policy(k=k)))]
        sources.append(build_folder(tmp_path / str(number), bundles).manifest(1).source)
    assert sources[0] == sources[1] != sources[2]
