"""The bitset against a plain set."""

from hypothesis import given
from hypothesis import strategies as st

from tidings.index.intervals.kernels.bitset import (
    bitset_add,
    bitset_discard,
    bitset_from,
    bitset_until,
    empty_bitset,
)

SIZE = 2100  # three levels of words

members = st.one_of(st.integers(0, SIZE - 1), st.sampled_from([0, 31, 32, 1023, 1024, SIZE - 1]))


@given(st.lists(st.tuples(st.booleans(), members), max_size=40), st.lists(members, max_size=8))
def test_neighbours_are_those_of_a_plain_set(changes, probes):
    bitset = empty_bitset(SIZE)
    plain: set[int] = set()
    for adds, member in changes:
        (bitset_add if adds else bitset_discard)(bitset, member)
        (plain.add if adds else plain.discard)(member)
    for probe in probes:
        assert bitset_from(bitset, probe) == min((m for m in plain if m >= probe), default=-1)
        assert bitset_until(bitset, probe) == max((m for m in plain if m <= probe), default=-1)


def test_an_empty_bitset_has_one_word_at_least():
    bitset = empty_bitset(0)
    assert len(bitset.words) == 1
    assert bitset_from(bitset, 0) == -1
