"""Codes of numbers: they keep the order, and so do the places within their cells."""

from random import Random

import numpy as np
from tests.index.access.in_blocks import InBlocks

from tidings.compiled.jit import kernel
from tidings.index.access.kernels.scan_blocks import (
    MISSING,
    MOST_CUTS,
    NO_HIGH,
    ScanBlocks,
    all_lanes,
    code_of,
    place_in_cell,
)
from tidings.index.access.vocabulary import ordered
from tidings.model.records import Subscription


@kernel
def coded(blocks: ScanBlocks, number: int) -> tuple[int, int]:
    code = code_of(blocks, 0, number)
    return code, place_in_cell(blocks, 0, code, number)


@kernel
def lanes(blocks: ScanBlocks, block: int) -> int:
    return all_lanes(blocks, block)


def blocks_of(bounds: list[float]) -> ScanBlocks:
    held = [Subscription(f"s{n:04d}", "u", f"a >= {bound}") for n, bound in enumerate(bounds)]
    return InBlocks(held).snapshot.segments[0].blocks


def test_codes_and_places_keep_the_order() -> None:
    chance = Random(1)
    bounds = [chance.uniform(-5, 5) for _ in range(600)]
    blocks = blocks_of(bounds)
    assert len(blocks.cuts) == MOST_CUTS
    numbers = sorted([*bounds, *(chance.uniform(-9, 9) for _ in range(500)), -1e308, 0.0, 1e308])
    codes = [coded(blocks, int(number)) for number in ordered(numbers)]
    assert codes == sorted(codes)
    assert all(1 <= code < NO_HIGH and 0 <= place <= 255 for code, place in codes)
    assert len({*codes}) > 5 * MOST_CUTS / 2


def test_every_bound_is_a_cut_where_few_differ() -> None:
    blocks = blocks_of([float(number % 9) for number in range(100)])
    assert blocks.exact.tolist() == [1]
    assert len(blocks.cuts) == 9
    codes = blocks.codes.reshape(-1, 2, 64)
    assert set(codes[0, 1].tolist()) == {NO_HIGH}
    assert [lanes(blocks, block) for block in (0, 1)] == [-1, (1 << 36) - 1]
    assert set(codes[1, 1, 36:].tolist()) == {MISSING}
    assert np.array_equal(blocks.numbers, np.arange(100))
