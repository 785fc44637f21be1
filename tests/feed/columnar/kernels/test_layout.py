"""The slab allocator, compared with a set of the slabs in use."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.feed.columnar.kernels.layout import capacity_of, release_slab, take_slab
from tidings.feed.columnar.slab_pools import new_slabs

SIZES = [2, 3, 5]
actions = st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 9)), max_size=60)


@given(actions)
def test_slabs_in_use_never_overlap(steps: list[tuple[bool, int, int]]) -> None:
    slabs, links = new_slabs(SIZES), np.zeros(40, np.int32)
    in_use: dict[int, int] = {}
    for take, size_class, nth in steps:
        if take:
            start = take_slab(slabs, links, size_class)
            if start < 0:
                assert slabs.used[0] + SIZES[size_class] > len(links)
                continue
            assert start not in in_use
            in_use[start] = size_class
        elif in_use:
            start = sorted(in_use)[nth % len(in_use)]
            release_slab(slabs, links, start, in_use.pop(start))
        cells = [cell for s, c in in_use.items() for cell in range(s, s + SIZES[c])]
        assert len(set(cells)) == len(cells)
        assert all(cell < slabs.used[0] <= len(links) for cell in cells)


def test_a_released_slab_is_taken_again_before_the_pool_grows() -> None:
    slabs, links = new_slabs(SIZES), np.zeros(40, np.int32)
    starts = [take_slab(slabs, links, 1) for _ in range(3)]
    release_slab(slabs, links, starts[0], 1)
    release_slab(slabs, links, starts[2], 1)
    release_slab(slabs, links, 0, -1)
    assert [take_slab(slabs, links, 1) for _ in range(3)] == [starts[2], starts[0], 9]


def test_no_slab_has_no_capacity() -> None:
    assert [capacity_of(new_slabs(SIZES), size_class) for size_class in (-1, 0, 2)] == [0, 2, 5]
