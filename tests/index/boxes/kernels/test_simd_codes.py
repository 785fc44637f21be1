"""Vector kernels over one-byte codes against their plain twins."""

from typing import Any

import numpy as np
import pytest

from tidings.index.boxes.kernels import simd_codes
from tidings.index.boxes.kernels.simd_codes import BlockSpan, EventCodes, EventGroup


@pytest.mark.parametrize("greatest", [False, True])
@pytest.mark.parametrize(("events", "ranged"), [(1, False), (4, False), (1, True)])
@pytest.mark.parametrize("attributes", [1, 7, 8, 9, 40])
def test_weigh_equals_its_plain_twin(greatest, events, ranged, attributes):
    rng = np.random.default_rng(attributes)
    codes = rng.integers(0, 256, 64 + attributes * 192).astype(np.uint8)
    codes.reshape(-1, 64)[3::3] //= 8  # the weights of a group fit a byte
    codes.reshape(-1, 64)[2::3] = 254 - codes.reshape(-1, 64)[1:-1:3].clip(0, 254)
    below = rng.integers(0, 256, (events, attributes)).astype(np.uint8).ravel()
    above = rng.integers(0, 256, len(below)).astype(np.uint8) if ranged else below
    results = []
    for weigh in (simd_codes.weigh, simd_codes.weigh_plain):
        group = EventGroup(
            rows=np.arange(events),
            starts=np.arange(events) * attributes,
            required=np.full(events, 9 * attributes),
            masks=np.zeros(events, np.int64),
            sums=np.zeros(events * 64, np.uint16),
        )
        span = BlockSpan(64, attributes, greatest, ranged)
        weigh(codes, span, EventCodes(below, above), group)
        results.append([column.tolist() for column in group])
    assert results[0] == results[1]


@pytest.mark.parametrize("number", [0, 1, 127, 128, 254, 255])
def test_stab_and_reach_equal_their_plain_twins(number):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 256, 200).astype(np.uint8)
    sums = rng.integers(0, 65536, 100).astype(np.uint16)
    for other in (number, 40, 200):
        limits: Any = np.uint8(number), np.uint8(other)
        plain = simd_codes.stab_plain(codes, 3, 70, number, other)
        assert simd_codes.stab(codes, 3, 70, *limits) == plain
    least = 257 * number
    assert simd_codes.reach(sums, 9, least) == simd_codes.reach_plain(sums, 9, least)
