"""Changes of the index: all or nothing, visible at once, and merged in the background."""

from collections.abc import Iterator, Sequence
from random import Random
from threading import Thread
from typing import Any

import numpy as np
import pytest
from tests.index.access.workload import assert_same_answers, event, subscription, subscriptions

from tidings.errors import InvalidSubscription, TidingsError
from tidings.index import background
from tidings.index.access import Access, writer
from tidings.index.access.encoding import encode
from tidings.index.access.segment import Segment
from tidings.index.access.snapshot import CHECKS, RECORDS, Snapshot
from tidings.index.access.writer import MergeJob, copy_tombstones, rescored, segments_to_merge
from tidings.index.scan import Scan
from tidings.model.conditions.predicate import predicate
from tidings.model.records import Event, Subscription, Weighted


def drawn_changes(chance: Random) -> Iterator[tuple[list[str], list[Subscription]]]:
    """Draw changes: the ids to remove, and the subscriptions to add."""
    present: list[str] = []
    for step in range(120):
        count = chance.choice([1, 5, 90])
        added = [subscription(100 * step + number, chance) for number in range(count)]
        leaving = range(min(len(present), 20))
        removed = [present.pop(chance.randrange(len(present))) for _ in leaving]
        present += [one.id for one in added]
        yield removed, added


