"""Which segments are merged, and what a merge keeps."""

import numpy as np
import pytest
from tests.index.access.workload import subscriptions

from tidings.index.access.encoding import encode
from tidings.index.access.merge import MergeJob, copy_tombstones, rescored, segments_to_merge
from tidings.index.access.segment import Segment
from tidings.index.access.snapshot import Snapshot


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
