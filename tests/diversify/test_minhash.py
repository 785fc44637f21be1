"""Signatures by kernels, against those by numpy; bands against buckets."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.small import crowds

from tidings.compiled.array_types import UInt64s
from tidings.diversify.maxdivrel_lsh import band_keys, salts, signature_bands, signatures
from tidings.diversify.plain import lsh as plain
from tidings.diversify.protocol import Candidate
from tidings.model.records import Event
from tidings.model.values import Range

SEEDS = st.sampled_from([0, 1, 7, 2**64 - 1, 2**200 + 3])


@given(crowds(), st.integers(1, 40), SEEDS)
def test_signatures_equal_the_plain_ones(window: list[Candidate], length: int, seed: int) -> None:
    events = [member.event for member in window]
    groups = signatures(events, length, seed)
    assert groups.tolist() == plain.signatures(events, length, seed).tolist()


def test_ranges_hash_as_in_the_plain_version() -> None:
    events = [Event("a", {"x": Range(1, 2)}, 0), Event("b", {"x": Range(1.0, 2.0)}, 0)]
    one, other = signatures(events, 10)
    assert one.tolist() == other.tolist()
    assert plain.signatures(events, 10).tolist() == [one.tolist(), other.tolist()]


@given(crowds(), st.integers(1, 5), st.integers(1, 4), SEEDS)
def test_events_share_a_key_if_they_share_a_bucket(
    window: list[Candidate], tables: int, rows: int, seed: int
) -> None:
    events = [member.event for member in window]
    marks = signatures(events, tables * rows, seed)
    keys = band_keys(events, (tables, rows), seed)
    assert keys.tolist() == signature_bands(marks, rows).tolist()
    expected = {tuple(members) for members in plain.buckets(marks, rows).values()}
    assert grouped(keys) == expected


def grouped(keys: UInt64s) -> set[tuple[int, ...]]:
    """Who shares a key, of whatever table: tables must not meet."""
    groups = defaultdict(list)
    for row, own in enumerate(keys.tolist()):
        for key in own:
            groups[key].append(row)
    return set(map(tuple, groups.values()))


def test_the_same_band_in_another_table_is_another_bucket() -> None:
    """All rows of the signature of nothing are equal."""
    keys = band_keys([Event("e", {}, 0)], (6, 2))
    assert len(set(keys[0].tolist())) == 6


@pytest.mark.parametrize("seed", [0, 5])
def test_salts_are_cached_and_distinct(seed: int) -> None:
    assert salts(100, seed) is salts(100, seed)
    assert len(np.unique(salts(100, seed))) == 100