@pytest.mark.slow
def test_a_reader_sees_one_snapshot_while_the_index_changes(  # noqa: C901 - readers and a writer
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every answer is that of a snapshot between the ones before and after the query."""
    monkeypatch.setattr(writer, "SMALL", 300)  # so that the thread has work
    chance = Random(17)
    asked = [event(number, chance) for number in range(4)]
    access, scan = Access(), Scan()
    right = [[(scan.top(one, 9), scan.matching(one)) for one in asked]]
    changes = list(drawn_changes(Random(6)))
    for removed, added in changes:
        for name in removed:
            scan.remove(name)
        for new in added:
            scan.add(new)
        right.append([(scan.top(one, 9), scan.matching(one)) for one in asked])
    done, wrong = [0], list[Any]()

    def read() -> None:
        while done[0] < len(changes) and not wrong:
            first = done[0]
            tops, hits = access.top_many(asked, 9), access.matching_many(asked)
            allowed = right[first : done[0] + 2]
            if tops not in [[top for top, _ in answers] for answers in allowed]:
                wrong.append(("tops", first))
            got = [sorted(hits.subscriptions(n), key=lambda one: one.id) for n in range(4)]
            if got not in [[matching for _, matching in answers] for answers in allowed]:
                wrong.append(("matching", first))

    readers = [Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for removed, added in changes:
        access._writer.change(removed, added)
        done[0] += 1
    for reader in readers:
        reader.join()
    access.close()
    assert wrong == []
    assert access.top_many(asked, 9) == [top for top, _ in right[-1]]
    assert "no merge is running" in str(access.describe())


def test_a_merge_that_fails_is_reported_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "SMALL", 10)

    def fail(_: object) -> None:
        raise MemoryError("no room")

    with monkeypatch.context() as broken:
        broken.setattr(writer.MergeJob, "build", fail)
        access = Access(subscription(number, Random(number)) for number in range(100))
        access.add_many([subscription(number, Random(number)) for number in range(100, 190)])
        access.close()
        with pytest.raises(TidingsError, match="no room"):
            access.add(subscription(500, Random(5)))
    scan = Scan(subscription(number, Random(number)) for number in range(190))
    access.settle()
    assert_same_answers(access, scan, event(1, Random(1)))


def raised_earlier_failure(
    access: Access, removed: Sequence[str], added: Sequence[Subscription]
) -> bool:
    """Make a change and wait for its merges; return whether an earlier failure was raised first."""
    failed = False
    try:
        access._writer.change(removed, added)
    except TidingsError:
        failed = True
        access._writer.change(removed, added)
    waiting = Thread(target=access.close, daemon=True)
    waiting.start()
    waiting.join(600)
    assert not waiting.is_alive()
    return failed


@pytest.mark.parametrize("step", ["copy_tombstones", "merged_snapshot", "Thread"])
@pytest.mark.parametrize("small", [10, 10**6])
def test_a_swap_that_fails_is_reported_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, step: str, small: int
) -> None:
    """Wherever it fails, in the thread or while a change waits: nothing hangs, and it goes on."""
    monkeypatch.setattr(writer, "SMALL", small)
    every = [subscription(number, Random(number)) for number in range(300)]
    access, scan = Access(every[:100]), Scan(every[150:])

    def fail(*_: object, **__: object) -> None:
        raise MemoryError("no room")

    with monkeypatch.context() as broken:
        broken.setattr(background if step == "Thread" else writer, step, fail)
        failed = [
            raised_earlier_failure(access, [], every[100:200]),
            raised_earlier_failure(access, [one.id for one in every[:150]], []),
            raised_earlier_failure(access, [], every[200:]),
        ]
    assert any(failed) == ((step, small) != ("Thread", 10**6))
    assert "no merge is running" in str(access.describe())
    assert_same_answers(access, scan, event(1, Random(1)))
    raised_earlier_failure(access, [every[299].id], [every[299]])
    access.settle()
    assert len(access.snapshot.segments) == 1
    assert_same_answers(access, scan, event(1, Random(1)))


def test_a_segment_without_memory_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    access = Access(subscription(number, Random(number)) for number in range(100))
    access.add_many([subscription(number, Random(number)) for number in range(100, 130)])
    scan = Scan(subscription(number, Random(number)) for number in range(130))
    words, table, homes = access.snapshot.vocabulary, access.snapshot.table, access._writer._homes
    segment = Segment(encode([subscription(7, Random(7))], [7], words), words)
    before = table.home.tolist(), table.place.tolist()

    def fail(*_: object) -> None:
        raise MemoryError("no room")

    with monkeypatch.context() as broken:
        broken.setattr(np, "arange", fail)
        with pytest.raises(MemoryError):
            access._writer._housed(access.snapshot, [*access.snapshot.segments, segment])
    assert (table.home.tolist(), table.place.tolist()) == before
    assert access._writer._homes is homes
    assert_same_answers(access, scan, event(1, Random(1)))


def test_an_id_that_occurs_twice_is_named() -> None:
    access = Access([Subscription("s0", "u", "a = 1")])
    two = [Subscription("s1", "u", f"a = {number}") for number in range(2)]
    for removed, added, name in (([], two, "s1"), (["s0", "s0"], [], "s0")):
        with pytest.raises(InvalidSubscription, match=f"'{name}' occurs twice; .* an id once"):
            access._writer.change(removed, added)
    assert len(access) == 1


def test_an_invalid_id_is_refused_and_nothing_changes() -> None:
    access = Access([Subscription("a", "u", "x = 1"), Subscription("b", "u", "x = 1")])
    one = Event("e", {"x": 1}, 0)
    for change in (
        lambda: access.remove("c"),
        lambda: access.remove_many(["a", "c"]),
        lambda: access.remove_many(["a", "a"]),
        lambda: access.add(Subscription("a", "u", "x = 2")),
        lambda: access.add_many([Subscription("c", "u", "x = 1"), Subscription("c", "u", "x = 2")]),
        lambda: access.rescore_many({"a": 3, "c": 1}),
        lambda: access.rescore_many({"a": 3, "b": -1}),
    ):
        with pytest.raises(InvalidSubscription):
            change()
        assert access.top(one, 3) == [("a", 1.0), ("b", 1.0)]


def test_segments_are_few_and_the_memtable_is_short() -> None:
    with Access() as access:
        for number in range(3 * RECORDS):
            access.add(subscription(number, Random(number)))
        assert access.snapshot.memtable.count <= RECORDS
        assert 1 <= len(access.snapshot.segments) <= 3


def test_a_subscription_too_large_for_the_memtable_is_a_segment() -> None:
    large = [Weighted(predicate("a", "=", number), 0.5) for number in range(CHECKS + 1)]
    access = Access()
    access.add(Subscription("s", "u", any=large))
    assert len(access.snapshot.segments) == 1
    assert access.top_relaxed(Event("e", {"a": [1, 2, 299]}, 0), 1) == [("s", 1.5)]
    hits = access.touching_many([Event("e", {"a": [1, 2, 299]}, 0)]).hits
    assert sorted(hits.parts.tolist()) == [1, 2, 299]


def test_a_listener_gets_the_new_score() -> None:
    received = list[Subscription]()

    class Recorder:
        def on_added(self, _: Sequence[int], subscriptions: Sequence[Subscription]) -> None:
            received.extend(subscriptions)

        def on_removed(self, numbers: Sequence[int]) -> None:
            assert len(numbers) == 1

    access = Access([Subscription("a", "u", "x = 1")])
    access.listen(Recorder())
    access.rescore("a", 7)
    assert [subscription.score for subscription in received] == [None, 7.0]


def test_memory_is_released() -> None:
    chance = Random(3)
    empty = Access().nbytes
    access = Access(subscription(number, chance) for number in range(2000))
    access.settle()
    full = access.nbytes
    for number in range(2000):
        if number % 10:
            access.remove(f"s{number:05d}")
    assert access.nbytes - empty < full / 2
    access.remove_many([f"s{number:05d}" for number in range(0, 2000, 10)])
    assert access.nbytes == empty
    assert access.snapshot.vocabulary.attributes == {}


class Sized:
    """Stands for a segment of some size."""

    def __init__(self, size: int, dead: int = 0) -> None:
        self.size, self.dead = size, dead

    def __len__(self) -> int:
        return self.size


@pytest.mark.parametrize(
    ("sizes", "merged"),
    [
        ([], 0),
        ([10], 0),
        ([100, 10], 0),
        ([100, 10, 10], 2),
        ([100, 60], 2),
        ([1000, 100, 60, 50], 3),
    ],
)
def test_each_segment_is_more_than_double_of_all_after_it(sizes: list[int], merged: int) -> None:
    segments = [Sized(size) for size in sizes]
    chosen = segments_to_merge(segments)  # type: ignore[arg-type]
    assert [*map(len, chosen)] == sizes[len(sizes) - merged :]


def test_a_segment_that_is_half_dead_is_merged_with_all_after_it() -> None:
    segments = [Sized(100), Sized(20, dead=11), Sized(1)]
    assert segments_to_merge(segments) == tuple(segments[1:])  # type: ignore[arg-type, comparison-overlap]


def opened() -> tuple[Snapshot, list[Segment]]:
    snapshot, wanted = Snapshot.empty(), subscriptions(60, 3)
    snapshot.table.add(wanted)
    vocabulary, segments = snapshot.vocabulary, []
    for serial, numbers in enumerate((range(40), range(40, 60))):
        encoded = encode([wanted[n] for n in numbers], numbers, vocabulary)
        segment = Segment(encoded, vocabulary)
        segment.serial = serial
        snapshot.table.home[segment.numbers] = serial
        snapshot.table.place[segment.numbers] = np.arange(len(segment))
        segments.append(segment)
    return snapshot._replace(segments=tuple(segments)), segments


@pytest.mark.parametrize("full", [False, True])
def test_a_merge_keeps_the_living_and_later_tombstones(full: bool) -> None:
    snapshot, segments = opened()
    dead = [int(segments[0].numbers[0]), int(segments[1].numbers[5])]
    segments[0].bury(0, 1)
    snapshot = snapshot._replace(version=1)
    merged, vocabulary = MergeJob(snapshot, snapshot.segments, full).build()
    assert sorted(merged.numbers.tolist()) == sorted({*range(60)} - {dead[0]})
    assert (vocabulary is snapshot.vocabulary) != full
    segments[1].bury(5, 2)  # while the merge was running
    copy_tombstones(merged, snapshot.table, dict(enumerate(segments)))
    assert merged.dead == 1
    assert merged.numbers[merged.tombstones <= 2].tolist() == [dead[1]]


def test_rescored_subscriptions_have_new_numbers_and_scores() -> None:
    snapshot, segments = opened()
    parts = [
        (np.array([1, 0]), segments[0].picked(np.array([3, 4]))),
        (np.array([2]), segments[1].picked(np.array([0]))),
    ]
    ids = [*snapshot.table.ids, "a", "b", "c"]
    encoded = rescored(parts, [60, 61, 62], np.array([0.5, 1.5, 2.5]), ids)
    assert encoded.numbers.tolist() == [61, 60, 62]
    assert encoded.scores.tolist() == [1.5, 0.5, 2.5]
    assert encoded.by_id.tolist() == [1, 0, 2]
