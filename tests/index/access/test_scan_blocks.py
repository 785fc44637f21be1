"""Blocks of rows without a selective check: chosen by chance, and the answers of the scan."""

from random import Random
from typing import Any

import numpy as np
import pytest
from tests.index.access.in_blocks import InBlocks
from tests.index.access.workload import assert_same_answers, event, subscription

from tidings.compiled.array_file import Damaged, Reader, Stored, Writer, described
from tidings.index.access import Access
from tidings.index.access.scan_blocks import FEWEST_ROWS, lane_mask, least_chances, unselective_rows
from tidings.index.access.segment import Segment
from tidings.index.scan import Scan
from tidings.model.records import Event, Subscription
from tidings.model.values import Range


def wide(number: int, chance: Random) -> Subscription:
    """Draw ranges whose bounds have more values than there are codes."""
    parts = []
    for name in chance.sample("abcd", 2):
        low = chance.random()
        high = chance.choice([low + 0.5, float(f"{low:.3f}") + 0.25])
        parts.append(
            chance.choice(
                [
                    f"{name} between {low} and {high}",
                    f"{name} >= {low}",
                    f"{name} < {high}",
                    f"{name} > {low}",
                ]
            )
        )
    where = " and ".join(parts) + chance.choice(["", "", " and word = 'x'", " or word like 'y%'"])
    return Subscription(f"s{number:05d}", "u", where, score=chance.randrange(9))


def asked(number: int, chance: Random, held: list[Subscription]) -> Event:
    """Draw an event; some of its values are exactly the bounds of ranges."""
    bounds = [
        bound
        for one in chance.sample(held, 4)
        for part in one.conjunctions[0]
        if isinstance(part.operand, tuple)
        for bound in part.operand
        if abs(bound) < 1e9
    ]
    values: dict[str, Any] = {name: chance.choice([*bounds, chance.random()]) for name in "abcd"}
    values["word"] = chance.choice(["x", "y1", "z"])
    low = chance.random()
    values["b"] = chance.choice(
        [values["b"], [low, chance.random()], Range(low, low + 0.1), Range(low, 2, "contained")]
    )
    for name in chance.sample(["a", "c", "word"], chance.randrange(2)):
        del values[name]
    return Event(f"e{number}", values, 0)


@pytest.fixture(scope="module")
def pair() -> tuple[InBlocks, Scan, list[Subscription]]:
    chance = Random(3)
    held = [wide(number, chance) for number in range(400)]
    held += [subscription(number, chance) for number in range(400, 500)]
    index, scan = InBlocks(held), Scan(held)
    index.remove_many([one.id for one in held[::9]])
    for one in held[::9]:
        scan.remove(one.id)
    return index, scan, [one for number, one in enumerate(held) if number % 9]


def test_blocks_answer_as_the_scan_does(pair: Any) -> None:
    index, scan, held = pair
    (segment,) = index.snapshot.segments
    assert len(segment.blocks.rows) >= 500
    assert not len(segment.postings.entries)
    assert not segment.blocks.exact.all()
    chance = Random(4)
    for number in range(12):
        assert_same_answers(index, scan, asked(number, chance, held[:350]))
        assert_same_answers(index, scan, event(number, chance))


def test_many_events_are_compared_together(pair: Any) -> None:
    index, scan, held = pair
    chance = Random(5)
    events = [asked(number, chance, held[:350]) for number in range(30)]
    found = index.matching_many(events)
    for number, one in enumerate(events):
        names = sorted(match.id for match in found.subscriptions(number))
        assert names == [match.id for match in scan.matching(one)]


def test_removed_and_rescored_rows_are_followed() -> None:
    chance = Random(6)
    held = [wide(number, chance) for number in range(150)]
    index, scan = InBlocks(held), Scan(held)
    before = index.snapshot
    gone = [one.id for one in held[5:90]]
    index.remove_many(gone)
    for name in gone:
        scan.remove(name)
    assert len(before.segments[0].blocks.rows) >= 150
    for number in range(5):
        assert_same_answers(index, scan, asked(number, chance, held))
    index.settle()
    assert len(index.snapshot.segments[0]) == 65
    for number in range(5):
        assert_same_answers(index, scan, asked(number, chance, held))


def test_rows_are_scanned_only_if_every_check_is_likely_and_they_are_many() -> None:
    size = np.full(FEWEST_ROWS + 1, 2, np.int32)
    chance = np.full(2 * len(size), 0.5)
    chance[1] = 0.001
    wide = unselective_rows(least_chances(size, chance))
    assert wide.tolist() == [False] + [True] * FEWEST_ROWS
    chance[3] = 0.001
    assert not unselective_rows(least_chances(size, chance)).any()
    assert not len(unselective_rows(least_chances(size[:0], chance[:0])))


def test_selectivity_is_measured() -> None:
    """Ranges on an attribute that events hardly ever have are posted once that is known."""
    held = [
        Subscription(
            f"s{n:04d}", "u", f"rare between {n % 7} and 9 and often between 1 and {n % 5 + 4}"
        )
        for n in range(FEWEST_ROWS)
    ]
    index = Access(held)
    assert len(index.snapshot.segments[0].blocks.rows) == FEWEST_ROWS
    assert index.snapshot.segments[0].blocks.exact.all()
    index.snapshot.vocabulary.events = 5000  # none of them had `rare`
    index.settle()
    assert not len(index.snapshot.segments[0].blocks.rows)
    assert len(index.matching(Event("e", {"rare": 9, "often": 4}, 0))) == FEWEST_ROWS


@pytest.mark.parametrize("lane", [0, 1, 62, 63])
def test_a_lane_is_one_bit(lane: int) -> None:
    assert np.int64(lane_mask(lane)).view(np.uint64) == np.uint64(1) << np.uint64(lane)


def written(index: Access) -> tuple[Writer, Any]:
    writer = Writer()
    index.snapshot.segments[0].write(writer)
    return writer, index.snapshot.vocabulary


def read(writer: Writer, vocabulary: Any) -> Segment:
    arrays = {
        name: Stored(described(array.dtype), list(array.shape), memoryview(array.tobytes()))
        for name, array in writer.arrays.items()
    }
    reader = Reader("file", writer.header, arrays)
    return Segment.read(reader, vocabulary.terms, vocabulary.slots)[0]


def test_blocks_are_written_and_read(pair: Any) -> None:
    writer, vocabulary = written(pair[0])
    segment = read(writer, vocabulary)
    for name, column in pair[0].snapshot.segments[0].blocks._asdict().items():
        assert np.array_equal(getattr(segment.blocks, name), column), name
    writer, vocabulary = written(Access([Subscription("s", "u", "a = 1")], memtable_size=0))
    assert not len(read(writer, vocabulary).blocks.rows)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("rows", 0, 1),
        ("rows", 0, -1),
        ("slots", 0, 99),
        ("slots", 0, -1),
        ("terms", 0, 10**6),
        ("slot_columns", 0, 99),
        ("starts", 1, 10**6),
        ("term_starts", 1, -1),
        ("cut_starts", 1, 300),
    ],
)
def test_damaged_blocks_are_refused(pair: Any, name: str, place: int, value: int) -> None:
    writer, vocabulary = written(pair[0])
    array = writer.arrays[f"blocks.{name}"] = writer.arrays[f"blocks.{name}"].copy()
    array[place] = value
    with pytest.raises(Damaged):
        read(writer, vocabulary)
