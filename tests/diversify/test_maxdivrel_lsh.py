"""MAXDIVREL by MinHash and banding (TKS 5.2)."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.small import by_rank, candidate, ids, names, windows

from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh, tables_and_rows
from tidings.diversify.plain.diversifiers import buckets, signatures
from tidings.diversify.protocol import Candidate
from tidings.diversify.tie_order import order_of, ranks_and_keys
from tidings.errors import InvalidPolicy
from tidings.model.records import Event

TABLE_5_9 = np.array(
    [
        [1, 6, 0, 4, 8, 0, 3, 4, 0, 5, 0, 1],
        [0, 3, 6, 1, 2, 5, 4, 1, 0, 0, 0, 1],
        [0, 3, 6, 1, 2, 5, 1, 3, 2, 1, 1, 1],
        [1, 6, 0, 4, 8, 0, 1, 3, 2, 0, 0, 1],
        [4, 7, 9, 1, 2, 5, 4, 1, 0, 5, 0, 1],
    ],
    dtype=np.uint64,
)


def tagged(id_: str, tags: range) -> Event:
    return Event(id_, {"tag": tuple(tags)}, 0)


def test_table_5_9() -> None:
    tables: list[set[str]] = [set(), set(), set(), set()]
    for (table, _), members in buckets(TABLE_5_9, rows=3).items():
        tables[table].add("".join("ABCDE"[i] for i in sorted(members)))
    assert tables == [
        {"AD", "BC", "E"},
        {"AD", "BCE"},
        {"A", "BE", "CD"},
        {"AE", "BD", "C"},
    ]


def chosen_by_table_5_9(window: list[Candidate], k: int) -> str:
    """Return the choice by the votes of its buckets, for any attributes."""
    order = order_of([member.event for member in window])
    part, bands = MaxDivRelLsh(tables=4, rows=3), np.empty((len(window), 4), np.uint64)
    for number, ((table, _), members) in enumerate(buckets(TABLE_5_9, rows=3).items()):
        bands[members, table] = number
    return "".join(ids(window, part.pick(*ranks_and_keys(window), order, bands, k)))


@pytest.mark.parametrize(
    ("ranks", "order"),
    [
        ((0.9, 0.8, 0.7, 0.6, 0.5), "ABCE"),  # votes 4 4 2 0 1
        ((0.8, 0.9, 0.7, 0.6, 0.5), "BACE"),  # the same votes, the more relevant first
        ((0.5, 0.6, 0.7, 0.8, 0.9), "EDCA"),  # votes 1 0 2 4 4
        ((0.5, 0.5, 0.5, 0.5, 0.5), "ABCE"),  # of equals the smaller id
    ],
)
def test_each_bucket_votes_for_its_most_relevant(ranks: tuple[float, ...], order: str) -> None:
    """TKS 5.2.5.2 over the buckets of Table 5.9; an event that wins nowhere is not chosen."""
    window = [candidate(name, rank) for name, rank in zip("ABCDE", ranks, strict=True)]
    assert chosen_by_table_5_9(window, 5) == order
    assert chosen_by_table_5_9(window, 2) == order[:2]


def test_equal_votes_and_ranks_go_to_the_newer() -> None:
    window = [candidate(name, 0.5, time) for time, name in enumerate("ABCDE")]
    assert chosen_by_table_5_9(window, 5) == "EDCA"


@given(windows(min_size=1), st.integers(1, 6), st.integers(1, 6), st.integers(1, 3))
def test_the_votes_are_the_definition(
    window: list[Candidate], k: int, tables: int, rows: int
) -> None:
    """Takes signatures as they are; the tests below check them."""
    k = min(k, len(window))
    marks = signatures([member.event for member in window], tables * rows, seed=3)
    votes: Counter[str] = Counter()
    for table in range(tables):
        bands = [tuple(mark[table * rows : (table + 1) * rows]) for mark in marks.tolist()]
        for band in set(bands):
            members = [member for member, its in zip(window, bands, strict=True) if its == band]
            votes[min(members, key=by_rank).event.id] += 1
    winners = sorted(window, key=lambda member: (-votes[member.event.id], by_rank(member)))
    winners = [member for member in winners if votes[member.event.id]]
    part = MaxDivRelLsh(tables=tables, rows=rows, seed=3)
    assert ids(window, part.choose(window, k)) == names(winners[:k])
    assert part.votes(window).tolist() == [votes[member.event.id] for member in window]


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
@pytest.mark.parametrize("common", [0, 10, 25, 50, 90, 100])
def test_signatures_agree_as_often_as_the_events_are_similar(common: int, seed: int) -> None:
    """5 standard errors of 4,096 rows (TKS 5.1) are 0.04."""
    one, other = signatures(
        [tagged("a", range(100)), tagged("b", range(100 - common, 200 - common))], 4096, seed
    )
    assert (one == other).mean() == pytest.approx(common / (200 - common), abs=0.04)


def test_rows_are_independent_of_each_other() -> None:
    """Two events of similarity 1/3 share a band of 2 rows in 1/9 of 4,096 tables."""
    marks = signatures([tagged("a", range(10)), tagged("b", range(5, 15))], 8192)
    shared = [members for members in buckets(marks, rows=2).values() if len(members) == 2]
    assert len(shared) / 4096 == pytest.approx(1 / 9, abs=0.03)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            {"genre": ["drama", "comedy"], "year": 2003},
            {"year": 2003.0, "genre": ["comedy", "drama"]},
        ),
        ({"x": 0.0}, {"x": -0.0}),
        ({}, {"genre": []}),
    ],
)
def test_equal_token_sets_share_all_buckets(
    one: dict[str, object], other: dict[str, object]
) -> None:
    events = [Event("a", one, 0), Event("b", other, 9)]
    assert all(members == [0, 1] for members in buckets(signatures(events, 30), rows=3).values())


@pytest.mark.parametrize("other", [{"x": "1"}, {"x": True}, {"y": 1}])
def test_tokens_of_another_family_or_attribute_are_different(other: dict[str, object]) -> None:
    events = [Event("a", {"x": 1}, 0), Event("b", other, 0)]
    one, two = signatures(events, 30)
    assert not (one == two).any()


def test_signatures_are_the_same_in_every_process() -> None:
    event = Event("e", {"genre": ("drama", "comedy"), "year": 2003, "big": True}, 0)
    assert signatures([event], 3).tolist() == [
        [1095585716366128207, 8191743680826645994, 1925305314159532442]
    ]


def test_signatures_depend_on_the_seed_which_is_any_integer() -> None:
    events = [tagged("a", range(5))]
    chosen = [signatures(events, 20, seed).tolist() for seed in (0, 1, 2, 2**200 + 3)]
    assert all(one != other for i, one in enumerate(chosen) for other in chosen[:i])
    assert signatures(events, 20, seed=1).tolist() == chosen[1]


@pytest.mark.parametrize("m", [1, 2, 10, 25, 49, 100, 196, 400])
@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.5, 0.8, 1.0])
def test_tables_and_rows_follow_from_error_and_threshold(m: int, threshold: float) -> None:
    """m = ceil(1/e²) rows in all, and of all ways to split them the s = (1/L)^(1/r) nearest."""
    tables, rows = tables_and_rows(error=1 / math.sqrt(m), threshold=threshold)
    assert m - rows < tables * rows <= m
    off = [abs((1 / (m // r)) ** (1 / r) - threshold) for r in range(1, m + 1)]
    assert abs((1 / tables) ** (1 / rows) - threshold) == pytest.approx(min(off))


@pytest.mark.parametrize("n", [1, 3, 7, 10, 14, 29, 49, 98, 100])
def test_an_error_of_1_in_n_takes_n_squared_rows(n: int) -> None:
    assert tables_and_rows(error=1 / n, threshold=0) == (n * n, 1)


def test_the_shape_is_explicit_or_derived() -> None:
    assert MaxDivRelLsh().shape == (20, 5)
    assert MaxDivRelLsh(tables=3).shape == (3, 5)
    assert MaxDivRelLsh(error=0.1, threshold=0.8).shape == tables_and_rows(0.1, 0.8) == (10, 10)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"tables": 0}, "tables is a whole number of at least 1, not 0"),
        ({"rows": 2.5}, "rows is a whole number of at least 1, not 2.5"),
        ({"seed": -1}, "seed is a whole number of at least 0, not -1"),
        ({"error": 0.1}, "error and threshold must be given together"),
        ({"threshold": 0.1}, "error and threshold must be given together"),
        ({"error": 0.1, "threshold": 0.5, "rows": 5}, "not both"),
        ({"error": 0, "threshold": 0.5}, "error is between 0.01 and 1, not 0"),
        ({"error": 1e-200, "threshold": 0.5}, "error is between 0.01 and 1, not 1e-200"),
        ({"error": 0.1, "threshold": 1.5}, "threshold is between 0 and 1, not 1.5"),
    ],
)
def test_bad_shapes_are_refused(given: dict[str, float], why: str) -> None:
    with pytest.raises(InvalidPolicy, match=why):
        MaxDivRelLsh(**given)  # type: ignore[arg-type]


def test_near_copies_leave_room_for_different_events() -> None:
    """Nine tags of ten are common to a, b and c; d has none of them."""
    window = [
        candidate("a", 0.9, tag=list(range(10))),
        candidate("b", 0.8, tag=list(range(9))),
        candidate("c", 0.7, tag=[*range(9), 99]),
        candidate("d", 0.1, tag=list(range(20, 30))),
    ]
    assert set(ids(window, MaxDivRelLsh(tables=50, rows=2).choose(window, 2))) == {"a", "d"}
