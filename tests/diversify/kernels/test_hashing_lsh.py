"""Signatures, band keys and votes by kernels equal those of the plain version."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.small import large_windows

from tidings.compiled.array_types import UInt64s
from tidings.diversify.kernels.hashing import count_votes
from tidings.diversify.maxdivrel_lsh import band_keys, salts
from tidings.diversify.plain import diversifiers as plain
from tidings.diversify.protocol import Candidate
from tidings.model.records import Event
from tidings.model.values import Range

SEEDS = st.sampled_from([0, 1, 7, 2**64 - 1, 2**200 + 3])


def test_ranges_hash_alike_whatever_the_type_of_their_bounds() -> None:
    events = [Event("a", {"x": Range(1, 2)}, 0), Event("b", {"x": Range(1.0, 2.0)}, 0)]
    one, other = band_keys(events, (5, 2)).tolist()
    assert one == other


@given(large_windows(), st.integers(1, 5), st.integers(1, 4), SEEDS)
def test_events_share_a_key_if_they_share_a_bucket(
    window: list[Candidate], tables: int, rows: int, seed: int
) -> None:
    events = [member.event for member in window]
    signed = plain.signatures(events, tables * rows, seed)
    keys = band_keys(events, (tables, rows), seed)
    expected = {tuple(members) for members in plain.buckets(signed, rows).values()}
    assert grouped(keys) == expected


def grouped(keys: UInt64s) -> set[tuple[int, ...]]:
    """Return the events that share a key in any table: keys of two tables must differ."""
    groups = defaultdict(list)
    for event, event_keys in enumerate(keys.tolist()):
        for key in event_keys:
            groups[key].append(event)
    return set(map(tuple, groups.values()))


def test_the_same_band_in_another_table_is_another_bucket() -> None:
    """All rows of the signature of an event without tokens are equal."""
    keys = band_keys([Event("e", {}, 0)], (6, 2))
    assert len(set(keys[0].tolist())) == 6


@pytest.mark.parametrize("seed", [0, 5])
def test_salts_are_cached_and_distinct(seed: int) -> None:
    assert salts(100, seed) is salts(100, seed)
    assert len(np.unique(salts(100, seed))) == 100


@given(st.data(), st.integers(1, 8), st.integers(1, 4))
def test_a_bucket_votes_for_its_most_relevant_event(
    data: st.DataObject, count: int, tables: int
) -> None:
    rows = data.draw(
        st.lists(
            st.lists(st.integers(0, 2), min_size=tables, max_size=tables),
            min_size=count,
            max_size=count,
        )
    )
    best = data.draw(st.permutations(range(count)))
    bands = np.array([[16 * key + (table << 40) for table, key in enumerate(row)] for row in rows])
    votes = np.empty(count, np.int64)
    count_votes(bands.astype(np.uint64), np.array(best), votes)
    expected: Counter[int] = Counter()
    for table in range(tables):
        for key in {row[table] for row in rows}:
            expected[next(i for i in best if rows[i][table] == key)] += 1
    assert votes.tolist() == [expected[i] for i in range(count)]
