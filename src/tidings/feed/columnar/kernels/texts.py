"""Columns of ids and of windows as UTF-8, written without a Python string for each."""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Int32s, Int64s, UInt8s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, kernel
from tidings.compiled.simd import BLOCK, copy_block, prefetch
from tidings.feed.columnar.kernels.layout import START, STOP, WIDTH
from tidings.model.values import EARLIEST_US, LATEST_US, SECOND_US

AHEAD: Final = 8
MOST_SORTED: Final = 64
"""Runs up to this length are sorted by insertion."""
TIMES: Final = 1024
"""Lines for times that were written before: most windows begin or end at the same few."""
LONGEST_TIME: Final = 27
LONGEST_NUMBER: Final = 20
_ZERO: Final = ord("0")
_DAY_S: Final = 86_400


class TextPool(NamedTuple):
    """Texts by number: text i is `data[bounds[i, 0]:bounds[i, 1]]`."""

    bounds: Int64s
    data: UInt8s


@kernel
def write_offsets(pool: TextPool, numbers: Int64s, offsets: Int32s) -> None:
    """Write where each of some texts starts if one follows the other, and where the last ends."""
    bounds, end = pool.bounds, int64(0)
    offsets[0] = 0
    for place in range(len(numbers)):
        if place + AHEAD < len(numbers):
            prefetch(bounds, 2 * numbers[place + AHEAD])
        number = numbers[place]
        end += bounds[number, 1] - bounds[number, 0]
        offsets[place + 1] = end


@kernel
def write_texts(pool: TextPool, numbers: Int64s, offsets: Int32s, out: UInt8s) -> None:
    """Write some texts, one after the other."""
    bounds, data = pool
    for place in range(len(numbers)):
        if place + AHEAD < len(numbers):
            prefetch(data, bounds[numbers[place + AHEAD], 0])
        start, target = bounds[numbers[place], 0], int64(offsets[place])
        for i in range(offsets[place + 1] - target):
            out[target + i] = data[start + i]


@inlined
def is_before(pool: TextPool, one: int, other: int) -> bool:
    """Return whether a text comes before another; UTF-8 sorts as the characters do."""
    bounds, data = pool
    start, other_start = bounds[one, 0], bounds[other, 0]
    size, other_size = bounds[one, 1] - start, bounds[other, 1] - other_start
    for i in range(min(size, other_size)):
        if data[start + i] != data[other_start + i]:
            return bool(data[start + i] < data[other_start + i])
    return bool(size < other_size)


@kernel
def sort_runs(pool: TextPool, starts: Int64s, numbers: Int64s) -> None:
    """Sort each run of numbers by text, but for those that are longer than `MOST_SORTED`."""
    for run in range(len(starts) - 1):
        first, last = starts[run], starts[run + 1]
        if last - first > MOST_SORTED:
            continue
        for place in range(first + 1, last):
            number, free = numbers[place], place
            while free > first and is_before(pool, number, numbers[free - 1]):
                numbers[free] = numbers[free - 1]
                free -= 1
            numbers[free] = number


@inlined
def write_digits(out: UInt8s, at: int, number: int, digits: int) -> int:
    """Write a number with leading zeros; return the place behind it."""
    for place in range(at + digits - 1, at - 1, -1):
        out[place] = _ZERO + number % 10
        number //= 10
    return at + digits


@inlined
def write_number(out: UInt8s, at: int, number: int) -> int:
    """Write a number that is not negative; return the place behind it."""
    digits, rest = 1, number // 10
    while rest:
        digits, rest = digits + 1, rest // 10
    return write_digits(out, at, number, digits)


@inlined
def write_time(out: UInt8s, at: int, us: int) -> int:
    """Write a time as `format_time` does; return the place behind it."""
    us = min(max(us, EARLIEST_US), LATEST_US)
    second, fraction = us // SECOND_US, us % SECOND_US
    days, second = second // _DAY_S, second % _DAY_S
    # Years begin in March here, so that the day that some of them lack is their last one.
    shifted = days + 719_468
    era, of_era = shifted // 146_097, shifted % 146_097
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    march = (5 * of_year + 2) // 153
    month = march + 3 if march < 10 else march - 9
    year += 400 * era + (1 if month <= 2 else 0)
    at = write_digits(out, at, year, 4)
    out[at] = ord("-")
    at = write_digits(out, at + 1, month, 2)
    out[at] = ord("-")
    at = write_digits(out, at + 1, of_year - (153 * march + 2) // 5 + 1, 2)
    out[at] = ord("T")
    at = write_digits(out, at + 1, second // 3_600, 2)
    out[at] = ord(":")
    at = write_digits(out, at + 1, second // 60 % 60, 2)
    out[at] = ord(":")
    at = write_digits(out, at + 1, second % 60, 2)
    if fraction:
        out[at] = ord(".")
        at = write_digits(out, at + 1, fraction, 6)
    out[at] = ord("Z")
    return at + 1


class WrittenTimes(NamedTuple):
    """Times that were written before: the time of each line, where it was written, and its size."""

    us: Int64s
    place: Int64s
    size: Int64s


@inlined
def copy_text(source: UInt8s, first: int, size: int, out: UInt8s, at: int) -> int:
    """Copy a text in whole blocks, the last of which may end behind it; return its end."""
    for done in range(0, size, BLOCK):
        copy_block(source, first + done, out, at + done)
    return at + size


@inlined
def copy_time(out: UInt8s, at: int, us: int, written: WrittenTimes) -> int:
    """Write a time, by copying it if it was written before; return the place behind it."""
    line = (us // SECOND_US) % len(written.us)
    if written.size[line] and written.us[line] == us:
        return copy_text(out, written.place[line], written.size[line], out, at)
    end = write_time(out, at, us)
    written.us[line], written.place[line], written.size[line] = us, at, end - at
    return end


@inlined
def write_piece(pieces: TextPool, piece: int, out: UInt8s, at: int) -> int:
    """Write one text; return the place behind it."""
    start, end = pieces.bounds[piece, 0], pieces.bounds[piece, 1]
    return copy_text(pieces.data, start, end - start, out, at)


@kernel
def write_windows(
    columns: Int64s, window: Int64s, pieces: TextPool, offsets: Int32s, out: UInt8s
) -> None:
    """Write the JSON form of the window of each delivery.

    `pieces` are the beginning for each window, up to the start, and then the texts before the end,
    before the size, and behind it. Their data and `out` are a block longer than needed.
    """
    at, windows = int64(0), len(pieces.bounds) - 3
    lines = np.zeros((3, TIMES), np.int64)
    written = WrittenTimes(lines[0], lines[1], lines[2])
    offsets[0] = 0
    for row in range(len(columns)):
        at = write_piece(pieces, window[row], out, at)
        at = copy_time(out, at, columns[row, START], written)
        at = write_piece(pieces, windows, out, at)
        at = copy_time(out, at, columns[row, STOP], written)
        at = write_piece(pieces, windows + 1, out, at)
        at = write_number(out, at, columns[row, WIDTH])
        at = write_piece(pieces, windows + 2, out, at)
        offsets[row + 1] = at
