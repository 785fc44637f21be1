"""LSH votes in slices have the winners of one machine, for any split into batches."""

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidings.diversify import Candidate, order_of
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.tie_order import ranks_and_keys
from tidings.model.records import Event
from tidings.spark.analysis.diversify import (
    BALLOTS,
    BEST,
    COUNTS,
    SLICE,
    VoteColumns,
    ballot_rows,
    count_rows,
    pack_rows,
    sum_votes,
)

LSH = MaxDivRelLsh(tables=3, rows=2)
CANDIDATES = st.lists(
    st.tuples(
        st.sampled_from([0.0, -0.0, 0.5, 1.0]),
        st.integers(0, 2),
        st.tuples(*[st.integers(0, 9)] * 3),
    ),
    min_size=1,
    max_size=12,
)
TABLE_OFFSETS = np.array([0, 1000, 2000], np.uint64)
"""Added to the keys, so that keys of different tables differ."""


def by_slice(table: pa.Table) -> list[pa.Table]:
    numbers = np.array(table.column(SLICE).to_pylist())
    return [table.filter(pa.array(numbers == number)) for number in np.unique(numbers)]


def votes_in_slices(candidates: Any, splits: int, k: int) -> list[dict[str, Any]]:
    """Run both shuffles by hand, with the candidates in some batches."""
    rows = list[dict[str, Any]]()
    for split in range(splits):
        batch = [(f"e{n:02d}", *row) for n, row in enumerate(candidates) if n % splits == split]
        if batch:
            ids, ranks, us, keys = zip(*batch, strict=True)
            columns = VoteColumns(
                pa.array(ids), pa.array(us, pa.int64()), pa.array([rank + 0.0 for rank in ranks])
            )
            rows += ballot_rows(columns, np.array(keys, np.uint64) + TABLE_OFFSETS)
    ballots = pack_rows(rows, BALLOTS)
    counts = pack_rows((row for table in by_slice(ballots) for row in count_rows(table, k)), COUNTS)
    best = pa.concat_tables([sum_votes(table, k) for table in by_slice(counts)])
    return list(best.cast(BEST).to_pylist())


@given(CANDIDATES, st.integers(1, 4), st.integers(1, 6))
def test_winners_are_those_of_one_machine(rows: Any, splits: int, k: int) -> None:
    events = [Event(f"e{n:02d}", {}, us / 1e6) for n, (_, us, _) in enumerate(rows)]
    candidates = [Candidate(event, row[0], row[0]) for event, row in zip(events, rows, strict=True)]
    bands = np.array([keys for *_, keys in rows], np.uint64) + TABLE_OFFSETS
    ranks, keys = ranks_and_keys(candidates)
    picked = LSH.pick(ranks, keys, order_of(events), bands, k)
    votes = votes_in_slices(rows, splits, k)
    assert max(row["size"] for row in votes) == len(rows)
    best = sorted(
        (row for row in votes if row["votes"] or len(rows) < k),
        key=lambda row: (
            -row["votes"] if len(rows) >= k else 0,
            -row["rank"],
            -row["published_us"],
            row["id"],
        ),
    )
    assert [row["id"] for row in best[:k]] == [events[n].id for n in picked.tolist()]


def test_a_slice_without_keys_gets_no_row_except_the_first_which_gets_all_candidates() -> None:
    columns = VoteColumns(pa.array(["a", "b"]), pa.array([1, 1]), pa.array([0.5, 0.7]))
    keys = np.array([[8 + 1, 16 + 1], [8 + 1, 24 + 2]], np.uint64)
    first, second, third = ballot_rows(columns, keys)
    assert (first[SLICE], len(first["ids"]), first["keys"]) == (0, 2, b"")
    assert second[SLICE] == 1
    assert np.frombuffer(second["keys"], np.uint64).tolist() == [9, 17]
    owners = np.frombuffer(second["owners"], np.int32)
    assert [second["ids"][owner].as_py() for owner in owners] == ["b", "a"]
    assert np.frombuffer(third["keys"], np.uint64).tolist() == [26]


def test_no_rows_make_an_empty_table() -> None:
    assert pack_rows([], COUNTS).num_rows == 0
