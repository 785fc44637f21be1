"""Texts that kernels write, compared with those that Python writes."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidings.compiled.simd import BLOCK
from tidings.feed.columnar.kernels import layout
from tidings.feed.columnar.kernels.texts import (
    LONGEST_NUMBER,
    LONGEST_TIME,
    MOST_SORTED,
    TIMES,
    TextPool,
    is_before,
    sort_runs,
    write_number,
    write_offsets,
    write_texts,
    write_time,
    write_windows,
)
from tidings.model.values import EARLIEST_US, LATEST_US, format_time

SECOND = 1_000_000
TEXTS = ["", "a", "ab", "b", "ä", "\U0001f600", "ab\0", "a" * 40, "z" * 17]
words = st.lists(st.sampled_from(TEXTS) | st.text(max_size=5), min_size=1, max_size=8)


def pool_of(texts: list[str]) -> TextPool:
    """Return texts in a pool, in another order than their numbers, with room between them."""
    bounds, data = np.zeros((len(texts), 2), np.int64), bytearray(b"???")
    for number in reversed(range(len(texts))):
        bounds[number, 0] = len(data)
        data += texts[number].encode()
        bounds[number, 1] = len(data)
        data += b"!"
    return TextPool(bounds, np.frombuffer(bytes(data), np.uint8).copy())


@given(words, st.data())
def test_texts_follow_each_other_in_the_order_of_their_numbers(
    texts: list[str], data: st.DataObject
) -> None:
    numbers = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=30))
    offsets = np.full(len(numbers) + 1, -1, np.int32)
    write_offsets(pool_of(texts), np.array(numbers, np.int64), offsets)
    encoded = [texts[number].encode() for number in numbers]
    assert offsets.tolist() == np.cumsum([0, *map(len, encoded)]).tolist()
    out = np.full(int(offsets[-1]) + 1, 77, np.uint8)
    write_texts(pool_of(texts), np.array(numbers, np.int64), offsets, out)
    assert out[:-1].tobytes() == b"".join(encoded)
    assert out[-1] == 77


@given(st.text(max_size=6), st.text(max_size=6))
def test_a_text_is_before_another_as_its_characters_are(one: str, other: str) -> None:
    pool = pool_of([one, other])
    assert is_before(pool, 0, 1) == (one < other)
    assert is_before(pool, 1, 0) == (other < one)
    assert not is_before(pool, 0, 0)


@given(words, st.lists(st.integers(0, 6), max_size=5), st.data())
def test_each_run_is_sorted(texts: list[str], sizes: list[int], data: st.DataObject) -> None:
    size = sum(sizes)
    drawn = data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=size, max_size=size))
    numbers, starts = np.array(drawn, np.int64), np.cumsum([0, *sizes])
    sort_runs(pool_of(texts), starts, numbers)
    for start, end in pairwise(starts):
        run = drawn[start:end]
        assert numbers[start:end].tolist() == sorted(run, key=texts.__getitem__)


@pytest.mark.parametrize("length", [MOST_SORTED, MOST_SORTED + 1])
def test_runs_that_are_too_long_are_left_as_they_are(length: int) -> None:
    texts = [f"{number:03}" for number in range(length)]
    numbers = np.arange(length)[::-1].copy()
    sort_runs(pool_of(texts), np.array([0, length]), numbers)
    expected = range(length) if length <= MOST_SORTED else reversed(range(length))
    assert numbers.tolist() == [*expected]


def written_number(number: int) -> str:
    out = np.full(LONGEST_NUMBER + 3, 63, np.uint8)
    end = write_number(out, 2, number)
    assert out[:2].tolist() == [63, 63]
    assert (out[end:] == 63).all()
    return out[2:end].tobytes().decode()


@given(st.integers(0, 2**63 - 1) | st.integers(0, 1_001))
def test_numbers_are_written_as_python_writes_them(number: int) -> None:
    assert written_number(number) == str(number)


@pytest.mark.parametrize("number", [0, 9, 10, 99, 100, 2**63 - 1])
def test_numbers_have_no_leading_zero(number: int) -> None:
    assert written_number(number) == str(number)
    assert len(str(number)) <= LONGEST_NUMBER


def written_time(us: int) -> str:
    out = np.zeros(LONGEST_TIME + 4, np.uint8)
    end = write_time(out, 3, us)
    return out[3:end].tobytes().decode()


any_time = st.one_of(
    st.integers(EARLIEST_US, LATEST_US),
    st.integers(EARLIEST_US // SECOND + 1, LATEST_US // SECOND).map(lambda s: s * SECOND),
    st.integers(-3, 3).map(lambda days: days * 86_400 * SECOND),
)


@given(any_time)
def test_times_are_written_as_python_writes_them(us: int) -> None:
    text = written_time(us)
    assert text == format_time(us)
    assert len(text) <= LONGEST_TIME


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (951_782_400 * SECOND, "2000-02-29T00:00:00Z"),
        (951_868_800 * SECOND, "2000-03-01T00:00:00Z"),
        (4_107_542_399 * SECOND, "2100-02-28T23:59:59Z"),
        (4_107_542_400 * SECOND, "2100-03-01T00:00:00Z"),
        (1_735_689_599 * SECOND + 7, "2024-12-31T23:59:59.000007Z"),
        (EARLIEST_US, format_time(EARLIEST_US)),
        (LATEST_US, format_time(LATEST_US)),
        (EARLIEST_US - 1, format_time(EARLIEST_US)),
        (LATEST_US + 1, format_time(LATEST_US)),
    ],
)
def test_days_that_some_years_lack_and_the_ends_of_time(us: int, text: str) -> None:
    assert written_time(us) == text


def written_windows(names: list[str], rows: list[tuple[int, int, int, int]]) -> list[str]:
    """Return the texts of windows, given by the place of their name, times and size."""
    columns = np.zeros((len(rows), layout.DELIVERY_WIDTH), np.int64)
    for number, (_, start, stop, width) in enumerate(rows):
        columns[number, [layout.START, layout.STOP, layout.WIDTH]] = start, stop, width
    heads = [f'{{"name": {json.dumps(name)}, "start": "' for name in names]
    pieces = [*heads, '", "end": "', '", "size": ', "}"]
    pool = pool_of(pieces)
    pool = pool._replace(data=np.concatenate([pool.data, np.zeros(BLOCK, np.uint8)]))
    longest = max(map(len, heads)) + sum(map(len, pieces[-3:]))
    longest += 2 * LONGEST_TIME + LONGEST_NUMBER
    offsets = np.full(len(rows) + 1, -1, np.int32)
    out = np.full(len(rows) * longest + BLOCK, 63, np.uint8)
    window = np.array([name for name, *_ in rows], np.int64)
    write_windows(columns, window, pool, offsets, out)
    ends = offsets.tolist()
    return [out[start:end].tobytes().decode() for start, end in pairwise(ends)]


def expected_window(name: str, start: int, stop: int, width: int) -> dict[str, object]:
    return {"name": name, "start": format_time(start), "end": format_time(stop), "size": width}


@given(
    st.lists(st.tuples(st.integers(0, 2), any_time, any_time, st.integers(0, 2**62)), max_size=20)
)
@example([(2, -1, -1, 2**62)] * 20)  # as long as they can be
def test_windows_are_json_objects(rows: list[tuple[int, int, int, int]]) -> None:
    names = ["sliding", "ä", "a window of a name that is longer than a block of bytes"]
    found = written_windows(names, rows)
    expected = [expected_window(names[name], *rest) for name, *rest in rows]
    assert [json.loads(text) for text in found] == expected
    assert [list(json.loads(text)) for text in found] == [[*form] for form in expected]


def test_times_that_share_a_line_are_not_mixed_up() -> None:
    """Each time has one of 1,024 lines, by its second: the next time of that line replaces it."""
    times = [5, 5 + TIMES * SECOND, 5, 6, 5 + 2 * TIMES * SECOND, 5, 5 - TIMES * SECOND]
    rows = [(0, us, us + SECOND, number) for number, us in enumerate(times)]
    found = [json.loads(text) for text in written_windows(["w"], rows)]
    assert found == [expected_window("w", *rest) for _, *rest in rows]


def test_no_windows_are_no_texts() -> None:
    assert written_windows(["w"], []) == []
